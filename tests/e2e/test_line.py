"""kill -9 of the keeper in every window of a line: no buyer is served twice or out of turn, and no unit is left
over."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.checks import check_audit, until_drained
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S, STORY_PATIENCE_S

UNITS = 30
PEOPLE = 80
CANCELLED = 10
WINDOWS = (
    "line.close.inside",
    "keeper.ledger.note_list.after",
    "keeper.ledger.give_places.after",
    "keeper.ledger.call_next.after",
    "keeper.gate.admit.after",
    "keeper.ledger.settle_called.before",
)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # one of the two, to keep the run short
@pytest.mark.timeout(1800)
async def test_a_line_is_served_in_order_whenever_the_keeper_dies(folder: Path, database_url: str) -> None:
    stack = Stack(folder, api=1, database_url=database_url)
    async with running(stack), httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
        key = stack.settings.admin_key
        assert key is not None
        operator = {"Authorization": f"Bearer {key.reveal()}"}
        begins_at = datetime.now(UTC) + timedelta(hours=1)
        sale = await stack.create_sale(units=UNITS, order="draw", begins_at=begins_at.isoformat())

        async def join(user: str) -> None:
            headers = {"Authorization": f"Bearer {stack.token(user)}"}
            answer = await http.post(f"/v1/sales/{sale['id']}/entries", headers=headers)
            assert answer.status_code == 201, answer.text

        async def entries(state: str) -> list[dict[str, Any]]:
            address, params = f"/v1/admin/sales/{sale['id']}/line", {"limit": "1000", "state": state}
            return list((await http.get(address, headers=operator, params=params)).json()["entries"])

        await asyncio.gather(*[join(f"user-{number}") for number in range(PEOPLE)])
        for nth, window in enumerate(WINDOWS):
            stack.kill_everything()
            # The later ones, too: the supervisor starts a keeper again, which must not get past them before we look.
            await stack.start(SECKILL_FAILPOINTS=",".join(f"{each}=kill" for each in WINDOWS[nth:]))
            if window == WINDOWS[0]:
                body = {"begins_at": datetime.now(UTC).isoformat()}
                assert (await http.patch(f"/v1/sales/{sale['id']}", json=body, headers=operator)).status_code == 200
            async with asyncio.timeout(STORY_PATIENCE_S):
                while not stack.logged(f"failpoint {window}: kill"):
                    await asyncio.sleep(0.05)
        stack.kill_everything()
        await stack.start()
        async with asyncio.timeout(STORY_PATIENCE_S):
            while len(await entries("served")) < UNITS:
                await asyncio.sleep(0.1)
        await _cancel(stack, http, (await entries("served"))[:CANCELLED])
        async with asyncio.timeout(STORY_PATIENCE_S):
            while len(served := await entries("served")) < UNITS + CANCELLED:
                await asyncio.sleep(0.1)
        assert [entry["place"] for entry in served] == list(range(1, UNITS + CANCELLED + 1))
        orders = (await http.get("/v1/admin/orders", headers=operator, params={"limit": "100"})).json()["orders"]
        assert sorted(each["order"]["order_id"] for each in orders) == sorted(entry["order_id"] for entry in served)
        async with stack.engine() as engine:
            await until_drained(engine)
            await check_audit(engine)


async def _cancel(stack: Stack, http: httpx2.AsyncClient, served: list[dict[str, Any]]) -> None:
    for entry in served:
        headers = {"Authorization": f"Bearer {stack.token(entry['buyer'])}"}
        assert (await http.post(f"/v1/orders/{entry['order_id']}/cancel", headers=headers)).status_code == 200
