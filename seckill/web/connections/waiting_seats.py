"""Limits how many waiting requests one buyer, and one address, has on this node: long polls, event streams and sockets
together."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Enough for every open tab and device of one person. Each costs memory for as long as it lasts.
SEATS_PER_BUYER_MAX = 20


class NoSeat(Exception):
    """The buyer, or all buyers of the address together, have reached the limit."""


class Seats:
    def __init__(self, per_address: int = 0) -> None:
        self._per_address = per_address  # 0: unlimited
        self._taken: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        return self._taken.total()

    def has_free(self, user: str, address: str) -> bool:
        if self._taken[user] >= SEATS_PER_BUYER_MAX:
            return False
        return not (address and self._per_address) or self._by_address[address] < self._per_address

    @contextmanager
    def taken_by(self, user: str, address: str) -> Iterator[None]:
        """`address`: from `ClientAddresses.counted`; empty: none in particular. Raises NoSeat."""
        if not self.has_free(user, address):
            raise NoSeat
        counted = address if self._per_address else ""
        self._taken[user] += 1
        if counted:
            self._by_address[counted] += 1
        try:
            yield
        finally:
            _give_back(self._taken, user)
            if counted:
                _give_back(self._by_address, counted)


def _give_back(taken: Counter[str], whose: str) -> None:
    taken[whose] -= 1
    if not taken[whose]:
        del taken[whose]


def gone(receive: Any) -> Callable[[], Awaitable[None]]:
    """Returns a function that returns when the client no longer waits for the answer."""

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    return left
