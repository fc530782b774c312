"""The worker: reads admissions from the streams and writes them to the ledger, many in one transaction."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from seckill.domain.admission import Admission
from seckill.engine.orders.expiry_hints import ExpiryReminders
from seckill.errors import EpochOver, LedgerRefused, LedgerUnavailable, SeckillError, TransportUnavailable
from seckill.loops import BACKOFF_S_MAX, BACKOFF_S_MIN, Stop, gets_on, repeat
from seckill.ports.broker import Delays
from seckill.ports.ledger import Recorded, WorkerLedger
from seckill.ports.queue_entry import standing_alone
from seckill.ports.transport import Delivery, WorkerTransport
from seckill.telemetry import (
    ENTRIES_REFUSED,
    ORDERS_RECORDED,
    RECORD_BATCH,
    RECORD_SECONDS,
    SETTLE_MISMATCHES,
    TAKEN_OVER,
)

log = structlog.get_logger()

T = TypeVar("T")

BATCH_MAX = 1000
READ_WAIT_S = 0.5
# The pause after a reading that was not full, so that the next one finds more: a transaction costs the same for one
# order as for a hundred, and no buyer notices such a short wait. The first order after a silence does not wait at all.
GATHER_S = 0.05
TAKE_OVER_EVERY_S = 1.0
# When told to stop, the worker goes on while there is something to write, up to this long.
DRAIN_S_MAX = 10.0


@dataclass(slots=True)
class RecordResult:
    """The result of one batch. `refused` entries are set aside in the ledger, to be tried again."""

    new: int = 0
    repeated: int = 0
    refused: int = 0
    states: dict[str, list[int]] = field(default_factory=dict)
    done: list[Delivery] = field(default_factory=list)


class Worker:
    def __init__(
        self,
        transport: WorkerTransport,
        ledger: WorkerLedger,
        stop: Stop,
        *,
        lanes: Sequence[int],
        claim_idle_s: float,
        retry_delay_s: float,
        delays: Delays | None = None,
    ) -> None:
        self._transport = transport
        self._ledger = ledger
        self._stop = stop
        self._lanes = set(lanes)
        self._claim_idle_s = claim_idle_s
        self._retry_delay_s = retry_delay_s
        self._delays = delays
        self._reminders = None if delays is None else ExpiryReminders(ledger, delays)

    async def prepare(self) -> None:
        self._lanes |= await self._ledger.lanes_in_use()
        await self._transport.prepare(sorted(self._lanes))

    async def add_lanes(self) -> None:
        """Adds lanes of older rounds: the settings may name fewer lanes now than when those were made."""
        if await self._ledger.lanes_in_use() - self._lanes:
            await self.prepare()

    async def read_and_record(self, wait_s: float = READ_WAIT_S) -> int:
        """Reads once. Returns how many orders it found."""
        deliveries = await self._transport.read(BATCH_MAX, wait_s)
        await self._record_all(deliveries)
        return len(deliveries)

    async def take_over(self) -> int:
        """Takes over entries that another worker took and did not finish in time, or that this one could not finish."""
        deliveries = await self._transport.take_over(self._claim_idle_s, BATCH_MAX)
        if deliveries:
            log.info("taken over", orders=len(deliveries))
            TAKEN_OVER.inc(len(deliveries))
        await self._record_all(deliveries)
        return len(deliveries)

    async def _record_all(self, deliveries: Sequence[Delivery]) -> None:
        start = 0
        while start < len(deliveries):
            end = _end_of_entry(deliveries, start + BATCH_MAX)
            await self.record(deliveries[start:end])
            start = end

    async def record(self, deliveries: Sequence[Delivery]) -> RecordResult:
        """Writes the ledger first, then settles the stream, then tells waiting buyers. After a crash between any two,
        the rest is repeated, nothing more."""
        result = RecordResult()
        readable = []
        for delivery in deliveries:
            if delivery.admission is None:
                await self._set_aside(result, delivery, delivery.problem, self._retry_delay_s)
            else:
                readable.append((delivery, delivery.admission))
        await self._write(readable, result)
        if result.done:
            settled = await self._transport.settle(result.done)
            missed = len(result.done) - min(settled.acknowledged, settled.deleted)
            if missed:  # a worker that was taken for dead has finished them as well: the rows are the same
                SETTLE_MISMATCHES.inc(missed)
                log.info("settled by another worker before", orders=missed)
            await self._tell(result)
            if self._reminders is not None:
                await self._reminders.after_commit(d.admission for d in result.done if d.admission is not None)
        return result

    async def _write(self, batch: Sequence[tuple[Delivery, Admission]], result: RecordResult) -> None:
        """Writes the batch in one transaction. If the ledger refuses it, halves it until the entry at fault stands
        alone."""
        if not batch:
            return
        try:
            admissions = [admission for _, admission in batch]
            recorded = await self._when_possible(lambda: self._ledger.record(admissions))
        except LedgerRefused as error:
            if len(batch) == 1:
                delay_s = 0.0 if isinstance(error, EpochOver) else self._retry_delay_s
                await self._set_aside(result, batch[0][0], str(error), delay_s)
                return
            middle = len(batch) // 2
            await self._write(batch[:middle], result)
            await self._write(batch[middle:], result)
            return
        RECORD_BATCH.observe(len(batch))
        self._note(recorded, result)
        result.done += [delivery for delivery, _ in batch]

    async def _when_possible(self, write: Callable[[], Awaitable[T]]) -> T:
        """Waits for an unreachable database, which is no entry's fault. Nothing else is read meanwhile."""
        backoff_s = BACKOFF_S_MIN
        while True:
            try:
                with RECORD_SECONDS.time():
                    return await write()
            except LedgerUnavailable as error:
                log.warning("the ledger is away, waiting", reason=str(error))
                gets_on()
                if await self._stop.wait(backoff_s):
                    raise
                backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)

    def _note(self, recorded: Recorded, result: RecordResult) -> None:
        result.new += recorded.new
        result.repeated += recorded.repeated
        for state, numbers in recorded.states.items():
            result.states.setdefault(state, []).extend(numbers)
        ORDERS_RECORDED.labels("new").inc(recorded.new)
        ORDERS_RECORDED.labels("repeated").inc(recorded.repeated)

    async def _set_aside(self, result: RecordResult, delivery: Delivery, reason: str, delay_s: float) -> None:
        alone = standing_alone(delivery)
        await self._when_possible(lambda: self._ledger.set_aside(alone, reason, delay_s))
        if self._delays is not None and delay_s > 0:
            text = alone.payload.decode(errors="replace")
            await self._delays.remind_of_retry(delay_s, text, reason)
        result.refused += 1
        result.done.append(delivery)
        ENTRIES_REFUSED.inc()
        log.error(
            "an entry cannot be written; it is set aside and tried again",
            lane=delivery.lane,
            entry=alone.entry_id,
            reason=reason,
        )

    async def _tell(self, result: RecordResult) -> None:
        try:
            await self._transport.publish_states(result.states)
        except TransportUnavailable as error:  # a buyer who waits finds it in the ledger
            log.warning("states not announced", orders=len(result.done), reason=str(error))


