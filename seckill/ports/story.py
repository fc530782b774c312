"""How a round went, as the ledger shows it when it is over."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStory:
    """Times are the gate's, of when units were given out. All of it is read from orders, so it stays as long as they
    do."""

    first_ms: int | None  # None: no one has bought anything
    last_ms: int | None
    gone_ms: int | None  # when none of its units was left, for the first time; None: never
    orders: int
    units: int  # of all these orders: a unit that came back and was sold again counts twice
    returned: int
    curve: tuple[int, ...]  # units that had been given out at each of equal steps from the first to the last


class StoryLedger(Protocol):
    async def story(self, round_id: int, steps: int) -> RoundStory: ...
