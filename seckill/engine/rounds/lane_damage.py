"""What a lane has for all its rounds: the queue, the counters of order numbers, and where it is. If something else
stands under one of these keys, no round of the lane can sell. It is taken away, and people are told.

Nothing more is needed. What a queue had in it is found in the buyers' records (`orders/missing_orders.py`), the gate
gives out no number twice without its counter, and a lane of which it is unknown where it was is compared
(`failover.py`).
"""

from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.ports.gate import LaneGate
from seckill.ports.ledger import LaneLedger
from seckill.telemetry import GATE_DAMAGE


class LaneDamage:
    def __init__(self, gate: LaneGate, ledger: LaneLedger, alarm: Alarm) -> None:
        self._gate = gate
        self._ledger = ledger
        self._alarm = alarm

    async def discard(self) -> int:
        """Returns how many keys were made good."""
        discarded = await self._gate.discard_damage(sorted(await self._ledger.lanes_in_use()))
        GATE_DAMAGE.inc(len(discarded))
        for key in discarded:
            await self._alarm.raise_(AlarmCause.KEY_TAKEN, {"key": key})
        return len(discarded)
