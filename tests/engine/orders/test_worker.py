"""The worker against a ledger and a transport that fail where they are told to."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from seckill.domain.admission import Admission
from seckill.domain.order import States
from seckill.domain.order_number import OrderNumber
from seckill.engine.orders.worker import Worker
from seckill.errors import LedgerRefused, LedgerUnavailable, TransportUnavailable
from seckill.loops import Stop
from seckill.ports.ledger import Recorded
from seckill.ports.queue_entry import read_entry
from seckill.ports.transport import Delivery, Settled, whole_entries


def delivery(counter: int, **changes: Any) -> Delivery:
    admission = Admission(
        number=OrderNumber(1, 0, counter),
        round_id=1,
        epoch=1,
        user=f"u{counter}",
        quantity=1,
        slot=1,
        request_id="",
        admitted_ms=0,
    )
    return Delivery(0, f"{counter}-0", b"", **({"admission": admission} | changes))


class Ledger:
    """Refuses any batch that holds one of the bad numbers, and does not answer the first `away` calls."""

    def __init__(self, bad: set[int] = frozenset(), away: int = 0) -> None:  # type: ignore[assignment]
        self.bad = bad
        self.away = away
        self.rows: set[int] = set()
        self.aside: dict[str, str] = {}
        self.letters: list[Delivery] = []
        self.calls = 0

    async def record(self, admissions: Sequence[Admission]) -> Recorded:
        self.calls += 1
        if self.calls <= self.away:
            raise LedgerUnavailable("away")
        counters = {admission.number.counter for admission in admissions}
        if counters & self.bad:
            raise LedgerRefused("bad")
        new = counters - self.rows
        self.rows |= counters
        return Recorded(len(new), len(counters) - len(new), {"unpaid": [int(a.number) for a in admissions]})

    async def set_aside(self, delivery: Delivery, reason: str, retry_after_s: float) -> None:
        if delivery.entry_id not in self.aside:
            self.letters.append(delivery)
        self.aside[delivery.entry_id] = reason


class Transport:
    def __init__(self) -> None:
        self.settled: list[str] = []
        self.batches: list[Sequence[Delivery]] = []
        self.waiting: list[Delivery] = []
        self.told: list[States] = []
        self.broken = False

    async def settle(self, deliveries: Sequence[Delivery]) -> Settled:
        if self.broken:
            raise TransportUnavailable("away")
        self.settled += [d.entry_id for d in deliveries]
        self.batches.append(deliveries)
        return Settled(len(deliveries), len(deliveries))

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        return self.waiting

    async def publish_states(self, states: States) -> None:
        if self.broken:
            raise TransportUnavailable("away")
        self.told.append(states)


def worker(ledger: Any, transport: Any, stop: Stop | None = None) -> Worker:
    return Worker(transport, ledger, stop or Stop(), lanes=[0], claim_idle_s=0, retry_delay_s=5)


async def test_one_bad_row_in_two_hundred_leaves_199(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bad one is kept, to be tried again (F42, F13)."""
    ledger, transport = Ledger(bad={77}), Transport()
    result = await worker(ledger, transport).record([delivery(i) for i in range(200)])
    assert (result.new, result.refused) == (199, 1)
    assert ledger.rows == set(range(200)) - {77}
    assert ledger.aside == {"77-0": "bad"}
    assert len(transport.settled) == 200
    assert ledger.calls < 20, "halving, not one call for each"


async def test_an_entry_that_cannot_be_read_holds_up_nobody() -> None:
    ledger, transport = Ledger(), Transport()
    bad = Delivery(0, "9-9", b"{", None, "not JSON")
    result = await worker(ledger, transport).record([bad, *(delivery(i) for i in range(10))])
    assert (result.new, result.refused, len(transport.settled), len(ledger.aside)) == (10, 1, 11, 1)


async def test_orders_that_share_an_entry_are_settled_together_and_set_aside_one_by_one() -> None:
    """The one that is refused goes under a name of its own, in a form that every version reads."""
    ledger, transport = Ledger(bad={2}), Transport()
    shared = [structs.replace(delivery(i), entry_id="7-0", of=3) for i in (1, 2, 3)]
    for times in (1, 2):  # the second time as after a crash before it was settled
        result = await worker(ledger, transport).record(shared)
        assert (result.refused, len(transport.settled)) == (1, 3 * times)
    assert ledger.rows == {1, 3}
    assert ledger.aside == {"7-0.2": "bad"}
    (aside,) = ledger.letters
    assert read_entry(0, "7-0.2", aside.payload).admission == shared[1].admission


async def test_an_entry_is_never_settled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though a transaction has its limit."""
    monkeypatch.setattr("seckill.engine.orders.worker.BATCH_MAX", 4)
    ledger, transport = Ledger(), Transport()
    sizes = [3, 3, 1, 9, 2]
    transport.waiting = [
        structs.replace(delivery(10 * entry + i), entry_id=f"{entry}-0", of=size)
        for entry, size in enumerate(sizes)
        for i in range(size)
    ]
    assert await worker(ledger, transport).read_and_record() == sum(sizes)
    assert [whole_entries(batch)[0] for batch in transport.batches] == [
        {"0-0": 3, "1-0": 3},
        {"2-0": 1, "3-0": 9},
        {"4-0": 2},
    ]


async def test_a_database_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is settled before it is written, and nothing is dropped (F14)."""
    monkeypatch.setattr("seckill.engine.orders.worker.BACKOFF_S_MIN", 0.001)
    ledger, transport = Ledger(away=4), Transport()
    recording = asyncio.create_task(worker(ledger, transport).record([delivery(i) for i in range(5)]))
    while ledger.calls < 3:
        assert transport.settled == []
        await asyncio.sleep(0)
    assert (await recording).new == 5
    assert len(transport.settled) == 5


async def test_told_to_stop_while_the_database_is_away_it_leaves_the_entries() -> None:
    stop = Stop()
    stop.set()
    ledger, transport = Ledger(away=10**9), Transport()
    with pytest.raises(LedgerUnavailable):
        await worker(ledger, transport, stop).record([delivery(1)])
    assert transport.settled == []


async def test_delivered_fifty_times_it_is_one_row() -> None:
    ledger, transport = Ledger(), Transport()
    results = [await worker(ledger, transport).record([delivery(1)]) for _ in range(50)]
    assert sum(result.new for result in results) == 1
    assert sum(result.repeated for result in results) == 49
    assert sum(result.refused for result in results) == 0


async def test_a_stream_that_goes_away_after_the_commit_repeats_harmlessly() -> None:
    ledger, transport = Ledger(), Transport()
    transport.broken = True
    with pytest.raises(TransportUnavailable):
        await worker(ledger, transport).record([delivery(1)])
    transport.broken = False
    result = await worker(ledger, transport).record([delivery(1)])
    assert (result.new, result.repeated, transport.settled) == (0, 1, ["1-0"])


async def test_a_waiting_buyer_is_told_only_what_was_committed() -> None:
    ledger, transport = Ledger(bad={2}), Transport()
    await worker(ledger, transport).record([delivery(1), delivery(2)])
    assert transport.told == [{"unpaid": [int(OrderNumber(1, 0, 1))]}]
