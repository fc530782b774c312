"""Units that are not paid for come back, again and again, while processes are killed: never two at once, never lost."""

import asyncio
import itertools
import os
import random
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.e2e.checks import check_audit, rows, until_drained, until_passed_on
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.patience import STORY_PATIENCE_S

UNITS = 60
PAYERS_AT_ONCE = 8
KILLS = int(os.environ.get("KILLS", "1"))  # of each role, besides what the failpoints kill
WINDOWS = {
    "ledger.end.inside": 0.1,
    "keeper.ledger.outbox.after": 0.1,
    "keeper.gate.release.after": 0.1,
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # one of the two, to keep the run short
@pytest.mark.timeout(1800)
async def test_every_unit_is_sold_again_and_in_the_end_all_are_paid(folder: Path, database_url: str) -> None:
    chance = random.Random(7)
    failpoints = ",".join(f"{name}=kill:{p}" for name, p in WINDOWS.items())
    stack = Stack(folder, database_url=database_url, settings={"SECKILL_CLAIM_IDLE_S": "1"})
    async with running(stack, SECKILL_FAILPOINTS=failpoints):
        sale = await stack.create_sale(units=UNITS, pay_within_s=2)
        crowd = Crowd(stack, sale)
        enough = asyncio.Event()
        numbers = itertools.count()

        async def never_pays() -> None:
            while not enough.is_set():
                await crowd.buy(f"idle-{next(numbers)}")
                await asyncio.sleep(0.05)

        buying = [asyncio.create_task(never_pays()) for _ in range(6)]
        killed: Counter[str] = Counter()
        async with asyncio.timeout(STORY_PATIENCE_S):
            while killed.total() < 4 * KILLS or min(stack.hits(WINDOWS).values()) < 1:
                await asyncio.sleep(chance.uniform(0.5, 2))
                assert await _never_oversold(stack)
                if spared := [role for role in ("api", "worker", "keeper", "valkey") if killed[role] < KILLS]:
                    role = chance.choice(spared)
                    killed[role] += stack.kill(role)
        enough.set()
        await asyncio.gather(*buying)
        stack.kill_everything()
        await stack.start()
        await _pay_for_everything(stack, crowd)
        await _check_the_end(stack, crowd)
        print(f"killed {dict(killed)}, windows {stack.hits(WINDOWS)}, orders {len(crowd.orders)}")  # noqa: T201
        assert stack.stop() == 0


async def _never_oversold(stack: Stack) -> bool:
    """Reads the ledger's own rows, not its counter."""
    sql = "SELECT coalesce(sum(quantity), 0) FROM orders WHERE state IN ('unpaid', 'paid')"
    ((units,),) = await rows(stack.settings.database_url, sql)
    return bool(units <= UNITS)


async def _pay_for_everything(stack: Stack, crowd: Crowd) -> None:
    """Buyers who pay at once, until there is nothing left to buy."""
    numbers = itertools.count()
    paid: set[str] = set()

    async def buy_and_pay() -> None:
        while len(paid) < UNITS:
            user = f"payer-{next(numbers)}"
            await crowd.buy(user)
            if user not in crowd.orders:
                await asyncio.sleep(0.1)  # sold out for now: a buyer still has time to pay
            elif await _pay(stack, crowd, user):
                paid.add(user)

    async with asyncio.timeout(STORY_PATIENCE_S):
        await asyncio.gather(*(buy_and_pay() for _ in range(PAYERS_AT_ONCE)))
    await crowd.buy("too-late")
    assert "too-late" not in crowd.orders


async def _pay(stack: Stack, crowd: Crowd, user: str) -> bool:
    url = f"/v1/orders/{crowd.orders[user]}/pay"
    while True:
        response: httpx2.Response = await crowd._http.post(
            url, headers={"Authorization": f"Bearer {stack.token(user)}"}
        )
        if response.status_code == 200:
            return True
        if response.json().get("code") == "order_over":  # too slow on this machine: the unit goes on
            return False
        await asyncio.sleep(0.05)  # still queued


async def _check_the_end(stack: Stack, crowd: Crowd) -> None:
    async with stack.engine() as engine:
        await until_drained(engine)
        await until_passed_on(engine)
        (found,) = await engine.ledger.sales()
        tally = await engine.ledger.tally(found.round.id)
        view = await engine.gate.inspect(found.round.ref)
        assert tally is not None
        assert view is not None
        assert (tally.paid, tally.unpaid, tally.sold, view.available) == (UNITS, 0, UNITS, 0)
        assert view.admitted == tally.recorded, "nothing admitted is missing, nothing is there that was not"
        assert view.released == tally.ended, "each unit came back once"
        assert tally.ended > UNITS, "units were sold again and again"
        await check_audit(engine)
        ids = {
            engine.order_ids.encode(row.id): row.user_id
            for row in await rows(stack.settings.database_url, "SELECT id, user_id FROM orders")
        }
        assert all(ids.get(order_id) == user for user, order_id in crowd.orders.items())
        twice = "SELECT order_id FROM outbox WHERE kind = 'release' GROUP BY order_id HAVING count(*) > 1"
        assert await rows(stack.settings.database_url, twice) == []
        captured = "SELECT count(*), count(DISTINCT order_id), sum(amount_cents) FROM payments"
        assert [tuple(map(int, row)) for row in await rows(stack.settings.database_url, captured)] == [
            (UNITS, UNITS, UNITS * 9900)
        ]
