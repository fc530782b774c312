"""kill -9 at random moments under load. Whatever was answered with 202 is a row afterwards, once, and units add up."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.e2e.checks import check_conservation, until_drained
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.patience import STORY_PATIENCE_S

UNITS = 1_000_000
BUYERS_AT_ONCE = 24
# The windows in which a worker's death hurts most, and the API's around the admission.
WINDOWS = {
    "worker.transport.read.after": 0.02,
    "ledger.record.inside": 0.02,
    "worker.ledger.record.after": 0.02,
    "api.gate.admit.before": 0.005,
    "api.gate.admit.after": 0.005,
}
HITS_MIN = 1  # of each window
KILLS = int(os.environ.get("KILLS", "1"))  # of each role, besides


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # one of the two, to keep the run short
@pytest.mark.timeout(1800)
async def test_nothing_accepted_is_lost_whatever_is_killed(folder: Path, database_url: str) -> None:
    chance = random.Random(20261115)
    stack = Stack(folder, database_url=database_url, settings={"SECKILL_CLAIM_IDLE_S": "1"})
    killed: Counter[str] = Counter()
    async with running(stack, SECKILL_FAILPOINTS=_failpoints(WINDOWS)):
        sale = await stack.create_sale(units=UNITS)
        crowd = Crowd(stack, sale)
        enough = asyncio.Event()
        buying = asyncio.create_task(crowd.keep_buying(enough, BUYERS_AT_ONCE))
        await _kill_until_every_window_was_hit(stack, killed, chance, buying)
        enough.set()
        await buying
        stack.kill_everything()  # once more, with the last answers just given
        await stack.start()
        async with stack.engine() as engine:
            await until_drained(engine)
            (found,) = await engine.ledger.sales()
            await check_conservation(engine, found, stack.settings.database_url, crowd.orders)
        for user in chance.sample(sorted(crowd.orders), 100):
            await crowd.buy(user)  # with the key of the first time
        assert crowd.changed == [], "a repeat with the same key gave another order"
        assert len(crowd.orders) > 200, "there was load all along"
        # Later processes found and mended what the kills had left behind.
        assert stack.logged('"event": "taken over"') > 0
        hits = stack.hits(WINDOWS)
        print(f"killed {dict(killed)}, windows {hits}, accepted {len(crowd.orders)}, retries {crowd.retries}")  # noqa: T201
        assert stack.stop() == 0


async def _kill_until_every_window_was_hit(
    stack: Stack, killed: Counter[str], chance: random.Random, buying: asyncio.Task[None]
) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + STORY_PATIENCE_S
    wanted = {"api": KILLS, "worker": KILLS, "valkey": KILLS, "everything": 1}
    while loop.time() < deadline_s:
        await asyncio.sleep(chance.uniform(0.2, 1.5))
        assert not buying.done(), "the buyers gave up"
        target = chance.choice([role for role in wanted if killed[role] < wanted[role]] or ["nobody"])
        if target == "everything":
            stack.kill_everything()
            # Only what was not hit yet: a process that dies often is started again later and later.
            await stack.start(
                SECKILL_FAILPOINTS=_failpoints([name for name, hits in stack.hits(WINDOWS).items() if not hits])
            )
            killed[target] += 1
        elif stack.kill(target):
            killed[target] += 1
        if all(killed[r] >= n for r, n in wanted.items()) and min(stack.hits(WINDOWS).values()) >= HITS_MIN:
            return
    pytest.fail(f"not every window was hit: killed {dict(killed)}, windows {stack.hits(WINDOWS)}")


def _failpoints(windows: Iterable[str]) -> str:
    return ",".join(f"{name}=kill:{WINDOWS[name]}" for name in windows)


async def test_a_dead_workers_entries_are_done_soon(folder: Path) -> None:
    """The system is idle: no new order has to come for the old ones to be found (F39)."""
    stack = Stack(folder, api=1, settings={"SECKILL_CLAIM_IDLE_S": "1"})
    async with running(stack, SECKILL_FAILPOINTS="worker.transport.read.after=kill:1"):
        sale = await stack.create_sale()
        crowd = Crowd(stack, sale)
        await asyncio.gather(*(crowd.buy(f"buyer-{i}") for i in range(20)))
        while not stack.logged("failpoint worker.transport.read.after: kill"):
            await asyncio.sleep(0.02)
        assert len(crowd.orders) == 20
        stack.kill_everything()
        await stack.start()
        async with stack.engine() as engine:
            await until_drained(engine)
            (found,) = await engine.ledger.sales()
            await check_conservation(engine, found, stack.settings.database_url, crowd.orders)
        assert stack.logged('"event": "taken over"') > 0


async def test_with_the_worker_stopped_claims_go_on_to_the_cap(folder: Path) -> None:
    """SIGSTOP the worker, fill the backlog, let it go on (F12, F18)."""

    stack = Stack(folder, api=1, settings={"SECKILL_BACKLOG_MAX": "50"})
    async with running(stack):
        sale = await stack.create_sale(units=200)
        (worker,) = stack.pids("worker")
        os.kill(worker, signal.SIGSTOP)
        crowd = Crowd(stack, sale)
        responses = await asyncio.gather(*(crowd.press(f"buyer-{i}", key="k") for i in range(120)))
        accepted = {f"buyer-{i}": r.json()["order_id"] for i, r in enumerate(responses) if r.status_code == 202}
        refused = [r for r in responses if r.status_code != 202]
        assert len(accepted) == 50
        assert {(r.status_code, r.json()["code"]) for r in refused} == {(503, "overloaded")}
        assert all(r.headers["retry-after"] for r in refused)
        async with stack.engine() as engine:
            (found,) = await engine.ledger.sales()
            view = await engine.gate.inspect(found.round.ref)
            assert view is not None
            assert (view.available, view.backlog) == (150, 50)
            os.kill(worker, signal.SIGCONT)
            await until_drained(engine)
            await asyncio.gather(*(crowd.buy(f"buyer-{i}") for i in range(50, 120)))
            await until_drained(engine)
            await check_conservation(engine, found, stack.settings.database_url, accepted | crowd.orders)


async def test_a_frozen_gate_gives_a_bounded_and_honest_answer(folder: Path) -> None:
    """Valkey stopped, not dead: 503 within bounds; the same key later gives the one true answer."""

    stack = Stack(folder, api=1)
    async with running(stack):
        sale = await stack.create_sale(units=10)
        crowd = Crowd(stack, sale)
        await crowd.buy("early")
        (valkey,) = stack.pids("valkey")
        os.kill(valkey, signal.SIGSTOP)
        # It stays stopped until all have an answer.
        responses = await asyncio.gather(*(crowd.press(f"buyer-{i}", key="key of it") for i in range(10)))
        os.kill(valkey, signal.SIGCONT)
        assert {r.status_code for r in responses} == {503}
        codes = Counter(r.json()["code"] for r in responses)
        assert set(codes) <= {"unknown", "not_ready"}
        assert codes["unknown"] >= 1
        again = [await crowd.press(f"buyer-{i}", key="key of it") for i in range(10)]
        once_more = [await crowd.press(f"buyer-{i}", key="key of it") for i in range(10)]
        orders = [r.json().get("order_id") for r in again]
        assert [r.json().get("order_id") for r in once_more] == orders
        assert sum(order is not None for order in orders) == 9
        accepted = {f"buyer-{i}": order for i, order in enumerate(orders) if order} | crowd.orders
        async with stack.engine() as engine:
            await until_drained(engine)
            (found,) = await engine.ledger.sales()
            view = await check_conservation(engine, found, stack.settings.database_url, accepted)
            assert view.admitted == 10