def _end_of_entry(deliveries: Sequence[Delivery], end: int) -> int:
    """Returns `end`, or the end of the entry that goes on there: orders of one entry are settled together."""
    while end < len(deliveries):
        before, after = deliveries[end - 1], deliveries[end]
        if (before.lane, before.entry_id) != (after.lane, after.entry_id):
            break
        end += 1
    return min(end, len(deliveries))


async def run_worker(worker: Worker, stop: Stop) -> None:
    """Reads until told to stop, looks for abandoned entries every second, then drains what is left."""
    await repeat("worker start", worker.prepare, stop, once=True)
    next_round_s = 0.0

    async def step() -> None:
        nonlocal next_round_s
        if time.monotonic() >= next_round_s:
            await worker.add_lanes()
            while await worker.take_over() >= BATCH_MAX and not stop.is_set():
                gets_on()
            next_round_s = time.monotonic() + TAKE_OVER_EVERY_S
        if 0 < await worker.read_and_record() < BATCH_MAX:
            await stop.wait(GATHER_S)

    await repeat("worker", step, stop)
    try:
        async with asyncio.timeout(DRAIN_S_MAX):
            while await worker.read_and_record(wait_s=0):
                pass
    except (TimeoutError, SeckillError) as error:
        log.warning("stopped with entries left in the stream, they wait for the next worker", reason=repr(error))
