"""Stands between a client and its server, in fault runs and in tests, and makes trouble when told to."""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

PORTION = 65536
SLOW_S = 0.1  # for each portion, in both directions

# A unix socket, or a host and a port.
Address = Path | tuple[str, int]


class Trouble(StrEnum):
    REFUSED = "refused"  # nothing gets through
    REPLY_LOST = "reply lost"  # the server does what it is asked, but the connection breaks before its answer
    HOLE = "hole"  # connections stay open, and nothing gets through; they break when the trouble is over
    SLOW = "slow"
    NO_GOODBYE = "no goodbye"  # all that the server says arrives, but not that it has hung up


@dataclass(slots=True)
class _Loss:
    request: bytes
    answer: bytes
    silent: bool


class Proxy:
    """Listens on a unix socket if one is named, else on a port of this machine."""

    def __init__(self, server: Address, at: Path | None = None) -> None:
        self._server = server
        self._at = at
        self._trouble: Trouble | None = None
        self._loss: _Loss | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0
        self.hits = 0  # answers that were kept back by `lose_answer`
        self.touched = 0  # connections that were cut, and portions that were swallowed or delayed

    async def __aenter__(self) -> Self:
        if self._at is not None:
            self._listening = await asyncio.start_unix_server(self._serve, self._at)
        else:
            self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
        serving = list(self._serving)
        self.cut()
        await asyncio.gather(*serving, return_exceptions=True)
        await self._listening.wait_closed()

    def set_trouble(self, trouble: Trouble | None) -> None:
        if trouble is Trouble.REFUSED or self._trouble is Trouble.HOLE:
            self.cut()
        self._trouble = trouble

    def lose_answer(self, request: bytes, answer: bytes = b"", *, silent: bool = False) -> None:
        """The next request that has these bytes in it goes through, and the server's answer (with those bytes in it) is
        kept back. `silent`: the connection stays open, and nothing ever comes."""
        self._loss = _Loss(request, answer, silent)

    def forgive(self) -> None:
        """A connection that has not lost an answer by now will not."""
        self._loss = None

    @property
    def connections(self) -> int:
        return len(self._serving)

    def cut(self) -> int:
        """Cuts every connection without a goodbye. Returns how many."""
        cut = len(self._serving)
        for serving in self._serving:
            serving.cancel()
        self.touched += cut
        return cut

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        to_server: asyncio.StreamWriter | None = None
        try:
            if self._trouble is Trouble.REFUSED:
                self.touched += 1
                return
            from_server, to_server = await self._connect()
            await _Connection(self, reader, writer, from_server, to_server).run()
        except (asyncio.CancelledError, OSError, ExceptionGroup):
            pass
        finally:
            self._serving.discard(task)
            for end in (writer, to_server):
                if end is not None:
                    _reset(end)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._server, Path):
            return await asyncio.open_unix_connection(self._server)
        return await asyncio.open_connection(*self._server)

    async def admit(self) -> bool:
        """Called for each portion: False if it is swallowed."""
        if self._trouble is Trouble.SLOW:
            self.touched += 1
            await asyncio.sleep(SLOW_S)
        if self._trouble is Trouble.HOLE:
            self.touched += 1
            return False
        return True

    def losing(self, data: bytes) -> _Loss | None:
        """Whether the answer to this request is the one to lose. Only one is."""
        loss = self._loss
        if loss is None or loss.request not in data:
            return None
        self._loss = None
        return loss

    @property
    def hides_goodbyes(self) -> bool:
        return self._trouble is Trouble.NO_GOODBYE

    @property
    def loses_replies(self) -> bool:
        return self._trouble is Trouble.REPLY_LOST


class _Connection:
    """One connection."""

    def __init__(
        self,
        proxy: Proxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._from_server = from_server
        self._to_server = to_server
        self._loss: _Loss | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as ways:
            there = ways.create_task(self._pass_on())
            ways.create_task(self._pass_back(there))

    async def _pass_on(self) -> None:
        while data := await self._reader.read(PORTION):
            if await self._proxy.admit():
                self._loss = self._loss or self._proxy.losing(data)
                try:
                    self._to_server.write(data)
                    await self._to_server.drain()
                except ConnectionError:
                    if not self._proxy.hides_goodbyes:
                        raise
        self._to_server.write_eof()

    async def _pass_back(self, there: asyncio.Task[None]) -> None:
        while data := await self._from_server.read(PORTION):
            if self._proxy.loses_replies:
                break
            if self._loss is not None:
                if self._loss.answer in data:
                    self._proxy.hits += 1
                    if not self._loss.silent:
                        break
                continue
            if await self._proxy.admit():
                self._writer.write(data)
                await self._writer.drain()
        if not self._proxy.hides_goodbyes:
            there.cancel()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Resets the connection. Bytes that were passed on but not read yet may be lost with it."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        if connection is not None:  # not closed by its own side in this very moment
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
