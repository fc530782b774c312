"""The keeper: the clockwork beside the sale."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from seckill.domain.sale import Counted, Round, RoundStatus
from seckill.engine.money.payments import Payments
from seckill.engine.money.refunds import RefundDesk
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.lapse_share import Lapses
from seckill.engine.orders.order_recovery import Unwritten, raise_alarm
from seckill.engine.orders.releases import BATCH_MAX, ReleaseDesk
from seckill.engine.rounds.failover import LaneFailover
from seckill.engine.rounds.opening import FIRST_EPOCH, Sync, bring_to_gate
from seckill.engine.rounds.rebuild import Rebuilder
from seckill.engine.rounds.repeating import RoundRepeater
from seckill.engine.rounds.retirement import Retirement
from seckill.engine.sale_cache import WATCH_AFTER_MS, SaleCache
from seckill.errors import GateUnavailable
from seckill.loops import Stop, repeat
from seckill.ports.alarm import Alarm
from seckill.ports.broker import Delays, Due
from seckill.ports.gate import KeeperGate
from seckill.ports.ledger import KeeperLedger
from seckill.ports.transport import KeeperTransport
from seckill.telemetry import BACKLOG, ROUNDS_MISSING

log = structlog.get_logger()

NOTHING = Counted(written=0, admitted=0, released=0, decided=0, revision=0, synced_revision=0, epoch=0)
EVERY_S = 1.0
EXPIRE_EVERY_S = 1.0
RETRY_EVERY_S = 0.5
BETWEEN_BATCHES_S = 0.05
# How long the keeper listens to a broker's delay queues before it checks whether it is time to stop.
HEED_S = 0.5
# A unit that comes back is to be on sale again within a second.
RELAY_EVERY_S = 0.2
LATE_EVERY_S = 0.2
REFUND_EVERY_S = 1.0
# Buyers wait for a lane that is on another server than before.
LANES_EVERY_S = 0.5
# Whether the servers are as they have to be.
SERVERS_EVERY_S = 0.5
# Nothing waits for it.
RETIRE_EVERY_S = 10.0
# It counts the orders of every round that is on.
LAPSES_EVERY_S = 10.0
# More would only wait for each other's connections to the database.
REBUILT_AT_ONCE = 8
# A consumer that holds nothing and was silent for this long belongs to a worker that is gone.
CONSUMER_IDLE_S = 3600.0


class Keeper:
    def __init__(
        self,
        gate: KeeperGate,
        transport: KeeperTransport,
        ledger: KeeperLedger,
        sale_cache: SaleCache,
        alarm: Alarm,
        *,
        repetition: RoundRepeater,
        moving: LaneFailover,
        rebuilder: Rebuilder,
        unwritten: Unwritten,
        retirement: Retirement,
    ) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._alarm = alarm
        self._repetition = repetition
        self._moving = moving
        self._rebuilder = rebuilder
        self._unwritten = unwritten
        self._retirement = retirement
        self._added: dict[int, int] = {}  # lane → entries that its queue has ever had
        self._complete: set[int] = set()  # rounds that are over, and all of whose orders the ledger has
        self._explained: dict[int, int] = {}  # round → units that the ledger counts fewer, and rightly so
        self._lanes: set[int] = set()
        self._lost: set[int] = set()
        self._refused: set[int] = set()
        self._not_there: set[int] = set()  # rounds whose opening is noted, and which could not be given their rules

    async def go_on(self) -> int:
        """Makes the next rounds of repeating sales. Returns how many."""
        await self._sale_cache.refresh_sales()
        return await self._repetition.make_due(await self._gate_time_ms())

    async def retire_rounds(self) -> int:
        return await self._retirement.step(await self._gate_time_ms())

    async def _gate_time_ms(self) -> int:
        if not self._sale_cache.is_fresh():
            await self._sale_cache.refresh_pulses()
        return self._sale_cache.now_ms()

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
        version of the catalogue tells us of a rebuild that another process has begun."""
        await self._sale_cache.refresh_sales()
        await self._gate_time_ms()  # the gate's clock decides which rounds are on
        counted = await self._ledger.counted([round_.id for round_ in self._sale_cache.watched()])
        pulses = await self._sale_cache.refresh_pulses()
        suspects = {round_.id: round_ for round_ in self._sale_cache.without_pulse()}
        for round_ in self._sale_cache.watched():
            pulse = pulses.get(round_.id)
            if pulse is None:
                continue
            least = counted.get(round_.id, NOTHING)
            released = pulse.available - (round_.total - pulse.admitted)
            went_back = pulse.admitted < least.admitted or released < least.released
            went_back = went_back or released > least.decided or pulse.revision > least.revision  # then the ledger has
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
        """By the newest word of the ledger, and then of the gate: what we remember may be older than what the gate has,
        and another keeper may have rebuilt the round since we looked. To rebuild it once more would void what was sold
        meanwhile."""
        sale = await self._ledger.sale(known.sale_id, known.id)
        if sale is None or self._is_new(sale.round) or sale.round.retired_ms is not None:
            return None
        self._sale_cache.put(sale)
        _, (pulse,) = await self._gate.pulses([sale.round.ref])
        if pulse is None or pulse.epoch != sale.round.epoch:
            return sale.round
        least = counted.get(sale.round.id, NOTHING)
        if pulse.admitted < least.admitted or pulse.revision < sale.round.synced_revision:
            return sale.round
        view = await self._gate.inspect(sale.round.ref)  # the total that we know may not be the gate's
        if view is None or view.epoch != sale.round.epoch:
            return None  # another process is rebuilding it
        # After the gate: what it has given back, and the rules that it has, the ledger must have decided by now.
        later = (await self._ledger.counted([sale.round.id])).get(sale.round.id, NOTHING)
        ledger_went_back = view.released > later.decided or view.revision > later.revision
        return sale.round if view.released < least.released or ledger_went_back else None

    async def _missed_by_releases(self) -> list[Round]:
        """Rounds that are over or closed, so that no keeper watches them, but whose orders still move."""
        watched = {round_.id for round_ in self._sale_cache.watched()}
        waiting = [round_ for round_ in await self._ledger.rounds_waiting(BATCH_MAX) if round_.id not in watched]
        if not waiting:
            return []
        _, pulses = await self._gate.pulses([round_.ref for round_ in waiting])
        return [
            round_
            for round_, pulse in zip(waiting, pulses, strict=True)
            if not self._is_new(round_) and (pulse is None or pulse.epoch != round_.epoch)
        ]

    async def rebuild_what_is_over(self) -> int:
        """Rounds that no keeper watches any more and of which the gate has something that does not count: from before a
        rebuild that is noted in the ledger, or fenced and left so by a keeper that died. Returns how many are whole
        again."""
        lost = []
        over = self._sale_cache.over()
        for start in range(0, len(over), BATCH_MAX):
            portion = over[start : start + BATCH_MAX]
            _, pulses = await self._gate.pulses([round_.ref for round_ in portion])
            for round_, pulse in zip(portion, pulses, strict=True):
                if pulse is not None and pulse.epoch == round_.epoch:
                    continue
                if await self._gate.inspect(round_.ref) is not None and (found := await self._confirm(round_, {})):
                    lost.append(found)
        return await self._rebuild(lost)

    async def rebuild_losses(self) -> int:
        """Returns how many sell again."""
        return await self._rebuild(await self.look_for_losses())

    async def _rebuild(self, rounds: Sequence[Round]) -> int:
        """Several at a time, as each has to wait for the next second, and first those that buyers wait for. A failure
        of one holds up no other."""
        now_ms = self._sale_cache.now_ms()
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
        """Opens lanes that are on another server than before, as soon as their data has been compared with the ledger,
        and rebuilds what is incomplete. Returns how many were opened."""
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

    async def write_missing(self) -> int:
        """Orders that the gate has admitted, and that neither the queue nor the ledger has: the queue was lost, or the
        ledger is a copy from before. Returns how many were written.

        The gate is read first, then the queues, then the ledger. What was admitted by then and is not queued any more
        must be in the ledger: usually an empty queue shows it, and a lost one shows it at once."""
        rounds = [round_ for round_ in self._sale_cache.recent() if round_.id not in self._complete]
        now_ms, pulses = await self._gate.pulses([round_.ref for round_ in rounds])
        queues = await self._transport.queues({lane for round_ in rounds for lane in round_.every_lane})
        lost = {lane for lane, queue in queues.items() if queue.added < self._added.get(lane, 0)}
        counted = await self._ledger.counted([round_.id for round_ in rounds])
        written = 0
        for round_, pulse in zip(rounds, pulses, strict=True):
            least = counted.get(round_.id, NOTHING)
            if pulse is None or pulse.epoch != least.epoch:
                continue
            missing = pulse.admitted - least.admitted
            self._explained[round_.id] = explained = min(missing, self._explained.get(round_.id, 0))
            is_still = not any(queues[lane].waiting for lane in round_.every_lane)
            if not lost.isdisjoint(round_.every_lane) or (is_still and missing > explained):
                written += await self._write_missing(round_)
                later = (await self._ledger.counted([round_.id])).get(round_.id, NOTHING)
                self._explained[round_.id] = max(0, pulse.admitted - later.admitted) if is_still else 0
            elif is_still and now_ms > round_.ends_ms + WATCH_AFTER_MS:
                self._complete.add(round_.id)  # the gate admits no one any more
        self._added |= {lane: queue.added for lane, queue in queues.items()}
        return written

    async def _write_missing(self, round_: Round) -> int:
        sale = await self._ledger.sale(round_.sale_id, round_.id)
        if sale is None or sale.round.retired_ms is not None or sale.round.opened_ms is None:
            return 0
        written = await self._unwritten.write(sale.round)
        if written:
            await raise_alarm(self._alarm, sale.round, written)
        return written.new

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
    release_desk: ReleaseDesk,
    failures: DeadLetterDesk,
    payments: Payments,
    refunds: RefundDesk,
    stop: Stop,
    delays: Delays | None = None,
    *,
    lapses: Lapses | None = None,
    audit: Callable[[], Awaitable[object]] | None = None,
    audit_every_s: float = 0.0,
    watch_servers: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """`audit`: one reading of the auditor; None: another process does it. The same goes for `watch_servers`."""

    async def step() -> None:
        await keeper.go_on()
        await keeper.sync_rounds()
        await keeper.measure_backlog()
        await keeper.rebuild_losses()
        await keeper.write_missing()
        await keeper.retire_consumers()

    async def tidy() -> None:
        await keeper.rebuild_what_is_over()
        await keeper.retire_rounds()

    async def expire() -> None:
        # A pause after each batch: payments write to the same database.
        while await release_desk.expire() == BATCH_MAX and not stop.is_set():
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
        loops.create_task(repeat("retirement", tidy, stop, every_s=RETIRE_EVERY_S))
        loops.create_task(repeat("relay", release_desk.relay, stop, every_s=RELAY_EVERY_S))
        loops.create_task(repeat("late payments", payments.decide_late, stop, every_s=LATE_EVERY_S))
        loops.create_task(repeat("refunds", refunds.make_due, stop, every_s=REFUND_EVERY_S))
        if watch_servers is not None:
            loops.create_task(repeat("servers", watch_servers, stop, every_s=SERVERS_EVERY_S))
        if lapses is not None:
            loops.create_task(repeat("lapses", lapses.look, stop, every_s=LAPSES_EVERY_S))
        if audit is not None:
            loops.create_task(repeat("audit", audit, stop, every_s=audit_every_s))
