"""A load generator where there is no wrk: `python -m seckill.lab.bench.generator ADDRESS SECONDS`, claims in $LINES.

Requests are made ahead, and of an answer little more than its length is read. Whatever a client did beyond that would
take CPU time from the server that is measured.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import uvloop

from seckill.lab.bench.load import CONNECTIONS, Load


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


async def press(host: str, port: int, until_s: float, pending: Iterator[bytes], seen: list[tuple[float, bool]]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    for request in pending:
        began_s = time.perf_counter()
        if began_s > until_s:
            break
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        seen.append((time.perf_counter() - began_s, head[9:10] == b"2"))
    writer.close()
    await writer.wait_closed()


async def main(address: str, seconds: float) -> None:
    target = urlsplit(address)
    assert target.hostname is not None
    assert target.port is not None
    pending = requests(Path(os.environ["LINES"]), cycle="CYCLE" in os.environ)
    seen: list[tuple[float, bool]] = []
    began_s = time.perf_counter()
    people = (press(target.hostname, target.port, began_s + seconds, pending, seen) for _ in range(CONNECTIONS))
    await asyncio.gather(*people)
    took_s = time.perf_counter() - began_s
    waits_ms = sorted(wait_s * 1000 for wait_s, _ in seen)
    result = Load(
        answers=len(seen),
        refusals=sum(not good for _, good in seen),
        took_s=took_s,
        p50_ms=round(waits_ms[len(waits_ms) // 2], 2),
        p99_ms=round(waits_ms[len(waits_ms) * 99 // 100], 2),
    )
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], float(sys.argv[2])))
