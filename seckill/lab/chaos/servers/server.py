"""What a run needs from a server, so that it can be started, broken and restored. One class for each kind of server."""

import os
import signal
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from seckill.lab.servers.proxy import Address


class Can(StrEnum):
    """What may be done to a server."""

    KILL = "kill"
    PAUSE = "pause"
    PROXY = "proxy"  # a proxy may stand before it
    FORGET = "forget"  # lose everything, as `Forgetful` does it
    TEAR = "tear"  # have half a write at the end of its file
    STARVE = "starve"  # run out of memory
    SILENCE = "silence"  # have a replica that takes nothing in, as `Silenceable` does it
    FILL = "fill"  # run out of disk; only where it has a disk of its own


class FaultyServer(Protocol):
    folder: Path | None  # its data, if they are ours

    @property
    def name(self) -> str:
        """For the report, with what makes a difference: `Valkey, appendfsync always`."""

    @property
    def can(self) -> frozenset[Can]: ...

    @property
    def url(self) -> str:
        """Its own address, past every proxy. The same after each start."""

    @property
    def address(self) -> Address:
        """Where a proxy connects to. Asked for if it can `PROXY`."""

    def url_through(self, port: int) -> str:
        """Its address through a proxy that listens on that port."""

    def pids(self) -> list[int]:
        """Its processes; empty if it does not run."""

    async def start(self) -> None:
        """Returns when it answers. Also after `kill`, with what it had kept."""

    async def stop(self) -> None: ...

    async def kill(self) -> None:
        """kill -9 of all its processes."""

    def pause(self) -> None:
        """SIGSTOP: it neither answers nor hangs up."""

    def resume(self) -> None: ...


class Silenceable(FaultyServer, Protocol):
    """A gate with replicas."""

    async def silence(self) -> None:
        """A replica stays connected and takes nothing in, until `resume`; or until `kill`: then it takes over with what
        it had."""

    async def unheard(self) -> int:
        """How many bytes it has not taken in, while its primary counts it among its replicas."""


class Forgetful(FaultyServer, Protocol):
    """A gate that can come back empty."""

    async def forget(self, *, restart: bool) -> tuple[int, frozenset[int]]:
        """How many keys were lost, and the numbers of the orders that were in its streams at that very instant: these
        and no others may be missing from the ledger afterwards. `restart`: killed and started in another folder."""

    async def tear(self) -> int:
        """To be called when it was killed. How many bytes of a write that was never answered its file ends with now."""

    async def starve(self) -> None:
        """It has no memory left until `feed`."""

    async def feed(self) -> int:
        """How many commands it has refused meanwhile."""


def signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # it ended on its own at this very moment
            continue


def is_stopped(pid: int) -> bool:
    """By SIGSTOP."""
    return _state(pid) == "T"


def is_alive(pid: int) -> bool:
    """And no zombie."""
    return _state(pid) not in ("", "Z")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def family(pid: int) -> list[int]:
    """A process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *map(int, children)]
