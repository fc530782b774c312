"""What an accepted order costs the processes behind the API, in CPU time up to the committed row.

    make check && .venv/bin/python benchmarks/order_cost.py [--ledger sqlite postgres mariadb] [--turns 5] [--batch 150]

Claims of distinct buyers are admitted in batches, as an API process under load does it, by this process, which is not
counted; a worker of its own writes them. Nothing is admitted while more than `BACKLOG` orders wait, so that the worker
has full batches and nobody measures a queue. CPU time, so that it matters little what else the machine does; of several
turns the quickest counts, since others can only make one slower. To compare two versions, run it in turns in two
checkouts.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim
from seckill.domain.sale import Sale
from seckill.lab.bench.place import Running, engine_on, place
from seckill.lab.chaos.servers.postgres import PostgresServer
from seckill.lab.servers.mariadb import EmbeddedMariaDB

UNITS = 100_000_000
CALLS_AT_ONCE = 2
BACKLOG = 2_000
WARM_UP = 20_000
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@contextlib.asynccontextmanager
async def server(ledger: str) -> AsyncIterator[tuple[str, Callable[[], list[int]]]]:
    """The address of a database server of our own, and its processes."""
    with tempfile.TemporaryDirectory(prefix="skcost", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if ledger == "postgres":
            await asyncio.to_thread(folder.chmod, 0o755)  # as root, it runs as another user
            postgres = PostgresServer(folder)
            await postgres.start()
            try:
                yield postgres.url, postgres.pids
            finally:
                await postgres.stop()
        elif ledger == "mariadb":
            mariadb = EmbeddedMariaDB(folder)
            await mariadb.start()
            await mariadb.ready()
            await mariadb.execute("CREATE DATABASE seckill")
            try:
                yield mariadb.url("seckill"), lambda: [mariadb.pid]
            finally:
                await mariadb.stop()
        else:
            yield "", list


def cpu_s(pids: list[int]) -> float:
    """User and system time of these processes and of their children that have ended."""
    found = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            found += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15]))
    return found * TICK_S


async def admit(
    running: Running, sale: Sale, gate: RedisGate, orders: int, batch: int, numbers: "itertools.count[int]"
) -> None:
    """And wait until all of it is written."""
    transport, lanes = running.engine.transport, [sale.round.lane]
    left = orders // batch
    waits = False

    async def call() -> None:
        nonlocal left
        while left > 0:
            if waits:
                await asyncio.sleep(0.002)
                continue
            left -= 1
            claims = [Claim(f"buyer-{next(numbers)}", 1) for _ in range(batch)]
            await gate.admit(sale.round.ref, claims)

    async def look() -> None:
        nonlocal waits
        while left > 0 or await transport.backlog(lanes):
            waits = await transport.backlog(lanes) > BACKLOG
            await asyncio.sleep(0.01)

    await asyncio.gather(look(), *(call() for _ in range(CALLS_AT_ONCE)))


async def turn(ledger: str, orders: int, batch: int) -> dict[str, float]:
    async with server(ledger) as (url, database_pids), place(url) as here, engine_on(here, ["worker"]) as running:
        sale = await running.new_sale(UNITS)
        gate = RedisGate(here.settings.redis_url, timeout_s=30, backlog_max=UNITS)
        numbers = itertools.count()
        pids = {
            "valkey": lambda: [running.pids["valkey"]],
            "worker": lambda: [running.pids["worker"]],
            "database": database_pids,
        }
        try:
            await admit(running, sale, gate, WARM_UP, batch, numbers)
            before = {name: cpu_s(of()) for name, of in pids.items()}
            began_s = time.monotonic()
            await admit(running, sale, gate, orders, batch, numbers)
            took_s = time.monotonic() - began_s
            spent = {name: (cpu_s(of()) - before[name]) * 1e6 / orders for name, of in pids.items()}
        finally:
            await gate.close()
        tally = await running.engine.ledger.tally(sale.round.id)
        assert tally is not None
        assert tally.unpaid == orders // batch * batch + WARM_UP // batch * batch, tally
        return {**spent, "all": sum(spent.values()), "a second": orders / took_s}


async def measure(ledger: str, turns: int, orders: int, batch: int) -> None:
    found = []
    for _ in range(turns):
        found.append(await turn(ledger, orders, batch))
        print(ledger, *(f"{name} {value:.1f}" for name, value in found[-1].items()), flush=True)
    names = [name for name in found[0] if name != "a second"]
    for word, choose in (("best", min), ("median", statistics.median)):
        print(
            f"{ledger} {word}", *(f"{name} {choose(each[name] for each in found):.1f}" for name in names), "µs an order"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="CPU µs of an accepted order behind the API.")
    parser.add_argument("--ledger", nargs="*", default=["sqlite", "postgres", "mariadb"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--orders", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=150)
    asked = parser.parse_args()
    for each in asked.ledger:
        asyncio.run(measure(each, asked.turns, asked.orders, asked.batch))
