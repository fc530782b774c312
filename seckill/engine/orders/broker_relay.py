"""The relay: moves entries from the lane streams to a broker, which delivers them to the workers.

An entry counts as relayed when the broker has confirmed it, and stays in its stream until the ledger has its order. A
crash between any two steps publishes some entries twice, and workers recognise a repeated order. Several relays share
the streams, as workers do.
"""

import math
import time
from collections.abc import Callable, Sequence

import structlog

from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.errors import TransportUnavailable
from seckill.loops import Stop, repeat
from seckill.ports.broker import Courier, RelaySource
from seckill.ports.ledger import LaneLedger
from seckill.ports.transport import Delivery
from seckill.telemetry import RELAYED

log = structlog.get_logger()

BATCH_MAX = 500
READ_WAIT_S = 0.5
LOOK_EVERY_S = 1.0
# If an entry is still in its stream after this time and no message waits for a worker, the broker has lost it. Or else
# a worker is slow, and gets a copy that it will recognise.
LOST_AFTER_S = 30.0


class Relay:
    def __init__(
        self,
        source: RelaySource,
        courier: Courier,
        ledger: LaneLedger,
        alarm: Alarm,
        *,
        lanes: Sequence[int],
        claim_idle_s: float,
        lost_after_s: float = LOST_AFTER_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._courier = courier
        self._ledger = ledger
        self._alarm = alarm
        self._lanes = set(lanes)
        self._claim_idle_s = claim_idle_s
        self._lost_after_s = lost_after_s
        self._monotonic = monotonic
        self._started_over_s = -math.inf
        self._refused = False

    async def prepare(self) -> None:
        self._lanes |= await self._ledger.lanes_in_use()
        await self._source.prepare(sorted(self._lanes))

    async def add_lanes(self) -> None:
        if await self._ledger.lanes_in_use() - self._lanes:
            await self.prepare()

    async def relay(self, wait_s: float = READ_WAIT_S) -> int:
        """Reads once. Returns how many entries it found."""
        entries = await self._source.read(BATCH_MAX, wait_s)
        await self._post(entries)
        return len(entries)

    async def take_over(self) -> int:
        """Takes over entries that the broker did not confirm to this relay, or to one that died."""
        entries = await self._source.take_over(self._claim_idle_s, BATCH_MAX)
        await self._post(entries)
        return len(entries)

    async def _post(self, entries: Sequence[Delivery]) -> None:
        if not entries:
            return
        confirmed = await self._courier.post(entries)
        await self._source.confirmed(confirmed)
        RELAYED.labels("confirmed").inc(len(confirmed))
        if refused := len(entries) - len(confirmed):
            RELAYED.labels("refused").inc(refused)
            await self._complain(refused)
        else:
            self._refused = False

    async def _complain(self, refused: int) -> None:
        """Logs once for each outage, not once for each try."""
        if not self._refused:
            await self._alarm.raise_(AlarmCause.BROKER_REFUSES, {"entries": refused})
        self._refused = True
        raise TransportUnavailable(f"RabbitMQ has refused {refused} entries; they are published again.")

    async def look_for_losses(self) -> bool:
        """Returns True if everything in the streams will be published again."""
        waiting = await self._courier.waiting()
        if waiting is None:
            log.error("the broker had lost its queue of orders: publishing again what the streams have")
        elif waiting or await self._source.oldest_s() < self._lost_after_s or not self._is_time():
            return False
        else:
            log.warning("entries do not arrive: publishing again what the streams have")
        self._started_over_s = self._monotonic()
        await self._source.start_over()
        return True

    def _is_time(self) -> bool:
        """Messages that were published last time get a chance first."""
        return self._monotonic() - self._started_over_s > self._lost_after_s


async def run_relay(relay: Relay, stop: Stop) -> None:
    await repeat("broker relay start", relay.prepare, stop, once=True)
    next_look_s = 0.0

    async def step() -> None:
        nonlocal next_look_s
        if time.monotonic() >= next_look_s:
            next_look_s = time.monotonic() + LOOK_EVERY_S
            await relay.add_lanes()
            await relay.look_for_losses()
            while await relay.take_over() == BATCH_MAX and not stop.is_set():
                pass
        await relay.relay()

    await repeat("broker relay", step, stop)
