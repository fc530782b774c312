"""Which claims are traced: those whose caller is traced, and of the others a share. Never more than a few a second.

A claim that is not traced pays for a number that is counted down, in `TracedProtocol`: how many claims pass before the
next one is chosen is drawn beforehand. That gives the same share as a die thrown for each.

A header costs a stranger nothing, so it must not make us trace everything. Only what our own proxies and this machine
send is heeded, and the bound holds for them as well: a proxy may pass on whatever a client has written. What is asked
for and what we choose ourselves have a bound each, so that none of the two can use up the other's.
"""

import math
import random
import sys
import time
from collections.abc import Callable

from seckill.domain.trace import Trace

NEVER = sys.maxsize


class Bound:
    """So many in a second of the clock, and no more."""

    def __init__(self, per_second: int, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._monotonic = monotonic
        self._second = -1
        self._taken = 0

    def take(self) -> bool:
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._taken = second, 0
        self._taken += 1
        return self._taken <= self._per_second


class Sampling:
    def __init__(
        self,
        ratio: float,
        per_second: int,
        *,
        heeds_parent: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
        random_: Callable[[], float] = random.random,
    ) -> None:
        self._ratio = ratio
        self._heeds_parent = heeds_parent
        self._random = random_
        self._asked = Bound(per_second, monotonic)
        self._own = Bound(per_second, monotonic)
        # Claims until the next that is chosen, for whoever counts by itself: that one comes to `choose`.
        self.left = self._gap()

    def choose(self, parent: Trace | None) -> str | None:
        """What a claim is to be traced under, empty for a trace of its own; None: it is not traced. `parent`: what the
        caller says, if it is one that we believe."""
        if parent is not None and self._heeds_parent:
            return str(parent) if parent.sampled and self._asked.take() else None
        self.left -= 1
        if self.left > 0:
            return None
        self.left = self._gap()
        if not self._own.take():
            return None
        return "" if parent is None else str(parent)

    def _gap(self) -> int:
        """How many claims it takes until one is chosen, if each has the same chance."""
        if self._ratio <= 0:
            return NEVER
        if self._ratio >= 1:
            return 1
        return 1 + int(math.log1p(-self._random()) / math.log1p(-self._ratio))
