"""The messages to and from a sender, each a line of JSON."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec

from seckill.lab.rehearsal.crowd import HABITS, Habits, Phase

# Upper bounds of the buckets in seconds: 0.5 ms to above 30 s, each 1.15 times the one before, so a percentile is off
# by that factor at most.
BOUNDS_S = tuple(0.0005 * 1.15**step for step in range(80))


class SenderOrders(msgspec.Struct, kw_only=True):
    """The first line. It comes over a pipe because it contains a secret."""

    url: str
    sale_id: str
    number: int  # of this sender
    senders: int
    buyers: int  # of all senders together
    run: str  # the beginning of all buyers' names
    secret: str = ""  # signs their tokens
    claims: dict[str, object] = {}  # further claims of these tokens
    tokens: list[str] = []  # instead of a secret
    pays: bool = False
    connections_max: int = 1_000
    habits: Habits = HABITS


class PhaseOrders(msgspec.Struct, kw_only=True):
    phase: Phase  # the share of this sender
    begins_s: float  # by the machine's clock


class PhaseSeen(msgspec.Struct, kw_only=True):
    """What one sender, or all of them, saw. Waits count from the moment at which a visitor came, even if the request
    was sent later."""

    visits: int = 0
    pressed: int = 0
    outcomes: dict[str, int] = {}  # presses by the answer: accepted, a problem's code, or what went wrong
    waits: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))  # of answers, by bucket
    late: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))  # of sending, by bucket
    by_second: list[int] = []  # answers
    looked: int = 0
    watched: int = 0
    paid: int = 0
    failed_beside: int = 0  # requests to look, watch or pay that had no good answer
    connections: int = 0  # the most at one time
    bytes_out: int = 0
    bytes_in: int = 0
    cpu: list[float] = []  # the share of a core that each sender used
    took_s: float = 0.0  # until the last answer
    out_of_buyers: bool = False

    @property
    def answered(self) -> int:
        return sum(self.waits)


def note(buckets: list[int], took_s: float) -> None:
    buckets[bisect_left(BOUNDS_S, took_s)] += 1


def percentile_ms(buckets: Sequence[int], share: float) -> float | None:
    """Returns an upper bound of the time within which this share of the answers came, or None if there were none."""
    total = sum(buckets)
    if not total:
        return None
    index = next(place for place, reached in enumerate(accumulate(buckets)) if reached >= share * total)
    return round(BOUNDS_S[min(index, len(BOUNDS_S) - 1)] * 1000, 1)


def together(each: Sequence[PhaseSeen]) -> PhaseSeen:
    outcomes: dict[str, int] = {}
    for one in each:
        for name, count in one.outcomes.items():
            outcomes[name] = outcomes.get(name, 0) + count
    seconds = max((len(one.by_second) for one in each), default=0)
    return PhaseSeen(
        **{
            name: sum(getattr(one, name) for one in each)
            for name in (
                "visits",
                "pressed",
                "looked",
                "watched",
                "paid",
                "failed_beside",
                "connections",
                "bytes_out",
                "bytes_in",
            )
        },
        outcomes=outcomes,
        waits=_added(one.waits for one in each),
        late=_added(one.late for one in each),
        by_second=_added(one.by_second + [0] * (seconds - len(one.by_second)) for one in each),
        cpu=[share for one in each for share in one.cpu],
        took_s=max((one.took_s for one in each), default=0.0),
        out_of_buyers=any(one.out_of_buyers for one in each),
    )


def _added(counts: Iterable[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*counts, strict=True)]
