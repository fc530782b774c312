"""Our own load generator: `python -m seckill.lab.bench.generator ADDRESS SECONDS`, claims in $LINES.

Without $PER_S, each connection sends its next claim as soon as the last one is answered, like wrk, which this replaces
where it is missing. With $PER_S, that many people come every second whatever the server does: each takes the next free
connection, or waits for one. Requests are built in advance and hardly more than the length of an answer is read,
because any further work of the client would take CPU time from the server that is measured.
"""

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import msgspec
import uvloop

from seckill.lab.bench.load import CONNECTIONS, Load

TICK_S = 0.005
# The generator stops waiting for answers after this time.
LAST_ANSWERS_S = 30.0


def requests(lines: Path, *, cycle: bool) -> Iterator[bytes]:
    made = []
    for line in lines.read_text().splitlines():
        path, token = line.split()
        made.append(
            f"POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".encode()
        )
    while True:
        yield from made
        if not cycle:
            return


class Pressers:
    """The people who press, and what came of it."""

    def __init__(self, pending: Iterator[bytes], *, until_s: float, paced: bool) -> None:
        self._pending = pending
        self._until_s = until_s
        self._paced = paced
        self._without_connection = 0
        self._free: deque[PressersConnection] = deque()
        self._unanswered = 0
        self._over = False
        self.waits_s: list[float] = []
        self.refusals = 0
        self.all_answered = asyncio.Event()

    def connected(self, connection: "PressersConnection") -> None:
        if self._paced:
            self._free.append(connection)
        else:
            self._press(connection)

    def come(self, people: int) -> None:
        self._without_connection += people
        while self._without_connection and self._free:
            self._without_connection -= 1
            self._press(self._free.popleft())

    def give_up(self) -> None:
        """Gives up those who still have no connection."""
        self._without_connection = 0
        self._end()

    def answered(self, connection: "PressersConnection", *, good: bool) -> None:
        self.waits_s.append(time.perf_counter() - connection.pressed_s)
        self.refusals += not good
        self._unanswered -= 1
        if not self._paced:
            self._press(connection)
        elif self._without_connection:
            self._without_connection -= 1
            self._press(connection)
        else:
            self._free.append(connection)
        if self._over:
            self._end()

    def lost(self) -> None:
        self._unanswered -= 1
        if self._over:
            self._end()

    def _press(self, connection: "PressersConnection") -> None:
        now_s = time.perf_counter()
        request = next(self._pending, None) if now_s < self._until_s else None
        if request is None:
            self._end()
            return
        self._unanswered += 1
        connection.send(request, now_s)

    def _end(self) -> None:
        self._over = True
        if not self._unanswered:
            self.all_answered.set()


class PressersConnection(asyncio.Protocol):
    def __init__(self) -> None:
        self._crowd: Pressers | None = None
        self._transport: asyncio.Transport | None = None
        self._read = b""
        self._pressed = False
        self.pressed_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports do not inherit from asyncio's

    def join(self, pressers: Pressers) -> None:
        self._crowd = pressers
        pressers.connected(self)

    def send(self, request: bytes, now_s: float) -> None:
        assert self._transport is not None
        self.pressed_s = now_s
        self._pressed = True
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        answer = self._read + data if self._read else data
        end = answer.find(b"\r\n\r\n")
        if end < 0 or len(answer) < end + 4 + _length(answer, end):
            self._read = answer
            return
        self._read = b""
        self._pressed = False
        assert self._crowd is not None
        self._crowd.answered(self, good=answer[9:10] == b"2")

    def connection_lost(self, _: Exception | None) -> None:
        if self._pressed and self._crowd is not None:
            self._crowd.lost()

    def close(self) -> None:
        self._pressed = False
        assert self._transport is not None
        self._transport.close()


def _length(answer: bytes, end: int) -> int:
    head = answer[:end].lower()
    begin = head.find(b"content-length:") + 15
    stop = head.find(b"\r\n", begin)
    return int(head[begin : stop if stop > 0 else end])


async def main(address: str, seconds: float) -> None:
    target = urlsplit(address)
    assert target.hostname is not None
    assert target.port is not None
    per_s = float(os.environ["PER_S"]) if "PER_S" in os.environ else None
    pending = requests(Path(os.environ["LINES"]), cycle="CYCLE" in os.environ)
    loop = asyncio.get_running_loop()
    connections = [
        (await loop.create_connection(PressersConnection, target.hostname, target.port))[1]
        for _ in range(int(os.environ.get("CONNECTIONS", CONNECTIONS)))
    ]
    began_s = time.perf_counter()
    pressers = Pressers(pending, until_s=began_s + seconds, paced=per_s is not None)
    for connection in connections:
        connection.join(pressers)
    if per_s is not None:
        await _come(pressers, began_s, seconds, per_s)
    async with asyncio.timeout(seconds + LAST_ANSWERS_S):
        await pressers.all_answered.wait()
    took_s = time.perf_counter() - began_s
    for connection in connections:
        connection.close()
    waits_ms = sorted(wait_s * 1000 for wait_s in pressers.waits_s)
    result = Load(
        answers=len(waits_ms),
        refusals=pressers.refusals,
        took_s=took_s,
        p50_ms=round(waits_ms[len(waits_ms) // 2], 2),
        p99_ms=round(waits_ms[len(waits_ms) * 99 // 100], 2),
    )
    sys.stdout.buffer.write(msgspec.json.encode(result))


async def _come(pressers: Pressers, began_s: float, seconds: float, per_s: float) -> None:
    came = 0
    while (since_s := time.perf_counter() - began_s) < seconds:
        people = int(since_s * per_s) - came
        came += people
        pressers.come(people)
        await asyncio.sleep(TICK_S)
    pressers.give_up()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], float(sys.argv[2])))
