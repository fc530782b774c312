"""Decides which claims are traced: those whose caller is traced, and a share of the others, but never more than a few a
second.

How many claims pass before the next one is traced is drawn beforehand, so a claim that is not traced only costs
counting down a number, in `TracedProtocol`. That gives the same share as throwing a die for each claim.

A stranger can send a header at no cost, so a header must not make us trace everything. It is only heeded from our own
proxies and from this machine. The bound holds for them as well, since a proxy may pass on whatever a client has
written. Claims that callers ask us to trace and claims that we choose ourselves have separate bounds, so that neither
can use up the other's.
"""

import math
import random
import sys
import time
from collections.abc import Callable

from seckill.domain.trace import Trace

NEVER = sys.maxsize


class Bound:
    """Allows at most this many in each second of the clock."""

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
        # How many claims remain until the next chosen one, for callers that count by themselves and call `choose` for
        # that one.
        self.left = self._gap()

    def choose(self, parent: Trace | None) -> str | None:
        """Returns the trace that a claim belongs to, empty if it starts its own, or None if it is not traced. `parent`:
        what the caller's header says, if we trust the caller."""
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
        """Draws how many claims pass until one is chosen, if each has the same chance."""
        if self._ratio <= 0:
            return NEVER
        if self._ratio >= 1:
            return 1
        return 1 + int(math.log1p(-self._random()) / math.log1p(-self._ratio))
