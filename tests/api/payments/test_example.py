"""The example in the documentation, run as it stands there."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from tests.api.conftest import Served, buyer
from tests.api.payments.conftest import PAYMENT_SECRET

PAGE = Path(__file__).parents[3] / "docs" / "payment.md"


async def test_the_example_pays(served: Served) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    order_id = await served.order()
    await served.node.work()
    environ = os.environ | {
        "ORDER": order_id,
        "URL": served.url,
        "SECKILL_PAYMENT_SECRET": PAYMENT_SECRET.reveal(),
        "no_proxy": "*",
    }
    status, order = (await _run(found[1], environ)).split(maxsplit=1)
    assert (status, json.loads(order)["state"]) == ("200", "paid")
    shown = await served.node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))
    assert shown.json()["state"] == "paid"
    refused = await _run(found[1], environ | {"ORDER": "nothing"})
    assert refused == "404 There is no order nothing.\n"


async def _run(program: str, environ: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env=environ, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return printed.decode()
