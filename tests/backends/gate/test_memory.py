"""The store in memory promises more than the suite tests: a test that gives it a clock and a way decides everything."""

import asyncio
import copy
import random
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from seckill.backends.memory.gate import MemoryGate
from seckill.backends.memory.store import MemoryStore, Way
from seckill.backends.memory.transport import MemoryTransport
from seckill.domain.admission import Claim
from seckill.domain.order_number import COUNTER_MAX
from seckill.domain.outcome import Outcome
from seckill.errors import GateError, TransportUnavailable
from seckill.ports.gate import Release
from seckill.ports.transport import Settled
from tests.backends.gate.conftest import give_back, open_round, outcomes, rebuild
from tests.making import HOUR_MS, make_round

NOON_MS = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1000)
DAY_MS = 24 * HOUR_MS
ROUND = make_round(total=1000, begins_ms=NOON_MS, ends_ms=NOON_MS + 100 * DAY_MS)


class Clock:
    def __init__(self) -> None:
        self.now_ms = NOON_MS

    def __call__(self) -> int:
        return self.now_ms


class VirtualTime(asyncio.SelectorEventLoop):
    """There is no real waiting: when nothing is ready, the clock moves on to the next timer."""

    now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return NOON_MS + int(self.now_s * 1000)

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now_s = max(self.now_s, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(loop: VirtualTime, work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


async def test_the_window_is_right_to_the_millisecond() -> None:
    clock = Clock()
    gate = MemoryGate(MemoryStore(clock), backlog_max=10)
    await open_round(gate, replace(ROUND, ends_ms=NOON_MS + 1000))
    for now_ms, outcome in (
        (NOON_MS - 1, Outcome.NOT_STARTED),
        (NOON_MS, Outcome.ADMITTED),
        (NOON_MS + 999, Outcome.ADMITTED),
        (NOON_MS + 1000, Outcome.ENDED),
    ):
        clock.now_ms = now_ms
        assert await outcomes(gate, ROUND.ref, [Claim(f"at {now_ms}", 1)]) == [outcome]


async def test_each_day_counts_from_one_and_forty_days_are_kept() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    gate = MemoryGate(store, backlog_max=1000)
    await open_round(gate, ROUND)
    counters = []
    for day in range(45):
        clock.now_ms = NOON_MS + day * DAY_MS
        answers = (await gate.admit(ROUND.ref, [Claim(f"{day} {name}", 1) for name in "ab"])).answers
        counters += [answer.holdings[0].number.counter for answer in answers]
    assert counters == [1, 2] * 45
    days = store.contents.days[ROUND.lane]
    assert (len(days), min(days), max(days)) == (41, "20260305", "20260414")


async def test_the_days_counter_stops_at_its_24_bits() -> None:
    store = MemoryStore(Clock())
    gate = MemoryGate(store, backlog_max=10)
    await open_round(gate, ROUND)
    store.contents.days[ROUND.lane] = {"20260301": COUNTER_MAX - 1}
    assert await outcomes(gate, ROUND.ref, [Claim("ann", 1), Claim("bob", 1)]) == [
        Outcome.ADMITTED,
        Outcome.OVERLOADED,
    ]


def test_waiting_takes_no_time_but_the_clocks() -> None:
    """Nothing but timers of the loop is waited for, so hours pass at once."""
    loop = VirtualTime()

    async def main() -> None:
        store = MemoryStore(loop.now_ms)
        gate = MemoryGate(store, backlog_max=10)
        dead, alive = MemoryTransport(store), MemoryTransport(store)
        await open_round(gate, ROUND)
        for transport in (dead, alive):
            await transport.prepare([ROUND.lane])
        assert await alive.read(10, 3600) == []
        assert loop.now_s == 3600
        waiting = asyncio.ensure_future(dead.read(10, 3600))
        await asyncio.sleep(1800)
        await gate.admit(ROUND.ref, [Claim("ann", 1)])
        held = await waiting
        assert loop.now_s == 5400, "woken at once"
        together = asyncio.gather(dead.read(10, 60), alive.read(10, 60))
        await asyncio.sleep(30)
        await gate.admit(ROUND.ref, [Claim("bob", 1)])
        first, second = await together
        assert (len(first), len(second), loop.now_s) == (1, 0, 5460), "the other one waits on"
        await dead.settle(first)
        assert await alive.take_over(60.001, 10) == []
        await asyncio.sleep(0.001)
        assert await alive.take_over(60.001, 10) == held
        await rebuild(gate, replace(ROUND, epoch=2), {})
        await asyncio.sleep(3600)
        assert await alive.retire_consumers(3600) == 1
        assert await alive.settle(held) == Settled(1, 1)

    run(loop, main())


def test_the_same_seed_gives_the_same_history() -> None:
    assert history(1) == history(1)
    assert history(1) != history(2)


def history(seed: int) -> object:
    """Buyers, workers and a keeper that gives units back, over ways that delay and cut: all that happened, in order."""
    loop, chance = VirtualTime(), random.Random(seed)
    happened: list[object] = []

    async def travel(way: Way) -> None:
        await asyncio.sleep(chance.random())
        if chance.random() < 0.1:
            raise ConnectionError(way)

    async def main() -> object:
        store = MemoryStore(loop.now_ms)
        await open_round(MemoryGate(store, backlog_max=1000), replace(ROUND, total=30))

        async def buy(user: str) -> None:
            gate = MemoryGate(store, backlog_max=20, travel=travel)
            for _ in range(4):
                try:
                    (answer,) = (await gate.admit(ROUND.ref, [Claim(user, 1, "k")])).answers
                    happened.append((loop.now_s, user, answer))
                    if answer.holdings and chance.random() < 0.3:
                        released = await give_back(gate, ROUND.ref, [Release(answer.holdings[0].number, user, 1)])
                        happened.append((loop.now_s, user, released))
                except GateError as error:
                    happened.append((loop.now_s, user, str(error)))

        async def work(name: str) -> None:
            transport = MemoryTransport(store, travel=travel)
            for _ in range(30):
                try:
                    await transport.prepare([ROUND.lane])
                    found = await transport.read(3, 0.5) + await transport.take_over(2, 3)
                    happened.append((loop.now_s, name, [delivery.payload for delivery in found]))
                    happened.append((loop.now_s, name, await transport.settle(found)))
                except TransportUnavailable as error:
                    happened.append((loop.now_s, name, str(error)))

        await asyncio.gather(*(buy(f"u{i}") for i in range(40)), *(work(f"w{i}") for i in range(3)))
        held = store.contents.rounds[ROUND.ref]
        live = [h for record in store.contents.buyers[ROUND.ref].values() for h in record.live]
        assert 0 <= held.available == held.total - held.admitted + held.released
        assert len(live) == held.admitted - held.released <= held.total
        return happened, store.contents

    return run(loop, main())


async def test_a_store_that_goes_back_in_time_has_what_it_had_then() -> None:
    """An old backup, or a replica that lagged. What is done twice after it does no harm here."""
    clock = Clock()
    store = MemoryStore(clock)
    gate, transport, other = MemoryGate(store, backlog_max=10), MemoryTransport(store), MemoryTransport(store)
    await open_round(gate, ROUND)
    await transport.prepare([ROUND.lane])
    await gate.admit(ROUND.ref, [Claim("ann", 1), Claim("bob", 1)])
    backup = copy.deepcopy(store.contents)
    deliveries = await transport.read(10, 0)
    await gate.admit(ROUND.ref, [Claim("cid", 1)])
    store.contents = backup
    view = await gate.inspect(ROUND.ref)
    assert view is not None
    assert (view.admitted, view.backlog, view.buyers) == (2, 2, 2)
    assert await transport.settle(deliveries[:1]) == Settled(0, 1), "no consumer had it, by the backup"
    await other.prepare([ROUND.lane])
    assert await other.read(10, 0) == deliveries[1:]
    (answer,) = (await gate.admit(ROUND.ref, [Claim("dan", 1)])).answers
    (late,) = await other.read(10, 0)
    assert late.admission is not None
    assert late.admission.number == answer.holdings[0].number
    assert late.entry_id not in {delivery.entry_id for delivery in deliveries}
