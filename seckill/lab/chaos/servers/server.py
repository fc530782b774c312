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
    FORGET = "forget"  # lose everything, see `Forgetful`
    TEAR = "tear"  # leave half a write at the end of its file
    STARVE = "starve"  # run out of memory
    SILENCE = "silence"  # have a replica that takes nothing in, see `Silenceable`
    FILL = "fill"  # run out of disk; only where it has a disk of its own


class FaultyServer(Protocol):
    folder: Path | None  # where its data is, if it is ours

    @property
    def name(self) -> str:
        """The name in the report, with the settings that matter: `Valkey, appendfsync always`."""

    @property
    def can(self) -> frozenset[Can]: ...

    @property
    def url(self) -> str:
        """Its own address, without any proxy. It is the same after each start."""

    @property
    def address(self) -> Address:
        """The address to which a proxy connects. Used only if the server can `PROXY`."""

    def url_through(self, port: int) -> str:
        """Returns its address through a proxy that listens on that port."""

    def pids(self) -> list[int]:
        """Returns its processes; empty if it does not run."""

    async def start(self) -> None:
        """Starts the server, after `kill` with the data it had kept, and returns when it answers."""

    async def stop(self) -> None: ...

    async def kill(self) -> None:
        """Sends kill -9 to all its processes."""

    def pause(self) -> None:
        """Sends SIGSTOP: the server neither answers nor hangs up."""

    def resume(self) -> None: ...


class Silenceable(FaultyServer, Protocol):
    """A gate with replicas."""

    async def silence(self) -> None:
        """Makes a replica stay connected and take nothing in until `resume`, or until `kill`, when it takes over with
        what it had."""

    async def unheard(self) -> int:
        """Returns how many bytes the replica has not taken in while its primary counts it among its replicas."""


class Forgetful(FaultyServer, Protocol):
    """A gate that can come back empty."""

    async def forget(self, *, restart: bool) -> tuple[int, frozenset[int]]:
        """Makes the gate lose everything. Returns how many keys were lost, and the numbers of the orders that were in
        its streams at that very instant: only these may be missing from the ledger afterwards. `restart`: kills the
        server and starts it in another folder."""

    async def tear(self) -> int:
        """Called after `kill`: appends part of a write that was never answered to its file. Returns how many bytes that
        is."""

    async def starve(self) -> None:
        """Leaves the server without free memory until `feed`."""

    async def feed(self) -> int:
        """Gives it memory again. Returns how many commands it has refused meanwhile."""


def signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # it has just ended on its own
            continue


def is_stopped(pid: int) -> bool:
    """Whether SIGSTOP has stopped it."""
    return _state(pid) == "T"


def is_alive(pid: int) -> bool:
    """Whether it runs and is not a zombie."""
    return _state(pid) not in ("", "Z")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def family(pid: int) -> list[int]:
    """Returns a process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *map(int, children)]
