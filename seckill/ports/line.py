"""The line in the ledger: which buyers wait for a round's units, which one is served next, and how a draw gives places.

Every transaction that changes entries of a line locks the line's row until the commit, so changes to a line happen one
after another. Each method is one transaction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import msgspec

from seckill.domain.item import NO_ITEM
from seckill.domain.line import EntryState, LineEntry, RoundLine
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Round, Sale


class Joining(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A buyer's wish to be in the line."""

    user: str
    quantity: int
    item: int = NO_ITEM
    metadata: str = ""
    groups: tuple[str, ...] = ()  # that the token names
    person: str = ""


class Standing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry and its position."""

    entry: LineEntry
    line: RoundLine
    ahead: int | None  # entries that are served before it; None: it has no place yet, or no longer waits
    new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLine:
    """A line with waiting entries."""

    round: Round
    line: RoundLine
    called: int  # entries for which the gate is being asked, or was asked by a process that is no more


class NoEntry(Enum):
    """Why nothing was done."""

    NO_LINE = auto()  # the round has none
    OVER = auto()  # the round is over
    UNKNOWN = auto()  # there is no such entry, or it is another buyer's
    SERVED = auto()  # it has its order or is about to get it, so it cannot leave


class JoinLedger(Protocol):
    async def join(self, round_id: int, joinings: Sequence[Joining]) -> Sequence[Standing] | NoEntry:
        """Adds all of them, in order, or none. A buyer who has an entry keeps it. A buyer who has left or was passed
        over gets a place behind all others, unless the entry was in a draw whose list is closed, or an operator removed
        it: then it stays as it is. Closes the list of a draw whose time has come."""


class LeaveLedger(Protocol):
    async def leave(self, entry_id: int, user: str | None, reason: str | None = None) -> Standing | NoEntry:
        """`user`: the buyer whose entry it must be; None: an operator removes it, for a reason that is kept. Harmless
        to repeat."""


class BlockedLines(LeaveLedger, Protocol):
    """For taking a buyer out of all lines."""

    async def waiting_of(self, user: str) -> Sequence[int]:
        """Returns the waiting entries of a buyer."""


class LineDeskLedger(JoinLedger, LeaveLedger, Protocol):
    """For what buyers and operators do in a line."""

    async def standings(self, entry_ids: Sequence[int]) -> list[Standing]:
        """Returns the standings of those that exist. The cost does not grow with their number, except for a row
        each."""

    async def standings_of(self, asked: Sequence[tuple[int, str]]) -> list[Standing]:
        """The same by round and buyer: each buyer has at most one entry in a round."""

    async def entries(self, entry_ids: Sequence[int]) -> list[LineEntry]:
        """Returns the entries that exist."""

    async def open_line(self, sale_id: int, round_id: int) -> Sale | None:
        """Gives the round's units to its line from now on and for good. Returns None if it has no line."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of the orders whose time to pay is over."""

    paid: int = 0
    lapsed: int = 0


class LineFiguresLedger(Protocol):
    async def line(self, round_id: int) -> RoundLine | None: ...

    async def decided(self, round_id: int) -> Decided:
        """For estimating how likely it is that more units come back."""

    async def served_up_to(self, line: RoundLine) -> int:
        """Returns the last place up to which no one waits any more."""

    async def change_line(
        self, round_id: int, *, paused: bool | None, pace: int | None, beacon: str | None
    ) -> RoundLine | None:
        """Values that are None stay; pace 0: as fast as possible. Raises NotPossible."""

    async def entries_by_place(
        self, round_id: int, after: int, count: int, state: EntryState | None = None
    ) -> list[LineEntry]: ...

    async def undrawn(self, round_id: int, after: int, count: int, state: EntryState | None = None) -> list[LineEntry]:
        """Returns entries without a place, in the order of their numbers, after this one."""

    async def entry_of(self, round_id: int, user: str) -> LineEntry | None: ...

    async def unplaced(self, round_id: int, after: int, count: int) -> Sequence[int] | None:
        """Returns entries of a list that is closed but has no places yet, after this one. Returns None while places are
        given: then some of the list have one."""


class DrawnLedger(Protocol):
    """For showing a list that is drawn."""

    async def placed(self, round_id: int, after: int, count: int) -> Sequence[int]:
        """Returns the entries at the `count` places after that one, by place."""


class DrawLedger(Protocol):
    """For making a draw. Seed, beacon and list are fixed before the first place is given, so that any process that
    makes the draw again, or at the same time, gives the same places."""

    async def draws_due(self) -> list[RoundLine]:
        """Returns the lines of rounds that have begun and whose places are not drawn yet."""

    async def close_list(self, round_id: int) -> RoundLine | None:
        """Closes the draw's list. Returns None if, by the database's clock, its time has not come."""

    async def listed(self, round_id: int, after: str, count: int) -> Sequence[tuple[str, int]]:
        """Returns buyers and entries of the draw after this buyer, in the database's order of names."""

    async def note_list(self, round_id: int, list_hash: str) -> None: ...

    async def note_beacon(self, round_id: int, number: int, value: str) -> None:
        """Notes the beacon. The first one stays, and only the one that the draw has to take is accepted."""

    async def miss_beacon(self, round_id: int) -> bool:
        """Makes the draw do without the beacon, for good, if its announced time is over by the database's clock.
        Returns True if this call has decided that."""

    async def give_places(self, places: Sequence[tuple[int, int]]) -> None:
        """Gives places: pairs of entry and place. An entry that has a place keeps it."""

    async def mark_drawn(self, round_id: int) -> None: ...


class ServingLedger(Protocol):
    """For serving waiting entries."""

    async def lines_waiting(self) -> list[WaitingLine]:
        """Returns the lines with waiting entries, of rounds that are not retired."""

    async def call_next(
        self, round_id: int, token: str, lease_s: float, units: Mapping[int, int], count: int
    ) -> Sequence[LineEntry] | None:
        """Calls up to `count` entries at the best places, as long as these units, by item, last: an entry that wants
        more than is left is not called and keeps its place. A buyer who is blocked or no longer in the audience is
        passed over instead. Returns all called entries in the order of their places. Those whose buyers may no longer
        buy have a reason, and must be passed over unless the gate has admitted them already. Returns None if another
        process serves this line."""

    async def settle_called(
        self, round_id: int, token: str, called: Sequence[LineEntry], refused: Mapping[int, str]
    ) -> Sequence[LineEntry]:
        """Marks called entries as served if their orders are in the ledger and have not failed because they could not
        be written. Passes over those that are refused for good, given by entry and reason. Returns those that are still
        called."""

    async def buried(self, numbers: Collection[OrderNumber]) -> set[OrderNumber]:
        """Returns those of these orders that were admitted but could not be written."""

    async def pass_over(self, round_id: int, reason: str, count: int, items: Collection[int] | None = None) -> int:
        """Passes over waiting entries, from the end of the line: those that want one of these items; None: all. Returns
        how many."""


class LineLedger(LineDeskLedger, BlockedLines, LineFiguresLedger, DrawnLedger, DrawLedger, ServingLedger, Protocol):
    """Everything that a backend implements."""
