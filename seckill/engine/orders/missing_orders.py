"""Finds orders that the gate has admitted but neither the queue nor the ledger has, because a queue was lost or the
ledger is an older copy. `order_recovery.py` writes them.
"""

from seckill.domain.sale import NOTHING_COUNTED, Round
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.orders.order_recovery import Unwritten, raise_alarm
from seckill.engine.sale_cache import WATCH_AFTER_MS, SaleCache
from seckill.ports.gate import PulseGate
from seckill.ports.ledger import MissingOrdersLedger
from seckill.ports.transport import QueuesTransport


class MissingOrders:
    def __init__(
        self,
        gate: PulseGate,
        transport: QueuesTransport,
        ledger: MissingOrdersLedger,
        sale_cache: SaleCache,
        unwritten: Unwritten,
        alarm: Alarm,
    ) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._unwritten = unwritten
        self._alarm = alarm
        self._added: dict[int, int] = {}  # lane → entries that its queue has ever had
        self._complete: set[int] = set()  # rounds that are over and whose orders are all in the ledger
        self._explained: dict[int, int] = {}  # round → how many units the ledger rightly counts fewer than the gate

    async def write(self) -> int:
        """Returns how many were written.

        The gate is read first, then the queues, then the ledger. An order that was admitted by then and is no longer
        queued must be in the ledger. Usually an empty queue shows that nothing is under way, and a lost queue shows at
        once."""
        rounds = [round_ for round_ in self._sale_cache.recent() if round_.id not in self._complete]
        now_ms, pulses = await self._gate.pulses([round_.ref for round_ in rounds])
        queues = await self._transport.queues({lane for round_ in rounds for lane in round_.every_lane})
        lost = {lane for lane, queue in queues.items() if queue.added < self._added.get(lane, 0)}
        if lost:
            await self._alarm.raise_(AlarmCause.QUEUES_LOST, {"lanes": sorted(lost)})
        counted = await self._ledger.counted([round_.id for round_ in rounds])
        written = 0
        for round_, pulse in zip(rounds, pulses, strict=True):
            least = counted.get(round_.id, NOTHING_COUNTED)
            if pulse is None or pulse.epoch != least.epoch:
                continue
            missing = pulse.admitted - least.admitted
            self._explained[round_.id] = explained = min(missing, self._explained.get(round_.id, 0))
            is_still = not any(queues[lane].waiting for lane in round_.every_lane)
            if not lost.isdisjoint(round_.every_lane) or (is_still and missing > explained):
                written += await self._write(round_)
                later = (await self._ledger.counted([round_.id])).get(round_.id, NOTHING_COUNTED)
                self._explained[round_.id] = max(0, pulse.admitted - later.admitted) if is_still else 0
            elif is_still and now_ms > round_.ends_ms + WATCH_AFTER_MS:
                self._complete.add(round_.id)  # the gate admits no one any more
        self._added |= {lane: queue.added for lane, queue in queues.items()}
        return written

    async def _write(self, round_: Round) -> int:
        sale = await self._ledger.sale(round_.sale_id, round_.id)
        if sale is None or sale.round.retired_ms is not None or sale.round.opened_ms is None:
            return 0
        written = await self._unwritten.write(sale.round)
        if written:
            await raise_alarm(self._alarm, sale.round, written)
        return written.new
