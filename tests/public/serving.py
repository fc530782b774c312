"""An API on a port, for clients that go over HTTP, and a server that answers as a test says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from seckill.web.connections.listening_socket import bind


@asynccontextmanager
async def on_a_port(app: Any, port: int = 0) -> AsyncIterator[str]:
    listener = bind("127.0.0.1", port)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@dataclass
class Scripted:
    """Gives one answer after the other; with an empty one it hangs up without a word."""

    answers: list[bytes]
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0
    url: str = ""
    tasks: list[Any] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                self.asked.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0)
                writer.write(answer)
                await writer.drain()
                if not answer or b"connection: close" in answer.lower():
                    break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def scripted(*answers: bytes) -> AsyncIterator[Scripted]:
    made = Scripted(list(answers))
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await asyncio.gather(*made.tasks)


def reply(status: int, body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{line}\r\n" for line in (f"Content-Length: {len(body)}", *headers))
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body
