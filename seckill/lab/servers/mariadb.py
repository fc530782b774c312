"""Our own MariaDB on a free port, for runs that test the engine. It ends when we end."""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import aiomysql
import pymysql

from seckill.errors import StartError
from seckill.lab.servers.freezing import freeze
from seckill.lab.servers.ports import free_port
from seckill.local.tether import tethered

USER = "seckill"
POLL_S = 0.02
READY_WITHIN_S = 60.0
STOP_WITHIN_S = 20.0

# Newer versions call themselves `mariadb_…` where older ones said `mysql_…`.
_SYSTEM_TABLES = ("*_system_tables.sql", "*_performance_tables.sql", "*_system_tables_data.sql")


def find_mariadb() -> Path | None:
    """Finds the server: the system's, or the one that `scripts/get-servers` has fetched."""
    found = [Path(path) for path in [shutil.which("mariadbd"), "/usr/sbin/mariadbd"] if path]
    found.append(Path(sys.prefix) / "servers" / "mariadb" / "bin" / "mariadbd")
    return next((path for path in found if path.exists()), None)


class EmbeddedMariaDB:
    """`start` it from the main thread (see `tether.py`), wait for `ready`, and `stop` it at the end.

    It can be killed, held up and started again, on the same port and with the data that it had.
    """

    def __init__(self, folder: Path, *, program: Path | None = None) -> None:
        found = program or find_mariadb()
        if found is None:
            raise StartError("There is no MariaDB on this machine: install mariadb-server, or run scripts/get-servers.")
        self._program = found
        self._folder = folder.resolve()
        self._data = self._folder / "mariadb"
        self._password = secrets.token_hex(8)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        return f"mysql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    @property
    def log(self) -> Path:
        return self._folder / "mariadb.log"

    @property
    def pid(self) -> int:
        return self._started().pid

    async def start(self) -> None:
        if not self._data.exists():
            await asyncio.to_thread(self._initialise)
        self._process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 (found by `find_mariadb`)
                tethered([*self._command(), f"--port={self.port}"]),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def ready(self, within_s: float = READY_WITHIN_S) -> None:
        process = self._started()
        give_up_at = time.monotonic() + within_s
        while process.poll() is None and time.monotonic() < give_up_at:
            with contextlib.suppress(pymysql.MySQLError, OSError):
                await self.execute("SELECT 1")
                return
            await asyncio.sleep(POLL_S)
        raise StartError(f"MariaDB did not start: see {self.log} for why.")

    async def execute(self, *statements: str) -> list[tuple[object, ...]]:
        """Runs the statements as administrator. Returns the rows of the last one."""
        connection = await aiomysql.connect(
            host="127.0.0.1", port=self.port, user=USER, password=self._password, autocommit=True, connect_timeout=5
        )
        try:
            async with connection.cursor() as cursor:
                for statement in statements:
                    await cursor.execute(statement)
                return list(await cursor.fetchall())
        finally:
            connection.close()

    def pause(self) -> None:
        """From now on the server neither answers nor hangs up, like a machine that lost its disk."""
        freeze(self.pid)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Ends the server as a power cut would."""
        process = self._started()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    async def stop(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        self.resume()
        process.terminate()
        give_up_at = time.monotonic() + STOP_WITHIN_S
        while process.poll() is None:
            if time.monotonic() > give_up_at:
                self.kill()
            await asyncio.sleep(POLL_S)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server has not been started")
        return self._process

    def _command(self) -> list[str]:
        files = self._files()
        command = [
            str(self._program),
            "--no-defaults",
            f"--lc-messages-dir={files}",
            f"--character-sets-dir={files / 'charsets'}",
            f"--datadir={self._data}",
            f"--socket={self._data / 'mariadb.sock'}",
            f"--pid-file={self._data / 'mariadb.pid'}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            # A commit is on the disk when it returns. It is the default, and all promises depend on it.
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-log-file-size=32M",
            "--innodb-buffer-pool-size=128M",
            "--innodb-use-native-aio=0",  # containers often have too little of it
        ]
        # The server refuses to run as root unless it is told to.
        return [*command, "--user=root"] if os.getuid() == 0 else command

    def _files(self) -> Path:
        """Finds the server's files: next to the program if its package was unpacked, or where the system has them."""
        prefix = self._program.resolve().parents[1]
        shares = [prefix / "usr" / "share", prefix / "share", Path("/usr/share")]
        found = [share / name for share in shares for name in ("mysql", "mariadb")]
        return next((path for path in found if any(path.glob(_SYSTEM_TABLES[0]))), found[-1])

    def _initialise(self) -> None:
        self._data.mkdir(mode=0o700)
        setup = ["CREATE DATABASE mysql;", "USE mysql;"]
        setup += [path.read_text() for name in _SYSTEM_TABLES for path in self._files().glob(name)]
        setup += [
            "FLUSH PRIVILEGES;",
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{self._password}';",
            f"GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;",
        ]
        with self.log.open("ab") as log:
            done = subprocess.run(  # noqa: S603 (found by `find_mariadb`)
                [*self._command(), "--bootstrap"],
                cwd=self._folder,
                input="\n".join(setup).encode(),
                stdout=log,
                stderr=log,
                check=False,
            )
        if done.returncode != 0:
            shutil.rmtree(self._data)
            raise StartError(f"MariaDB could not be set up: see {self.log} for why.")
