"""A server that runs already, on this machine. It is left running: only the links to it are cut."""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from seckill.errors import StartError
from seckill.lab.chaos.servers.server import Can
from seckill.lab.servers.proxy import Address

PORTS = {"redis": 6379, "postgresql": 5432, "amqp": 5672}


class GivenServer:
    folder: Path | None = None

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        if self._parts.scheme not in PORTS:
            raise StartError(f"{self._parts.scheme}:// cannot be given here: use {', '.join(PORTS)} or a name.")
        if not _is_loopback(self._parts.hostname or ""):
            raise StartError(
                f"{self._parts.hostname} is not this machine: faults are made on loopback addresses only, such as "
                f"{self._parts.scheme}://127.0.0.1."
            )

    @property
    def can(self) -> frozenset[Can]:
        return frozenset({Can.PROXY})

    @property
    def name(self) -> str:
        return f"{self._parts.scheme} at {self._parts.hostname}:{self._port}, given"

    @property
    def url(self) -> str:
        return urlunsplit(self._parts)

    @property
    def _port(self) -> int:
        return self._parts.port or PORTS[self._parts.scheme]

    @property
    def address(self) -> Address:
        assert self._parts.hostname is not None
        return self._parts.hostname, self._port

    def url_through(self, port: int) -> str:
        login, at, _ = self._parts.netloc.rpartition("@")
        return urlunsplit(self._parts._replace(netloc=f"{login}{at}127.0.0.1:{port}"))

    def pids(self) -> list[int]:
        return []

    async def start(self) -> None:
        """Does nothing: the server already runs."""

    async def stop(self) -> None:
        """Does nothing: the server is not ours to stop."""

    async def kill(self) -> None:
        """Does nothing: the server is not ours to kill."""

    def pause(self) -> None:
        """Does nothing: the server is not ours to pause."""

    def resume(self) -> None:
        """See `pause`."""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
