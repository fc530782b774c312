"""The keeper: the clockwork beside the sale."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from seckill.afterlife import BATCH_MAX, Afterlife
from seckill.broker_ports import Delays, Due
from seckill.catalogue import Catalogue
from seckill.domain import Counted, Round, RoundStatus
from seckill.errors import GateUnavailable
from seckill.failures import Failures
from seckill.loops import Stop, repeat
from seckill.moving import Moving
from seckill.payments import Payments
from seckill.ports import Gate, Ledger, Transport
from seckill.rebuilding import Rebuilder
from seckill.repetition import Repetition
from seckill.retirement import Retirement
from seckill.rounds import FIRST_EPOCH, Sync, bring_to_gate
from seckill.telemetry import BACKLOG, ROUNDS_MISSING

log = structlog.get_logger()

NOTHING = Counted(written=0, admitted=0, released=0, synced_revision=0, epoch=0)
EVERY_S = 1.0
EXPIRE_EVERY_S = 1.0
RETRY_EVERY_S = 0.5
BETWEEN_BATCHES_S = 0.05
# How long a broker's delay queues are listened to before somebody looks whether it is time to stop.
HEED_S = 0.5
# A unit that comes back is to be on sale again within a second.
RELAY_EVERY_S = 0.2
LATE_EVERY_S = 0.2
REFUND_EVERY_S = 1.0
# Buyers wait for a lane that is on another server than before.
LANES_EVERY_S = 0.5
# Nothing waits for it.
RETIRE_EVERY_S = 10.0
# More would only wait for each other's connections to the database.
REBUILT_AT_ONCE = 8
# A consumer that holds nothing and was silent for so long belongs to a worker that is gone.
CONSUMER_IDLE_S = 3600.0


class Keeper:
    def __init__(
        self,
        gate: Gate,
        transport: Transport,
        ledger: Ledger,
        catalogue: Catalogue,
        lanes: int = 1,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger
        self._catalogue = catalogue
        self._rebuilder = Rebuilder(gate, transport, ledger, monotonic)
        self._moving = Moving(gate, ledger, catalogue)
        self._repetition = Repetition(ledger, catalogue, lanes)
        self._retirement = Retirement(gate, transport, ledger)
        self._lanes: set[int] = set()
        self._lost: set[int] = set()
        self._refused: set[int] = set()
        self._not_there: set[int] = set()  # rounds whose opening is noted, and which could not be given their rules

    async def go_on(self) -> int:
        """Makes the next rounds of repeating sales. Returns how many."""
        await self._catalogue.refresh_sales()
        return await self._repetition.make_due(await self._gate_time_ms())

    async def retire_rounds(self) -> int:
        return await self._retirement.step(await self._gate_time_ms())

    async def _gate_time_ms(self) -> int:
        if not self._catalogue.is_fresh():
            await self._catalogue.refresh_pulses()
        return self._catalogue.now_ms()

    async def sync_rounds(self) -> int:
        """Opens what is not open yet and passes on what operators changed. Returns how many it brought up to date."""
        done = 0
        for round_ in await self._ledger.rounds_to_sync():
            try:
                synced = await bring_to_gate(round_, self._gate, self._ledger)
            except GateUnavailable as error:
                self._tell_once(round_, error)
            else:
                self._refused.discard(round_.id)
                if synced is Sync.DONE:
                    done += 1
                else:
                    self._not_there.add(round_.id)
        return done

    def _tell_once(self, round_: Round, error: GateUnavailable) -> None:
        """A round that the gate refuses holds up no other."""
        if round_.id not in self._refused:
            log.error("the gate refuses a round", round=round_.id, reason=str(error))
        self._refused.add(round_.id)

    async def look_for_losses(self) -> list[Round]:
        """Rounds that were opened and that the gate no longer has, has in another epoch, or has from an earlier time.

        The ledger is read before the gate: what it has written then, the gate must have admitted by now, what it has
        relayed, the gate must have taken back, and rules that are noted to be in force, the gate must have. Otherwise
        a sale that was paused would sell again, or units that were added never. The epoch is the ledger's as well: no
        version of the catalogue tells us of a rebuild that somebody has begun."""
        await self._catalogue.refresh_sales()
        await self._gate_time_ms()  # which rounds are on is for the gate's clock to say
        counted = await self._ledger.counted([round_.id for round_ in self._catalogue.watched()])
        pulses = await self._catalogue.refresh_pulses()
        suspects = {round_.id: round_ for round_ in self._catalogue.without_pulse()}
        for round_ in self._catalogue.watched():
            pulse = pulses.get(round_.id)
            if pulse is None:
                continue
            least = counted.get(round_.id, NOTHING)
            released = pulse.available - (round_.total - pulse.admitted)
            went_back = pulse.admitted < least.admitted or released < least.released
            if pulse.epoch != least.epoch or went_back or pulse.revision < least.synced_revision:
                suspects[round_.id] = round_
        lost = [found for round_ in suspects.values() if (found := await self._confirm(round_, counted))]
        lost += await self._missed_by_releases()
        for round_ in lost:
            if round_.id not in self._lost:
                log.error("the gate has lost a round: it refuses until it is rebuilt", round=round_.id)
        self._lost = {round_.id for round_ in lost}
        ROUNDS_MISSING.set(len(lost))
        return lost

    async def _confirm(self, known: Round, counted: Mapping[int, Counted]) -> Round | None:
        """By the newest word of the ledger, and then of the gate: what we know by heart may be older than the gate's,
        and another keeper may have rebuilt the round since we looked. To rebuild it once more would void what was sold
        meanwhile."""
        sale = await self._ledger.sale(known.sale_id, known.id)
        if sale is None or self._is_new(sale.round) or sale.round.retired_ms is not None:
            return None
        self._catalogue.put(sale)
        _, (pulse,) = await self._gate.pulses([sale.round.ref])
        if pulse is None or pulse.epoch != sale.round.epoch:
            return sale.round
        least = counted.get(sale.round.id, NOTHING)
        if pulse.admitted < least.admitted or pulse.revision < sale.round.synced_revision:
            return sale.round
        view = await self._gate.inspect(sale.round.ref)  # the total that we know may not be the gate's
        went_back = view is not None and view.epoch == sale.round.epoch and view.released < least.released
        return sale.round if went_back else None

    async def _missed_by_releases(self) -> list[Round]:
        """Rounds that are over or closed, so that nobody watches them, but whose orders still move."""
        watched = {round_.id for round_ in self._catalogue.watched()}
        waiting = [round_ for round_ in await self._ledger.rounds_waiting(BATCH_MAX) if round_.id not in watched]
        if not waiting:
            return []
        _, pulses = await self._gate.pulses([round_.ref for round_ in waiting])
        return [
            round_
            for round_, pulse in zip(waiting, pulses, strict=True)
            if not self._is_new(round_) and (pulse is None or pulse.epoch != round_.epoch)
        ]

    async def rebuild_losses(self) -> int:
        """Returns how many sell again."""
        return await self._rebuild(await self.look_for_losses())

    async def _rebuild(self, rounds: Sequence[Round]) -> int:
        """Several at a time, as each has to wait for the next second, and those first for which buyers wait. What one
        fails with holds up no other."""
        now_ms = self._catalogue.now_ms()
        turns = asyncio.Semaphore(REBUILT_AT_ONCE)

        def rank(round_: Round) -> tuple[bool, bool, bool]:
            return round_.status is not RoundStatus.OPEN, round_.ends_ms <= now_ms, round_.begins_ms > now_ms

        async def step(round_: Round) -> bool:
            async with turns:
                try:
                    return await self._rebuilder.step(round_)
                except GateUnavailable as error:
                    self._tell_once(round_, error)
                    return False

        rebuilt = 0
        for result in await asyncio.gather(*map(step, sorted(rounds, key=rank)), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
            rebuilt += result
        return rebuilt

    async def look_after_lanes(self) -> int:
        """Opens lanes that are on another server than before, as soon as what is there has been compared with the
        ledger, and rebuilds what is incomplete. Returns how many were opened."""
        opened = await self._moving.step()
        await self._rebuild(await self._moving.lost())
        return opened

    async def measure_backlog(self) -> int:
        lanes = await self._ledger.lanes_in_use()
        if lanes != self._lanes:
            await self._transport.prepare(sorted(lanes))
            self._lanes = lanes
        backlog = await self._transport.backlog(lanes)
        BACKLOG.set(backlog)
        return backlog

    async def retire_consumers(self) -> int:
        return await self._transport.retire_consumers(CONSUMER_IDLE_S)

    def _is_new(self, round_: Round) -> bool:
        """Not opened yet is not lost. But one that was lost while it was being opened has no rules in the gate, and
        never gets any, unless it is rebuilt."""
        if round_.epoch > FIRST_EPOCH or round_.synced_revision > 0:
            return False
        return round_.opened_ms is None or round_.id not in self._not_there


async def run_keeper(
    keeper: Keeper,
    afterlife: Afterlife,
    failures: Failures,
    payments: Payments,
    stop: Stop,
    delays: Delays | None = None,
    *,
    audit: Callable[[], Awaitable[object]] | None = None,
    audit_every_s: float = 0.0,
) -> None:
    """`audit`: one reading of the auditor; None: somebody else does it."""

    async def step() -> None:
        await keeper.go_on()
        await keeper.sync_rounds()
        await keeper.measure_backlog()
        await keeper.rebuild_losses()
        await keeper.retire_consumers()

    async def expire() -> None:
        # A pause after each batch: payments write to the same database.
        while await afterlife.expire() == BATCH_MAX and not stop.is_set():
            await stop.wait(BETWEEN_BATCHES_S)

    async def heed() -> None:
        assert delays is not None
        for due in await delays.due(HEED_S):
            await (expire() if due is Due.EXPIRY else failures.retry_due())

    async with asyncio.TaskGroup() as loops:
        if delays is not None:
            loops.create_task(repeat("reminders", heed, stop))
        loops.create_task(repeat("keeper", step, stop, every_s=EVERY_S))
        loops.create_task(repeat("lanes", keeper.look_after_lanes, stop, every_s=LANES_EVERY_S))
        loops.create_task(repeat("expiry", expire, stop, every_s=EXPIRE_EVERY_S))
        loops.create_task(repeat("retries", failures.retry_due, stop, every_s=RETRY_EVERY_S))
        loops.create_task(repeat("retirement", keeper.retire_rounds, stop, every_s=RETIRE_EVERY_S))
        loops.create_task(repeat("relay", afterlife.relay, stop, every_s=RELAY_EVERY_S))
        loops.create_task(repeat("late payments", payments.decide_late, stop, every_s=LATE_EVERY_S))
        loops.create_task(repeat("refunds", payments.refund_due, stop, every_s=REFUND_EVERY_S))
        if audit is not None:
            loops.create_task(repeat("audit", audit, stop, every_s=audit_every_s))
