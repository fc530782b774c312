"""Limits how fast claims are let in where a sale has more units than the queue has room for: once the ledger is behind,
about as fast as orders are written.

The queue is there to take a rush, so nothing that fits into it is slowed down. More than that would fill it sooner or
later, and then buyers would be refused only because this node had let others in faster than the workers can write. They
wait here for a moment instead, and the CPU time that the API does not use meanwhile is left to the workers.

Each node decides for itself by what it sees of the lane: how much all nodes let in, how much is written, and how much
waits. The less a node has let in so far, the more it may raise its rate, which brings all nodes to equal shares.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from seckill.ports.transport import FlowTransport, LaneFlow
from seckill.telemetry import PACED_LANES

# Rates are averaged over this time, because the worker settles hundreds of orders at a time.
WINDOW_S = 1.0
# Nothing is slowed down below this share of the allowed lag.
EARLY = 0.5
# Below this share, the ledger counts as idle.
IDLE = 0.1
# The rate of all nodes together, as a share of the writing rate: when the ledger is far behind, and when it is not.
SHARE_MIN, SHARE_MAX = 0.5, 2.0
# From one look to the next, a rate changes by no more than these factors, because a ledger may stand still for a
# moment. It also rises by this factor while the ledger is idle, because it is then unknown how fast it could be.
FALL_MAX, RISE_MAX = 4.0, 2.0
# How strongly nodes with a lower rate catch up with the others: 0 is not at all; 1 is at once, but unsteadily.
EVENING = 0.2
# The lowest rate of a node, as a share of the writing rate. So a lane can have a hundred busy nodes.
NODE_MIN = 0.01
RATE_MIN = 10.0
# A node that lets in less than this share of its rate needs no limit.
UNUSED = 0.8
# Any ledger writes this many orders in a moment, so they say nothing about its pace.
FEW = 1_000
# A call contains no more claims than are let in within this time, so that no claim waits much longer than necessary.
CALL_S = 0.1
# A claim that would wait longer than this is refused at once.
WAIT_S = 2.0


class LanePace:
    """The pace of one lane on this node. `rate`: orders a second; None: unlimited."""

    __slots__ = ("_free_s", "_monotonic", "passed", "rate")

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._free_s = 0.0
        self.rate: float | None = None
        self.passed = 0  # claims that were sent; while there is a rate, orders that came from them

    def after(self, admitted: int) -> float:
        """Returns how long the next call has to wait after one that admitted this many. The wait is bounded, because
        these claims may have been let in when there was no rate yet."""
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
    rate: float | None  # the rate until then
    flow: LaneFlow


class WritingPace:
    """`lag_s`: how much of the ledger's work may wait before claims do; 0: claims never wait here. `room`: how many
    orders a lane's queue takes."""

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
        """`on_sale`: for each lane to which this node sends claims, how many units can still be sold there."""
        lanes = [lane for lane in on_sale if self._lag_s and self._is_busy(lane)]
        for lane in self._looks.keys() - set(lanes):
            del self._looks[lane]
            self.of(lane).rate = None
        if lanes:
            for lane, flow in (await self._transport.flow(lanes)).items():
                self._consider(lane, flow, fits=flow.waiting + on_sale[lane] <= self._room)
        PACED_LANES.set(sum(pace.rate is not None for pace in self._lanes.values()))

    def _is_busy(self, lane: int) -> bool:
        """Whether claims were sent since the oldest look that counts."""
        pace, looks = self.of(lane), self._looks.get(lane)
        return pace.rate is not None or pace.passed > (looks[0].passed if looks else 0)

    def _consider(self, lane: int, flow: LaneFlow, *, fits: bool) -> None:
        pace, looks = self.of(lane), self._looks.setdefault(lane, deque())
        # the gate has forgotten something, perhaps only a day of long ago
        if looks and flow.admitted < looks[-1].flow.admitted:
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
        # If the ledger writes nothing, it is unknown how fast it will be. That is an outage, which the queue is for.
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
