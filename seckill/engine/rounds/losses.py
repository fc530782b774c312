"""Finds the rounds that the gate has lost: rounds that were opened and that it no longer has, has in another epoch, or
has in an earlier state. The store has forgotten them, was restored from a backup, or a server took over without the
newest data.

A suspicion is confirmed before anyone acts on it: a round that is rebuilt without need loses what it sold meanwhile.
"""

from collections.abc import Collection, Mapping

import structlog

from seckill.domain.sale import NOTHING_COUNTED, Counted, Round
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.orders.releases import BATCH_MAX
from seckill.engine.rounds.opening import RoundOpener
from seckill.engine.sale_cache import SaleCache
from seckill.ports.gate import LossGate, Pulse
from seckill.ports.ledger import LossLedger
from seckill.telemetry import GATE_DAMAGE, ROUNDS_MISSING

log = structlog.get_logger()


def _lacks_items(round_: Round, pulse: Pulse) -> bool:
    return pulse.items.keys() != {item.id for item in round_.items}


class LossDetection:
    def __init__(
        self, gate: LossGate, ledger: LossLedger, sale_cache: SaleCache, opener: RoundOpener, alarm: Alarm
    ) -> None:
        self._gate = gate
        self._alarm = alarm
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._opener = opener
        self._lost: set[int] = set()  # those that were reported
        self._damaged: set[int] = set()  # of these, those with an alarm

    async def find(self) -> list[Round]:
        """Looks at the rounds that are on and those that still have units to give back.

        The ledger is read before the gate. So the gate must have admitted every order that the ledger has written, must
        have taken back every unit whose release was passed on, and must have the rules that are noted as in force.
        Otherwise a paused sale would sell again, or added units would never be sold. The epoch is the ledger's as well:
        the catalogue's version does not show a rebuild that another process has begun."""
        await self._sale_cache.refresh_sales()
        await self._sale_cache.gate_time_ms()  # the gate's clock decides which rounds are on
        counted = await self._ledger.counted([round_.id for round_ in self._sale_cache.watched()])
        pulses = await self._sale_cache.refresh_pulses()
        suspects = {round_.id: round_ for round_ in self._sale_cache.without_pulse()}
        for round_ in self._sale_cache.watched():
            pulse = pulses.get(round_.id)
            if pulse is None:
                continue
            least = counted.get(round_.id, NOTHING_COUNTED)
            released = pulse.available - (round_.total - pulse.admitted)
            went_back = pulse.admitted < least.admitted or released < least.released
            # then the ledger went back
            went_back = went_back or released > least.decided or pulse.revision > least.revision
            went_back = went_back or _lacks_items(round_, pulse)
            if pulse.epoch != least.epoch or went_back or pulse.revision < least.synced_revision:
                suspects[round_.id] = round_
        lost = [found for round_ in suspects.values() if (found := await self._confirm(round_, counted))]
        lost += await self._missed_by_releases()
        for round_ in lost:
            if round_.id not in self._lost:
                await self._tell(round_)
        self._lost = {round_.id for round_ in lost}
        for round_id in self._damaged - self._lost:
            self._damaged.discard(round_id)
            await self._alarm.resolve("a damaged round is whole again", {"round": round_id}, ends=AlarmCause.DAMAGED)
        ROUNDS_MISSING.set(len(lost))
        return lost

    def undamaged(self) -> Collection[int]:
        """The rounds lost at the last look from which buyers should be able to buy. Damaged ones have had their
        alarm."""
        now_ms = self._sale_cache.now_ms()
        on = {round_.id for round_ in self._sale_cache.watched() if round_.begins_ms <= now_ms < round_.ends_ms}
        return (self._lost & on) - self._damaged

    async def _tell(self, round_: Round) -> None:
        """Logs a store that forgot. A value that none of our programs writes raises an alarm, because people have to
        explain it."""
        damage = await self._gate.damage(round_.ref)
        if damage:
            GATE_DAMAGE.inc(len(damage))
            facts = {"round": round_.id, "damage": damage}
            self._damaged.add(round_.id)
            await self._alarm.raise_(AlarmCause.DAMAGED, facts, lasting=True)
        else:
            log.error("the gate has lost a round: it refuses until it is rebuilt", round=round_.id)

    async def find_over(self) -> list[Round]:
        """Finds rounds that no keeper watches any more and of which the gate has an invalid state: from before a
        rebuild that the ledger has noted, or left fenced by a keeper that died."""
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
        return lost

    async def _confirm(self, known: Round, counted: Mapping[int, Counted]) -> Round | None:
        """Checks a suspicion against the newest state of the ledger, and then of the gate. What we remember may be
        older than what the gate has, and another keeper may have rebuilt the round since we looked. Rebuilding it once
        more would void what was sold meanwhile."""
        sale = await self._ledger.sale(known.sale_id, known.id)
        if sale is None or self._opener.is_new(sale.round) or sale.round.retired_ms is not None:
            return None
        self._sale_cache.put(sale)
        _, (pulse,) = await self._gate.pulses([sale.round.ref])
        if pulse is None or pulse.epoch != sale.round.epoch or _lacks_items(sale.round, pulse):
            return sale.round
        least = counted.get(sale.round.id, NOTHING_COUNTED)
        if pulse.admitted < least.admitted or pulse.revision < sale.round.synced_revision:
            return sale.round
        view = await self._gate.inspect(sale.round.ref)  # the total that we know may differ from the gate's
        if view is None or view.epoch != sale.round.epoch:
            return None  # another process is rebuilding it
        # Read after the gate: by now the ledger must know of every unit that the gate has given back and of the rules
        # that it has.
        later = (await self._ledger.counted([sale.round.id])).get(sale.round.id, NOTHING_COUNTED)
        ledger_went_back = view.released > later.decided or view.revision > later.revision
        return sale.round if view.released < least.released or ledger_went_back else None

    async def _missed_by_releases(self) -> list[Round]:
        """Finds rounds that no keeper watches, because they are over or closed, but whose orders still move."""
        watched = {round_.id for round_ in self._sale_cache.watched()}
        waiting = [round_ for round_ in await self._ledger.rounds_waiting(BATCH_MAX) if round_.id not in watched]
        if not waiting:
            return []
        _, pulses = await self._gate.pulses([round_.ref for round_ in waiting])
        return [
            round_
            for round_, pulse in zip(waiting, pulses, strict=True)
            if not self._opener.is_new(round_) and (pulse is None or pulse.epoch != round_.epoch)
        ]
