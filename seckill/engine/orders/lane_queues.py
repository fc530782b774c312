"""Looks after the queues of the lanes: creates them, measures how much waits in them, and removes consumers that are
gone for good."""

from seckill.engine.rounds.lane_damage import LaneDamage
from seckill.ports.ledger import LaneLedger
from seckill.ports.transport import LaneQueuesTransport
from seckill.telemetry import BACKLOG

# A consumer that holds no entries and has been silent for this long belongs to a worker that is gone.
CONSUMER_IDLE_S = 3600.0


class LaneQueues:
    def __init__(self, transport: LaneQueuesTransport, ledger: LaneLedger, damage: LaneDamage) -> None:
        self._transport = transport
        self._ledger = ledger
        self._damage = damage
        self._lanes: set[int] = set()

    async def measure_backlog(self) -> int:
        lanes = await self._ledger.lanes_in_use()
        if lanes != self._lanes:
            # otherwise a foreign value in the place of a queue would vanish, and only the log would say so
            await self._damage.discard()
            await self._transport.prepare(sorted(lanes))
            self._lanes = lanes
        backlog = await self._transport.backlog(lanes)
        BACKLOG.set(backlog)
        return backlog

    async def retire_consumers(self) -> int:
        return await self._transport.retire_consumers(CONSUMER_IDLE_S)
