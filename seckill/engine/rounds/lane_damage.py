"""Repairs the keys that all rounds of a lane share: the queue, the counters of order numbers, and the lane's place. If
a foreign value stands under one of these keys, no round of the lane can sell. The value is removed, and an alarm is
raised.

Nothing more is needed. Lost entries of a queue are found in the buyers' records (`orders/missing_orders.py`), the gate
gives out no number twice even without its counter, and a lane whose former place is unknown is compared with the ledger
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
        """Returns how many keys were repaired."""
        discarded = await self._gate.discard_damage(sorted(await self._ledger.lanes_in_use()))
        GATE_DAMAGE.inc(len(discarded))
        for key in discarded:
            await self._alarm.raise_(AlarmCause.KEY_TAKEN, {"key": key})
        return len(discarded)
