"""How many webhooks one keeper delivers in a second, to a receiver on the same machine.

    make check && .venv/bin/python benchmarks/webhooks.py [--seconds 3] [--answer-ms 0] [--database postgresql://…]

The figures of docs/webhooks.md. Orders are made first, with the endpoint disabled; then it is enabled, and the time
from the first arrival to the last counts. The receiver is a process of its own, and reads whole requests. CPU time of
the keeper for each delivery is given as well: it does not depend on what else the machine does.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from seckill.client import AsyncClient
from seckill.lab.bench import measures
from seckill.lab.bench.claim_lines import make_tokens, write_lines
from seckill.lab.bench.load import load
from seckill.lab.bench.place import Running, engine_on, place

POLL_S = 0.05


async def receive(answer_s: float) -> None:
    """Says its port, and for each line on its standard input how many have come, and when the first and the last."""
    came: list[float] = []

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        await asyncio.sleep(answer_s)
        came.append(time.monotonic())
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(len(came), came[0] if came else 0, came[-1] if came else 0, flush=True)


class Receiver:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.url = f"http://127.0.0.1:{port}/hook"

    async def came(self) -> tuple[int, float, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        count, first_s, last_s = (await self._process.stdout.readline()).split()
        return int(count), float(first_s), float(last_s)


@asynccontextmanager
async def receiver(answer_ms: float) -> AsyncIterator[Receiver]:
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, __file__, "--answer-ms", f"{answer_ms:g}", "--receive")
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        assert process.stdout is not None
        yield Receiver(process, int(await process.stdout.readline()))
    finally:
        process.terminate()
        await process.wait()


async def measure(database: str, seconds: float, answer_ms: float) -> None:
    async with (
        place(database) as here,
        engine_on(here, SECKILL_WEBHOOK_PRIVATE="on") as running,
        receiver(answer_ms) as shop,
    ):
        key = here.settings.admin_key
        assert key is not None
        async with AsyncClient(running.address, key.reveal()) as operator:
            webhook = await operator.create_webhook(shop.url)
            await operator.change_webhook(webhook.id, {"enabled": False})
            await buy(running, seconds)
            # What is not told yet is lined up within a moment; nothing is written any more.
            await asyncio.sleep(3)
            wanted = (await operator.webhook(webhook.id)).behind
            before = running.cpu_s()["keeper"]
            await operator.change_webhook(webhook.id, {"enabled": True})
            while (await shop.came())[0] < wanted:  # noqa: ASYNC110 (it happens in other processes)
                await asyncio.sleep(POLL_S)
            spent_s = running.cpu_s()["keeper"] - before
        count, first_s, last_s = await shop.came()
    print(
        f"{count} deliveries, answered after {answer_ms:g} ms: {count / (last_s - first_s):.0f} a second, "
        f"{spent_s / count * 1e6:.0f} µs of CPU of the keeper for each"
    )


async def buy(running: Running, seconds: float) -> None:
    sale = await running.new_sale(measures.UNITS)
    tokens = make_tokens(running.place.settings, seconds)
    lines = write_lines(running.place.folder / "lines", running.path(sale), tokens)
    await load(running.address, lines, seconds=seconds)
    while await running.engine.transport.backlog([sale.round.lane]):  # noqa: ASYNC110 (it happens in other processes)
        await asyncio.sleep(POLL_S)


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--seconds", type=float, default=3.0, help="so long orders are made")
    arguments.add_argument("--answer-ms", type=float, default=0.0, help="so long the receiver thinks")
    arguments.add_argument("--database", default="", help="the address of a PostgreSQL server; else SQLite")
    arguments.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.receive:
        await receive(given.answer_ms / 1000)
    else:
        await measure(given.database, given.seconds, given.answer_ms)


if __name__ == "__main__":
    asyncio.run(main())
