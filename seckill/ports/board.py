"""What every process tells of itself, for operators to see."""

import os
import secrets
import socket
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import msgspec


def own_name() -> str:
    """The name of a process or of a part of it: unique for ever, and it shows people where the process runs."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one process says of itself. Counts are since its start."""

    node: str  # see `own_name`
    role: str
    host: str
    pid: int
    version: str
    started_ms: int
    recorded: int = 0  # orders that this worker has written
    claims: int = 0  # that this API process has answered
    refused: dict[str, dict[str, int]] = {}  # round → outcome → claims
    answers: list[int] = []  # of the last seconds, by how long they took; see `figures`
    cpu_s: float = 0.0  # time of processors that it has used
    memory_bytes: int = 0  # that it has now
    reads: int = 1  # the newest form of queue entries that it understands; an earlier version does not say


@dataclass(frozen=True, slots=True)
class Seen:
    """A report and when it came, by the board's clock."""

    report: NodeReport
    at_ms: int


@dataclass(frozen=True, slots=True)
class LaneBacklog:
    """Entries of a lane that no worker has settled yet, and since when the oldest of them has waited."""

    entries: int
    oldest_ms: int | None


class Turn(StrEnum):
    """Of a process that has something to tell people."""

    GO = "go"
    TOLD = "told"  # by another, a while ago
    WAIT = "wait"  # another is at it


class TellingBoard(Protocol):
    """Where processes that see the same trouble agree on who tells people of it."""

    async def turn_to_tell(self, about: str, message: str, teller: str, within_s: float) -> Turn:
        """`about`: which trouble. A process whose turn it is has that long, and may ask again for longer. Of the
        messages about one trouble only the last counts as told: it may begin and end again and again."""

    async def told(self, about: str, message: str, for_s: float) -> None:
        """It was told, and for so long nobody tells the same."""


class Board(TellingBoard, Protocol):
    """Where every process puts up its report for all to see. Small: a report that is not renewed goes after a minute,
    and a process's next report replaces its last."""

    async def post(self, report: NodeReport) -> None: ...

    async def remove(self, node: str) -> None: ...

    async def reports(self) -> tuple[int, list[Seen]]:
        """The board's time in ms, and all reports."""

    async def waiting(self, lanes: Collection[int]) -> dict[int, LaneBacklog]: ...

    async def close(self) -> None: ...
