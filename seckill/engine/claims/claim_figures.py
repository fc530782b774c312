"""Figures of an API process: how many claims it refused and why, and how long its answers took lately.

They are kept in a fixed amount of memory, so that counting costs a claim nothing noticeable.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from seckill.domain.outcome import Outcome
from seckill.telemetry import ANSWER_SECONDS, Durations, spread

WINDOW_S = 10
# How many rounds are remembered; the one whose last claim is longest ago is dropped first.
ROUNDS_MAX = 200
# Upper bounds of the buckets in seconds: 0.5 ms to above 10 s, each 1.3 times the one before, so a percentile is off by
# that factor at most.
BOUNDS_S = tuple(0.0005 * 1.3**step for step in range(39))

_ACCEPTED = (Outcome.ADMITTED, Outcome.REPEATED)


class ClaimFigures:
    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.claims = 0
        self._refused: OrderedDict[int, Counter[str]] = OrderedDict()
        self._slots: OrderedDict[int, list[int]] = OrderedDict()  # second → answers by bucket
        self._accepted = Durations(ANSWER_SECONDS.labels("accepted"))
        self._refusals_took = Durations(ANSWER_SECONDS.labels("refused"))

    def note(self, round_id: int, outcome: Outcome, took_s: Sequence[float]) -> None:
        """Counts claims with the same outcome. `took_s`: their durations, in ascending order."""
        self.claims += len(took_s)
        if outcome in _ACCEPTED:
            self._accepted.add(took_s)
        else:
            self._refusals_took.add(took_s)
            self._refusals(round_id)[outcome] += len(took_s)
        second = int(self._monotonic())
        slot = self._slots.get(second)
        if slot is None:
            slot = self._slots[second] = [0] * (len(BOUNDS_S) + 1)
            while len(self._slots) > WINDOW_S:
                self._slots.popitem(last=False)
        spread(took_s, BOUNDS_S, slot)

    def exemplify(self, outcome: Outcome, took_s: float, trace_id: str) -> None:
        """Links the metrics to the trace of a traced claim."""
        (self._accepted if outcome in _ACCEPTED else self._refusals_took).exemplify(took_s, trace_id)

    def tell(self) -> None:
        """Adds what was noted since the last call to the metrics."""
        self._accepted.tell()
        self._refusals_took.tell()

    def _refusals(self, round_id: int) -> Counter[str]:
        counted = self._refused.get(round_id)
        if counted is None:
            counted = self._refused[round_id] = Counter()
            if len(self._refused) > ROUNDS_MAX:
                self._refused.popitem(last=False)
        self._refused.move_to_end(round_id)
        return counted

    def refused(self) -> dict[str, dict[str, int]]:
        return {str(round_id): dict(counted) for round_id, counted in self._refused.items()}

    def answers(self) -> list[int]:
        """Returns the answers of the last WINDOW_S seconds by bucket; empty if there were none."""
        since = int(self._monotonic()) - WINDOW_S
        return added(slot for second, slot in self._slots.items() if second > since)


def added(counts: Iterable[Sequence[int]]) -> list[int]:
    """Adds up the buckets of seconds or of processes. Ignores counts with another number of buckets, which come from
    another version."""
    total: list[int] = []
    for slot in counts:
        if len(slot) == len(BOUNDS_S) + 1:
            total = [a + b for a, b in zip(total or [0] * len(slot), slot, strict=True)]
    return total


def percentile_ms(counts: Sequence[int], share: float) -> float | None:
    """Returns an upper bound of the time within which this share of the answers came, or None if there were none."""
    if not sum(counts):
        return None
    wanted = share * sum(counts)
    index = next(i for i, reached in enumerate(accumulate(counts)) if reached >= wanted)
    return round(BOUNDS_S[min(index, len(BOUNDS_S) - 1)] * 1000, 1)
