"""The auditor at full load: never a false alarm, whatever is killed; and a planted flaw is named while it watches."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from seckill.audit import Verdict, open_auditor
from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from tests.e2e.checks import check_audit, rows, until_drained, until_passed_on
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S, STORY_PATIENCE_S

UNITS = 300
READINGS_MIN = 30
KILLS = {"worker": 2, "keeper": 1, "api": 1, "valkey": 1}
STATES = {"paid", "cancelled", "expired"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # one of the two, to keep the run short
@pytest.mark.timeout(1800)
async def test_no_false_alarm_at_full_load(folder: Path, database_url: str) -> None:
    chance = random.Random(4)
    stack = Stack(folder, database_url=database_url, settings={"SECKILL_CLAIM_IDLE_S": "1"})
    async with running(stack):
        sale = await stack.create_sale(units=UNITS, pay_within_s=2, limit_per_buyer=2)
        crowd = Crowd(stack, sale)
        enough = asyncio.Event()
        numbers = itertools.count()
        buying = [asyncio.create_task(_shop(crowd, f"buyer-{n}", numbers, enough, chance)) for n in range(12)]
        readings: Counter[Verdict] = Counter()
        auditing = asyncio.create_task(_audit_all_along(stack, readings, enough))
        killed: Counter[str] = Counter()
        async with asyncio.timeout(STORY_PATIENCE_S):
            while (
                (wanted := Counter(KILLS) - killed)
                or not await _states(stack) >= STATES
                or readings[Verdict.HOLDS] < READINGS_MIN
            ):
                await asyncio.sleep(chance.uniform(0.5, 1.5))
                if auditing.done():
                    await auditing  # which says why
                if wanted:
                    role = chance.choice(sorted(wanted))
                    killed[role] += stack.kill(role)
        enough.set()
        await asyncio.gather(*buying)
        await auditing
        async with stack.engine() as engine:
            await until_drained(engine)
            await until_passed_on(engine)
            await check_audit(engine)
        ((orders,),) = await rows(stack.settings.database_url, "SELECT count(*) FROM orders")
        print(f"{orders} orders, killed {dict(killed)}, readings {dict(readings)}")  # noqa: T201
        assert stack.stop() == 0


async def _audit_all_along(stack: Stack, readings: Counter[Verdict], until: asyncio.Event) -> None:
    """Audits every order every time, without a pause."""
    async with open_auditor(stack.settings) as auditor:
        while not until.is_set():
            report = await auditor.read(full=True)
            assert report.verdict is not Verdict.BROKEN, report.findings
            readings[report.verdict] += 1


async def _shop(
    crowd: Crowd, name: str, numbers: "itertools.count[int]", until: asyncio.Event, chance: random.Random
) -> None:
    """Buys, then pays, cancels, or forgets about it. The sale never ends, because most units come back."""
    while not until.is_set():
        user = f"{name}-{next(numbers)}"
        await crowd.buy(user, quantity=chance.choice([1, 1, 2]))
        order_id = crowd.orders.get(user)
        verb = chance.choice(["pay", "cancel", "cancel", "forget"])
        if order_id is None:
            await asyncio.sleep(0.1)
        elif verb != "forget":
            headers = {"Authorization": f"Bearer {crowd.stack.token(user)}"}
            with contextlib.suppress(httpx2.HTTPError):  # the API was killed meanwhile: then it expires
                await crowd._http.post(f"/v1/orders/{order_id}/{verb}", headers=headers)


async def _states(stack: Stack) -> set[str]:
    return {state for (state,) in await rows(stack.settings.database_url, "SELECT DISTINCT state FROM orders")}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # the plantings are on both
async def test_a_planted_flaw_is_named_while_it_watches(folder: Path, database_url: str) -> None:
    stack = Stack(folder, database_url=database_url, settings={"SECKILL_AUDIT_PAUSES": "on"})
    await stack.start()
    sale = await stack.create_sale(units=50)
    crowd = Crowd(stack, sale)
    try:
        await asyncio.gather(*(crowd.buy(f"buyer-{n}") for n in range(20)))
        async with stack.engine() as engine:
            await until_drained(engine)
            (found,) = await engine.ledger.sales()
        watching = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "seckill", "audit", "--watch", "--json"),
            env=os.environ | {"SECKILL_DATA_DIR": str(stack.data), "SECKILL_DATABASE_URL": stack.settings.database_url},
            stdout=asyncio.subprocess.PIPE,
        )
        assert watching.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert json.loads(await watching.stdout.readline())["verdict"] == "holds"
            client: Any = connect(stack.settings.redis_url)
            # The gate itself would notice that a key is gone, and the keeper would rebuild it. Only an audit sees this.
            record = (await client.hget(keys.buyers(found.round.ref), "buyer-7")).split(b":")
            await client.hset(keys.buyers(found.round.ref), "buyer-7", b":".join([*record[:4], b"other", *record[5:]]))
            await client.aclose()
            planted_s = time.monotonic()
            while (said := json.loads(await watching.stdout.readline()))["verdict"] == "holds":
                pass
            print(f"named after {time.monotonic() - planted_s:.2f} s")  # noqa: T201
        named = {finding["order_id"] for each in said["invariants"] for finding in each["findings"]}
        assert crowd.orders["buyer-7"] in named
        watching.terminate()
        await watching.communicate()
        assert watching.returncode == 1, "something was broken"
        # The keeper has seen it, too: it tells people once, and pauses the sale as it was told to.
        async with asyncio.timeout(PATIENCE_S):
            for number in itertools.count():
                if (await crowd.press(f"late-{number}")).json().get("code") == "paused":
                    break
                await asyncio.sleep(0.2)
        async with asyncio.timeout(PATIENCE_S):  # it pauses first, and tells people then
            while not (lines := stack.lines('"invariant": "orders"')):
                await asyncio.sleep(0.05)
        (told,) = lines
        assert crowd.orders["buyer-7"] in told
    finally:
        await crowd._http.aclose()
        stack.stop()
