"""The ledger as a file: it has no process to kill and no connection to cut, but its disk can be full."""

from pathlib import Path

from seckill.lab.chaos.servers.server import Can
from seckill.lab.servers.proxy import Address


class SqliteFile:
    can = frozenset({Can.FILL})

    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        self._path = folder / "ledger.db"

    @property
    def name(self) -> str:
        return "SQLite"

    @property
    def url(self) -> str:
        return f"sqlite:///{self._path}"

    @property
    def address(self) -> Address:
        return self._path

    def url_through(self, port: int) -> str:
        return self.url

    def pids(self) -> list[int]:
        return []

    async def start(self) -> None:
        """Does nothing: the roles open the file themselves."""

    async def stop(self) -> None:
        """Does nothing: the roles have closed the file by now."""

    async def kill(self) -> None:
        """Does nothing: SQLite dies with the process that writes the file."""

    def pause(self) -> None:
        """Does nothing: SQLite stops with the process that writes the file."""

    def resume(self) -> None:
        """See `pause`."""
