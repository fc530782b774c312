"""The line in the ledger: who waits for a round's units, who is served next, and how a draw gives places.

Whoever changes entries of a line has its row locked until the commit, so what happens to a line happens one after the
other. Each method is one transaction."""

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
    """A buyer wants to be in the line."""

    user: str
    quantity: int
    item: int = NO_ITEM
    metadata: str = ""
    groups: tuple[str, ...] = ()  # that the token names
    person: str = ""


class Standing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry, and where it stands."""

    entry: LineEntry
    line: RoundLine
    ahead: int | None  # entries that are served before it; None: it has no place yet, or waits no more
    new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingLine:
    """A line in which somebody waits."""

    round: Round
    line: RoundLine
    called: int  # entries for which the gate is being asked, or was asked by a process that is no more


class NoEntry(Enum):
    """Why nothing was done."""

    NO_LINE = auto()  # the round has none
    OVER = auto()  # the round is over
    UNKNOWN = auto()  # there is no such entry, or it is another buyer's
    SERVED = auto()  # it has its order, or is about to get it: there is nothing to leave any more


class JoinLedger(Protocol):
    async def join(self, round_id: int, joinings: Sequence[Joining]) -> Sequence[Standing] | NoEntry:
        """All of them, in their order, or none. A buyer who has an entry keeps it. Whoever has left or was passed over
        gets a place behind all others, unless the entry was in a draw whose list is closed, or an operator has removed
        it: then it stays as it is. Closes the list of a draw whose time has come."""


class LeaveLedger(Protocol):
    async def leave(self, entry_id: int, user: str | None, reason: str | None = None) -> Standing | NoEntry:
        """`user`: whose it must be; None: an operator removes it, for a reason that stays. Harmless to repeat."""


class BlockedLines(LeaveLedger, Protocol):
    """For taking a buyer out of all lines."""

    async def waiting_of(self, user: str) -> Sequence[int]:
        """Entries of a buyer that wait."""


class LineDeskLedger(JoinLedger, LeaveLedger, Protocol):
    """For what buyers and operators do to a line."""

    async def standings(self, entry_ids: Sequence[int]) -> list[Standing]:
        """Of those that there are. What it costs does not grow with them, but for a row each."""

    async def standings_of(self, asked: Sequence[tuple[int, str]]) -> list[Standing]:
        """The same by round and buyer: each buyer has one entry in a round at most."""

    async def entries(self, entry_ids: Sequence[int]) -> list[LineEntry]:
        """Those that there are."""

    async def open_line(self, sale_id: int, round_id: int) -> Sale | None:
        """The units of this round belong to its line from now on, and for good. None: it has none."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of the orders whose time to pay is over."""

    paid: int = 0
    lapsed: int = 0


class LineFiguresLedger(Protocol):
    async def line(self, round_id: int) -> RoundLine | None: ...

    async def decided(self, round_id: int) -> Decided:
        """For telling how likely it is that more come back."""

    async def served_up_to(self, line: RoundLine) -> int:
        """Nobody waits at this place or before it."""

    async def change_line(
        self, round_id: int, *, paused: bool | None, pace: int | None, beacon: str | None
    ) -> RoundLine | None:
        """What is None stays; pace 0: as fast as it goes. Raises NotPossible."""

    async def entries_by_place(
        self, round_id: int, after: int, count: int, state: EntryState | None = None
    ) -> list[LineEntry]: ...

    async def undrawn(self, round_id: int, after: int, count: int, state: EntryState | None = None) -> list[LineEntry]:
        """Those that have no place yet, by entry, after this one."""

    async def entry_of(self, round_id: int, user: str) -> LineEntry | None: ...

    async def unplaced(self, round_id: int, after: int, count: int) -> Sequence[int]:
        """Entries of a list that is closed, and of which none has a place yet, after this one."""


class DrawnLedger(Protocol):
    """For showing a list that is drawn."""

    async def placed(self, round_id: int, after: int, count: int) -> Sequence[int]:
        """Entries at the `count` places after that one, by place."""


class DrawLedger(Protocol):
    """For making a draw. Seed, beacon and list are fixed before the first place is given, so that anybody who makes the
    draw again, or at the same time, gives the same places."""

    async def draws_due(self) -> list[RoundLine]:
        """Of rounds that have begun, and whose places are not drawn yet."""

    async def close_list(self, round_id: int) -> RoundLine | None:
        """Nobody comes into the draw from now on. None: its time has not come, by the database's clock."""

    async def listed(self, round_id: int, after: str, count: int) -> Sequence[tuple[str, int]]:
        """Entries of the draw after this buyer, in the database's order of names: buyer and entry."""

    async def note_list(self, round_id: int, list_hash: str) -> None: ...

    async def note_beacon(self, round_id: int, number: int, value: str) -> None:
        """The first that is noted stays, and only the one that the draw has to take."""

    async def miss_beacon(self, round_id: int) -> bool:
        """The draw does without, for good, if the time that was announced for it is over by the database's clock. True:
        this call has decided it."""

    async def give_places(self, places: Sequence[tuple[int, int]]) -> None:
        """Entry and place. One that has a place keeps it."""

    async def mark_drawn(self, round_id: int) -> None: ...


class ServingLedger(Protocol):
    """For serving those who wait."""

    async def lines_waiting(self) -> list[WaitingLine]:
        """Of rounds that are not retired."""

    async def call_next(
        self, round_id: int, token: str, lease_s: float, units: Mapping[int, int], count: int
    ) -> Sequence[LineEntry] | None:
        """Calls those who wait at the best places, up to `count` of them, as far as these units, by item, are enough:
        one who wants more than is left is not called, and keeps the place. Who is blocked, or not in the audience any
        more, is passed over instead. Returns all that are called, in the order of their places; those of them who may
        not buy any more have the reason, and are to be passed over unless the gate has admitted them already. None:
        another process serves this line."""

    async def settle_called(
        self, round_id: int, token: str, called: Sequence[LineEntry], refused: Mapping[int, str]
    ) -> Sequence[LineEntry]:
        """Those of the called whose orders are in the ledger are served, unless these could not be written and failed;
        those that are refused for good, by entry and reason, are passed over. Returns those that are still called."""

    async def buried(self, numbers: Collection[OrderNumber]) -> set[OrderNumber]:
        """Those of these orders that were admitted and could not be written."""

    async def pass_over(self, round_id: int, reason: str, count: int) -> int:
        """Those who wait, from the end of the line. Returns how many it was."""


class LineLedger(LineDeskLedger, BlockedLines, LineFiguresLedger, DrawnLedger, DrawLedger, ServingLedger, Protocol):
    """All of it: what a backend implements."""
