"""What every process reports about itself, for operators to see."""

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
    """What one process reports about itself. Counts are since its start."""

    node: str  # see `own_name`
    role: str
    host: str
    pid: int
    version: str
    started_ms: int
    recorded: int = 0  # orders that this worker has written
    claims: int = 0  # claims that this API process has answered
    refused: dict[str, dict[str, int]] = {}  # round → outcome → claims
    answers: list[int] = []  # answers of the last seconds, by how long they took; see `figures`
    cpu_s: float = 0.0  # CPU time used
    memory_bytes: int = 0  # that it has now
    reads: int = 1  # the newest form of queue entries that it understands; an earlier version does not say


@dataclass(frozen=True, slots=True)
class Seen:
    """A report, and when it came by the board's clock."""

    report: NodeReport
    at_ms: int


@dataclass(frozen=True, slots=True)
class LaneBacklog:
    """Entries of a lane that no worker has settled yet, and since when the oldest of them has waited."""

    entries: int
    oldest_ms: int | None


class Turn(StrEnum):
    """What a process that wants to send an alarm has to do."""

    GO = "go"
    TOLD = "told"  # another process has sent it
    WAIT = "wait"  # another process is sending it


class TellingBoard(Protocol):
    """Where processes that see the same trouble agree on which one sends the alarm."""

    async def turn_to_tell(self, about: str, message: str, teller: str, within_s: float) -> Turn:
        """`about`: the trouble. A process has its turn for `within_s`, and may ask again for longer. Of the messages
        about one trouble only the last counts as told, because trouble may begin and end again and again."""

    async def told(self, about: str, message: str, for_s: float) -> None:
        """The message was sent, and no process sends the same for `for_s`."""


class Board(TellingBoard, Protocol):
    """Where every process puts up its report. The board stays small: a report that is not renewed is deleted after a
    minute, and a process's next report replaces its last."""

    async def post(self, report: NodeReport) -> None: ...

    async def remove(self, node: str) -> None: ...

    async def reports(self) -> tuple[int, list[Seen]]:
        """The board's time in ms, and all reports."""

    async def waiting(self, lanes: Collection[int]) -> dict[int, LaneBacklog]: ...

    async def close(self) -> None: ...
