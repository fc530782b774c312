"""What operators look at beyond the record itself: the processes and their figures, and the history of orders."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from seckill.domain import Sale
from seckill.letters import Letter
from seckill.numbers import OrderNumber
from seckill.payment_ports import Capture, Refund


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one process says of itself. Counts are since its start."""

    node: str  # nobody else ever has this name
    role: str
    host: str
    pid: int
    version: str
    started_ms: int
    recorded: int = 0  # orders that this worker has written
    claims: int = 0  # that this API process has answered
    refused: dict[str, dict[str, int]] = {}  # round → outcome → claims
    answers: list[int] = []  # of the last seconds, by how long they took; see `figures`


@dataclass(frozen=True, slots=True)
class Seen:
    """A report and when it came, by the board's clock."""

    report: Report
    at_ms: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Entries of a lane that no worker has settled yet, and since when the oldest of them has waited."""

    entries: int
    oldest_ms: int | None


class Board(Protocol):
    """Where every process puts up its report for all to see. Small: a report that is not renewed goes after a minute,
    and the next one of the same process takes its place."""

    async def post(self, report: Report) -> None: ...

    async def remove(self, node: str) -> None: ...

    async def reports(self) -> tuple[int, list[Seen]]:
        """The board's time in ms, and all reports."""

    async def waiting(self, lanes: Collection[int]) -> dict[int, Waiting]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change of an order's state, and why."""

    number: OrderNumber
    from_state: str | None
    to_state: str
    at_ms: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """Money that was taken for an order, and what became of it."""

    number: OrderNumber  # the order that it was meant for
    capture: Capture
    at_ms: int
    settles: OrderNumber | None  # the order that is paid with it: another one, if it came late
    waits: bool  # it came late, and what it pays for is not decided yet
    refund: Refund | None


class History(Protocol):
    """Reads the record, changes nothing."""

    async def latest(self, round_id: int, until_ms: int, count: int) -> list[OrderNumber]:
        """The newest orders of a round that ended at `until_ms`, among the newest of all until then."""

    async def events(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[Event]]:
        """Every event of these orders, in their order."""

    async def rounds(self, sale_id: int, before: int | None, count: int) -> Sequence[Sale]:
        """The sale with each of its newest rounds, the newest first; only those that were made before that round."""

    async def letters(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[Letter]]:
        """What could not be written at first, or at all."""

    async def payments(self, numbers: Sequence[OrderNumber]) -> Sequence[Payment]:
        """Money that was meant for these orders or has paid them, in the order in which it came."""
