"""Our own Valkey (or Redis) server: on a unix socket, durable, and ended when we end."""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from seckill.errors import StartError
from seckill.local.server_binary import check_version
from seckill.local.server_binary import find_server as find_server
from seckill.local.socket_path import answers, make_private, said, socket_path
from seckill.local.tether import tethered

Durability = Literal["strict", "fast"]

POLL_S = 0.02
ANSWER_WITHIN_S = 1.0
# An append-only file of small writes was read at 30 MB a second on two cores: enough for 3 GB.
READY_WITHIN_S = 120.0
STOP_WITHIN_S = 10.0
# A server whose parent was killed ends at once; on macOS after a poll of its supervisor.
EARLIER_GONE_WITHIN_S = 5.0


class EmbeddedValkey:
    """`start` it from the main thread (see `tether.py`), wait for `ready`, and `stop` it at the end.

    A server that has ended can be started again. `program`: used instead of the one that `find_server` finds.
    `options`: the server's options besides the usual ones, or instead of them, as words separated by blanks.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        durability: Durability,
        program: Path | None = None,
        options: Mapping[str, str] = {},
    ) -> None:
        self._data_dir = data_dir.resolve()
        self._home = self._data_dir / "valkey"
        self._socket = socket_path(self._data_dir, "valkey.sock")
        self._durability = durability
        self._program = program
        self._more = dict(options)
        # Popen, not asyncio's subprocess: that one kills its child when the event loop is closed.
        self._process: subprocess.Popen[bytes] | None = None
        self._log_begins = 0

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._socket))}"

    @property
    def log(self) -> Path:
        return self._home / "server.log"

    @property
    def pid(self) -> int:
        """On macOS the pid of its supervisor, which passes on SIGTERM."""
        return self._started().pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        if self.is_running:
            raise RuntimeError("the server is running already")
        server = self._program or find_server()
        await asyncio.to_thread(check_version, server)
        await self._until_earlier_server_is_gone()
        try:
            self._process = self._spawn(server)
        except OSError as error:
            raise StartError(
                f"The embedded server cannot use {self._home} ({error.strerror}): "
                "mend that, or choose another folder with --data."
            ) from error

    async def ready(self, within_s: float = READY_WITHIN_S) -> None:
        process = self._started()
        give_up_at = time.monotonic() + within_s
        while process.poll() is None:
            # Not there yet, or "LOADING": the socket answers while the data is still being read.
            if await said(self._socket, b"PING\r\n", ANSWER_WITHIN_S) == b"+PONG\r\n":
                return
            if time.monotonic() >= give_up_at:
                raise StartError(f"The embedded server was not ready within {within_s:g} s: see {self.log} for why.")
            await asyncio.sleep(POLL_S)
        raise StartError(
            f"The embedded server ended at its start with “{self._last_words()}”: see {self.log} for more."
        )

    async def wait(self) -> int:
        """Returns when the server has ended, with its exit code (negative: the signal that killed it)."""
        process = self._started()
        # Polled: a thread that waits would keep a cancelled caller's event loop from closing.
        while (code := process.poll()) is None:  # noqa: ASYNC110 (no event tells of it)
            await asyncio.sleep(POLL_S)
        return code

    async def stop(self, within_s: float = STOP_WITHIN_S) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self.wait(), within_s)
        except TimeoutError:
            # The whole group, for the supervisor on macOS; it may have ended in this very moment.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self.wait()
        self._socket.unlink(missing_ok=True)
        if self._socket.parent != self._data_dir:
            with contextlib.suppress(OSError):
                self._socket.parent.rmdir()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server has not been started")
        return self._process

    async def _until_earlier_server_is_gone(self) -> None:
        """Two servers would destroy their common files, and the second one would take over the socket unasked."""
        give_up_at = time.monotonic() + EARLIER_GONE_WITHIN_S
        while await answers(self._socket):
            if time.monotonic() >= give_up_at:
                raise StartError(
                    f"A server of an earlier start still listens on {self._socket}: "
                    "stop it, or choose another folder with --data."
                )
            await asyncio.sleep(POLL_S)

    def _spawn(self, server: Path) -> subprocess.Popen[bytes]:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._socket.parent != self._data_dir:
            make_private(self._socket.parent)
        # The log is the server's output, so that it also has what goes wrong before a server opens its log.
        with self.log.open("ab") as log:
            self._log_begins = log.tell()
            return subprocess.Popen(  # noqa: S603 (found by `find_server`)
                tethered([str(server), *self._options()]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=0o077,
            )

    def _options(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "protected-mode": "yes",
            "enable-debug-command": "no",
            "daemonize": "no",
            "dir": str(self._home),
            "appendonly": "yes",
            "appendfsync": "always" if self._durability == "strict" else "everysec",
            "no-appendfsync-on-rewrite": "no",
            "aof-use-rdb-preamble": "yes",
            # A write that was cut off in the file's tail was never acknowledged: with "always" the reply
            # is sent after the sync. So the tail may be dropped.
            "aof-load-truncated": "yes",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        usual = [part for name, value in options.items() if name not in self._more for part in (f"--{name}", value)]
        return usual + [part for name, value in self._more.items() for part in (f"--{name}", *value.split(" "))]

    def _last_words(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._log_begins)
            lines = log.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1] if said else f"exit code {self._started().returncode}"
