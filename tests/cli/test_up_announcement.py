"""Where `seckill up` listens is known to other commands from the moment at which it answers."""

import asyncio
import socket
from contextlib import closing
from pathlib import Path

from seckill.cli.api_connection import ADDRESS_FILE
from seckill.cli.up_announcement import Greeting, announce
from seckill.loops import Stop
from seckill.settings import Secret, Settings
from tests.patience import PATIENCE_S


async def test_the_address_is_noted_before_anybody_can_see_an_answer(tmp_path: Path) -> None:
    noted = tmp_path / ADDRESS_FILE
    noted.write_text("http://127.0.0.1:1\n")  # of a run that was killed
    stop = Stop()
    seen: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.append(noted.read_text())
        status = b"200 OK" if len(seen) > 1 else b"503 Service Unavailable"
        writer.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
            % status
        )
        writer.close()
        if len(seen) > 1:
            stop.set()

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        settings = Settings(data_dir=tmp_path, admin_key=Secret("a" * 40))
        async with await asyncio.start_server(answer, sock=listener.dup()):
            known = Greeting(buyer_token=None, sale_id=None, has_help=False)
            await asyncio.wait_for(announce(settings, listener, stop, known, demo=False), PATIENCE_S)
        assert seen == [f"http://127.0.0.1:{listener.getsockname()[1]}\n"] * 2
    assert not noted.exists()
