"""How fast claims are let in where a sale has more units than the queue has room for: once the ledger is behind, about
as fast as orders are written.

The queue is there to take a rush, so nothing is slowed down that fits into it. What does not fit would fill it sooner
or later, and then people would be refused only because this node had let others in faster than anybody can write. They
wait here instead, for a moment; and what the API does not do meanwhile leaves the cores to those that write.

Each node decides for itself, by what it sees of the lane: what all of them let in, what is written, and how much waits.
The less a node has let in so far, the more it may add to that, which brings all of them to equal shares.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from seckill.ports.transport import FlowTransport, LaneFlow
from seckill.telemetry import PACED_LANES

# Rates are taken over this long: the worker settles hundreds of orders at a time.
WINDOW_S = 1.0
# Nothing is slowed down before this share of the lag that is allowed.
EARLY = 0.5
# And below this share, the ledger has nothing to do.
IDLE = 0.1
# All nodes together let in so much of what is written when the ledger is far behind, and so much when it is not.
SHARE_MIN, SHARE_MAX = 0.5, 2.0
# From one look to the next, a rate changes by no more than these factors: a ledger may stand still for a moment. It
# rises as fast while the ledger has nothing to do, since then nobody knows how fast it could be.
FALL_MAX, RISE_MAX = 4.0, 2.0
# How strongly nodes with less than others catch up with them: 0 not at all, 1 at once, and with much ado.
EVENING = 0.2
# The least that a node lets in, of what is written. More than a hundred busy nodes in one lane would be too many.
NODE_MIN = 0.01
RATE_MIN = 10.0
# A node that lets in less than this share of what it may has no need of a limit.
UNUSED = 0.8
# So many are written in a moment, by any ledger, and say nothing about its pace.
FEW = 1_000
# A call brings no more than is let in within this time, so that nobody waits much longer than they have to.
CALL_S = 0.1
# Who would wait longer than this is refused at once.
WAIT_S = 2.0


class LanePace:
    """Of one lane on this node. `rate`: orders a second; None: as they come."""

    __slots__ = ("_free_s", "_monotonic", "passed", "rate")

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._free_s = 0.0
        self.rate: float | None = None
        self.passed = 0  # claims that were sent; while there is a rate, orders that came of them

    def after(self, admitted: int) -> float:
        """How long the next call has to wait after one that admitted so many: not for ever, because these may have been
        let in when there was no rate yet."""
        self.passed += admitted
        if self.rate is None:
            return 0.0
        now_s = self._monotonic()
        self._free_s = min(max(now_s, self._free_s) + admitted / self.rate, now_s + WAIT_S)
        return self._free_s - now_s


@dataclass(frozen=True, slots=True)
class _Look:
    at_s: float
    passed: int
    rate: float | None  # that there was until then
    flow: LaneFlow


class WritingPace:
    """`lag_s`: how much of the ledger's work may wait before anybody does; 0: nobody ever waits here.
    `room`: how many orders a lane's queue takes."""

    def __init__(
        self,
        transport: FlowTransport,
        lag_s: float,
        room: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._lag_s = lag_s
        self._room = room
        self._monotonic = monotonic
        self._lanes: dict[int, LanePace] = {}
        self._looks: dict[int, deque[_Look]] = {}

    def of(self, lane: int) -> LanePace:
        pace = self._lanes.get(lane)
        if pace is None:
            pace = self._lanes[lane] = LanePace(self._monotonic)
        return pace

    async def look(self, on_sale: Mapping[int, int]) -> None:
        """`on_sale`: of each lane that this node sends claims to, how many units can still be sold there."""
        lanes = [lane for lane in on_sale if self._lag_s and self._is_busy(lane)]
        for lane in self._looks.keys() - set(lanes):
            del self._looks[lane]
            self.of(lane).rate = None
        if lanes:
            for lane, flow in (await self._transport.flow(lanes)).items():
                self._consider(lane, flow, fits=flow.waiting + on_sale[lane] <= self._room)
        PACED_LANES.set(sum(pace.rate is not None for pace in self._lanes.values()))

    def _is_busy(self, lane: int) -> bool:
        """Claims were sent since the oldest look that counts."""
        pace, looks = self.of(lane), self._looks.get(lane)
        return pace.rate is not None or pace.passed > (looks[0].passed if looks else 0)

    def _consider(self, lane: int, flow: LaneFlow, *, fits: bool) -> None:
        pace, looks = self.of(lane), self._looks.setdefault(lane, deque())
        if looks and flow.admitted < looks[-1].flow.admitted:  # the gate has forgotten, if only a day of long ago
            looks.clear()
        look = _Look(self._monotonic(), pace.passed, pace.rate, flow)
        looks.append(look)
        while len(looks) > 1 and look.at_s - looks[1].at_s >= WINDOW_S:
            looks.popleft()
        since = looks[0]
        took_s = look.at_s - since.at_s
        if took_s < WINDOW_S / 2:
            return
        admitted = (flow.admitted - since.flow.admitted) / took_s
        written = admitted - (flow.waiting - since.flow.waiting) / took_s
        # Of a ledger that writes nothing, nobody knows how fast it will be. That is an outage, and the queue is for it.
        if fits or written <= 0:
            pace.rate = None
            return
        own, lags = (look.passed - since.passed) / took_s, flow.waiting / written / self._lag_s
        if pace.rate is None and (lags < EARLY or flow.waiting < FEW):
            return
        allowed = min((each.rate or 0.0 for each in looks), default=0.0)
        if pace.rate is not None and lags < EARLY and own < allowed * UNUSED:
            pace.rate = None
            return
        before = own if pace.rate is None else pace.rate
        if lags < IDLE:
            pace.rate = before * RISE_MAX
            return
        wanted = written * min(max(SHARE_MAX - lags, SHARE_MIN), SHARE_MAX)
        even = (written / own) ** EVENING if own > 0 else 1.0
        rate = own * even * wanted / admitted if admitted > 0 else wanted
        rate = min(max(rate, before / FALL_MAX), before * RISE_MAX)
        pace.rate = max(rate, written * NODE_MIN, RATE_MIN)


def call_max(rate: float, most: int) -> int:
    return max(1, min(most, math.ceil(rate * CALL_S)))


def waiting_max(rate: float, most: int) -> int:
    return max(1, min(most, math.ceil(rate * WAIT_S)))
