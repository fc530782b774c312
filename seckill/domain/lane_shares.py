"""How a round that has several lanes is divided among them. Pure.

Each lane has a share of the units and of the buyers. A buyer is always in the same one, so that a lane alone can hold
the limit. Units that a lane lacks come from another: what one lane has ever sent to another, and what that one has ever
got of it, are two counts that only grow. The difference is on its way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32


def place_of(user: str, lanes: int) -> int:
    """Which of this many shares a buyer belongs to, for as long as the round lives: this must never change."""
    return crc32(user.encode()) % lanes


def deal(units: int, lanes: int) -> list[int]:
    """One after the other, so that more units never make a share smaller."""
    return [units // lanes + (place < units % lanes) for place in range(lanes)]


class Share(Protocol):
    """What can be read of a share, all at one instant."""

    @property
    def available(self) -> int: ...

    @property
    def sent(self) -> Mapping[int, int]:
        """Lane → units ever sent there."""

    @property
    def got(self) -> Mapping[int, int]:
        """Lane → units ever got from there."""


def units_left(shares: Mapping[int, Share]) -> int:
    """Returns the units on sale or on their way, by lane. It is exact although the shares were read one after the
    other: a unit that was read in two shares, or in none, was sent or received in between, and the counts of sent and
    received units cancel that out."""
    sent = sum(sum(share.sent.values()) for share in shares.values())
    got = sum(sum(share.got.values()) for share in shares.values())
    return sum(share.available for share in shares.values()) + sent - got


def on_the_way(shares: Mapping[int, Share]) -> Iterator[tuple[int, int, int]]:
    """From, to, and how much the one has ever sent to the other, wherever the other has not got all of it."""
    for origin, share in shares.items():
        for to, sent in share.sent.items():
            if to in shares and sent > shares[to].got.get(origin, 0):
                yield origin, to, sent


def went_back(shares: Mapping[int, Share], later: Mapping[int, Share]) -> bool:
    """Whether a lane has forgotten what it sent: another has got more of it than it knows of, read afterwards."""
    return any(
        got > later[origin].sent.get(lane, 0)
        for lane, share in shares.items()
        for origin, got in share.got.items()
        if origin in later
    )


@dataclass(frozen=True, slots=True)
class Move:
    origin: int
    to: int
    units: int


def even_out(units: int, live: Sequence[int]) -> list[Move]:
    """Returns what has to move between shares that were dealt anew and have already sold these units, so that each gets
    what it sold and an equal part of the rest."""
    lanes = len(live)
    wanted = [sold + rest for sold, rest in zip(live, deal(units - sum(live), lanes), strict=True)]
    too_many = [has - wants for has, wants in zip(deal(units, lanes), wanted, strict=True)]
    moves = []
    for to in range(lanes):
        for origin in range(lanes):
            moving = min(-too_many[to], too_many[origin])
            if moving > 0:
                moves.append(Move(origin, to, moving))
                too_many[origin] -= moving
                too_many[to] += moving
    return moves
