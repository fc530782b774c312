"""Our own MariaDB."""

from pathlib import Path

from seckill.lab.chaos.servers.server import Can, is_alive
from seckill.lab.servers.mariadb import EmbeddedMariaDB
from seckill.lab.servers.proxy import Address

DATABASE = "seckill"


class MariaDBServer:
    can = frozenset({Can.KILL, Can.PAUSE, Can.PROXY, Can.FILL})

    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        self._server = EmbeddedMariaDB(folder)
        self._started = False

    @property
    def name(self) -> str:
        return "MariaDB"

    @property
    def url(self) -> str:
        return self._server.url(DATABASE)

    @property
    def address(self) -> Address:
        return "127.0.0.1", self._server.port

    def url_through(self, port: int) -> str:
        return self.url.replace(f":{self._server.port}/", f":{port}/")

    def pids(self) -> list[int]:
        return [self._server.pid] if self._started and is_alive(self._server.pid) else []

    async def start(self) -> None:
        await self._server.start()
        self._started = True
        await self._server.ready()
        await self._server.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")

    async def stop(self) -> None:
        await self._server.stop()

    async def kill(self) -> None:
        self._server.kill()

    def pause(self) -> None:
        self._server.pause()

    def resume(self) -> None:
        if self.pids():
            self._server.resume()
