"""How much one buyer waits for on this node: long polls, event streams and sockets together."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# Enough for every open tab and device of one person. Each costs memory for as long as it lasts.
SEATS_PER_BUYER_MAX = 20


class NoSeat(Exception):
    """The buyer has as many as there may be."""


class Seats:
    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextmanager
    def taken_by(self, user: str) -> Iterator[None]:
        """Raises NoSeat."""
        if self._taken[user] >= SEATS_PER_BUYER_MAX:
            raise NoSeat
        self._taken[user] += 1
        try:
            yield
        finally:
            self._taken[user] -= 1
            if not self._taken[user]:
                del self._taken[user]
