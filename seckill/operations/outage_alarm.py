"""Raises an alarm when no one can buy or nothing can be written for longer than a hiccup lasts. A shop without
Prometheus must not sleep through an outage."""

import time
from collections.abc import Callable, Collection, Mapping

from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.readiness import Readiness, StoreHealth
from seckill.ports.ledger import ProbeLedger

EVERY_S = 2.0
# A server's restart and a failover take less than this, and no one has to get up for them.
AFTER_S = 20.0
# An alarm names at most this many; the audit names all.
NAMED_MAX = 20

_OVER: Mapping[AlarmCause, str] = {
    AlarmCause.GATE_AWAY: "the gate answers again",
    AlarmCause.GATE_FULL: "the gate has room again",
    AlarmCause.LEDGER_AWAY: "orders can be written again",
    AlarmCause.ROUNDS_LOST: "the gate has all rounds again",
}


class OutageAlarm:
    """`lost`: returns the rounds that the gate was last found to have lost."""

    def __init__(
        self,
        readiness: Readiness,
        ledger: ProbeLedger,
        lost: Callable[[], Collection[int]],
        alarm: Alarm,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._readiness = readiness
        self._ledger = ledger
        self._lost = lost
        self._alarm = alarm
        self._monotonic = monotonic
        self._since_s: dict[AlarmCause, float] = {}
        self._told: set[AlarmCause] = set()

    async def step(self) -> int:
        """Returns how many troubles there are. Operators are told of each once, and when it is over."""
        began_s = self._monotonic()
        found = await self._look()
        now_s = self._monotonic()
        self._since_s = {trouble: self._since_s.get(trouble, began_s) for trouble in found}
        for trouble, facts in found.items():
            if trouble not in self._told and now_s - self._since_s[trouble] >= AFTER_S:
                self._told.add(trouble)
                await self._alarm.raise_(trouble, facts, lasting=True)
        for trouble in self._told - found.keys():
            self._told.discard(trouble)
            await self._alarm.resolve(_OVER[trouble], {}, ends=trouble)
        return len(found)

    async def _look(self) -> dict[AlarmCause, dict[str, object]]:
        found: dict[AlarmCause, dict[str, object]] = {}
        gate = (await self._readiness.look()).gate
        if gate is StoreHealth.AWAY:
            found[AlarmCause.GATE_AWAY] = {}
        elif gate is StoreHealth.FULL:
            found[AlarmCause.GATE_FULL] = {}
        elif lost := self._lost():  # while the gate is away, the last look at it means nothing
            found[AlarmCause.ROUNDS_LOST] = {"rounds": sorted(lost)[:NAMED_MAX], "lost": len(lost)}
        if not await self._writes():
            found[AlarmCause.LEDGER_AWAY] = {}
        return found

    async def _writes(self) -> bool:
        try:
            await self._ledger.try_writing()
        except Exception:  # whatever the reason, nothing was written. The workers' logs have the details
            return False
        return True
