"""Connections of one address take no place from those of others, on real processes that may open few files."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S

OPEN_FILES = 256
IDLE = 400
HOGS, OTHERS = "127.0.0.2", "127.0.0.3"


def connected(stack: Stack, source: str) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", stack.port), PATIENCE_S, source_address=(source, 0))
    made.settimeout(PATIENCE_S)
    return made


def asked(connection: socket.socket, path: str, headers: str = "") -> tuple[int, bytes]:
    """The status and the rest of what came, up to the end of the connection."""
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{headers}\r\n".encode())
    answer = b""
    while part := connection.recv(65536):
        answer += part
    return int(answer.split()[1]), answer


def heard(connection: socket.socket) -> bytes:
    """Returns the bytes that have arrived already."""
    connection.setblocking(False)
    try:
        return connection.recv(65536)
    except BlockingIOError:
        return b""


@contextlib.contextmanager
def idling(stack: Stack, source: str, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as open_ones:
        yield [open_ones.enter_context(connected(stack, source)) for _ in range(count)]


async def test_idle_connections_of_one_address_starve_nobody(folder: Path) -> None:
    """400 of them where a process may open 256 files: those above the share are told so, the others are served."""
    async with running(Stack(folder, api=1, open_files=OPEN_FILES)) as stack:
        with idling(stack, HOGS, IDLE) as hogs:
            for _ in range(20):
                with connected(stack, OTHERS) as other:
                    assert asked(other, "/healthz")[0] == 200
            # They came before those who were served, so they have been let in or told by now.
            told_off = [answer for answer in map(heard, hogs) if answer]
            assert len(told_off) >= IDLE - OPEN_FILES
            assert all(b" 429 " in answer and b"too_many_connections" in answer for answer in told_off)
            key = stack.settings.admin_key
            assert key is not None
            with connected(stack, OTHERS) as other:
                _, metrics = asked(other, "/metrics", f"Authorization: Bearer {key.reveal()}\r\n")
        assert stack.metric(metrics.decode(), 'seckill_incidents_total{kind="address_crowded"}') >= IDLE - OPEN_FILES
        told = [json.loads(line) for line in stack.lines('"address_crowded"')]
        assert told
        assert len(told) < 20, "one line each ten seconds, not one for each of them"
        assert all(HOGS in line["most"] for line in told)
        deadline_s = time.monotonic() + PATIENCE_S
        while True:  # when they are gone, the address is welcome again
            with connected(stack, HOGS) as later:
                if asked(later, "/healthz")[0] == 200:
                    break
            assert time.monotonic() < deadline_s
