"""How many claims a second a round takes that is spread over lanes, and lanes over servers.

    make check && .venv/bin/python benchmarks/lanes.py [--seconds 2] [--repeats 3]

Starts Valkey servers that sync before they answer, as in production, and a process for each lane that calls the
admission script with whole batches, for distinct buyers of that lane. No HTTP, no worker: this is about the gate.
It also tells what a claim costs a server in CPU time, which does not depend on how many cores there happen to be.
"""

import argparse
import asyncio
import itertools
import os
import statistics
import sys
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim
from seckill.domain.sale import RoundRef
from seckill.local.valkey import EmbeddedValkey
from tests.backends.gate.conftest import open_round
from tests.making import make_round

BATCH = 100
CALLS_AT_ONCE = 3
SETUPS = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (3, 3)]  # servers, lanes
UNITS = 100_000_000


def cpu_s(pids: list[int]) -> float:
    """User and system time of these processes so far."""
    ticks = (Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for pid in pids)
    return sum(int(user) + int(system) for user, system in ticks) / os.sysconf("SC_CLK_TCK")


def claim_for(url: str, ref: RoundRef, lane: int, seconds: float, ready: Barrier, results: "Queue[int]") -> None:
    """A process of its own: claims in one lane, from when all are ready. Its result is how many were admitted."""

    async def run() -> int:
        gate = RedisGate(url, timeout_s=30, backlog_max=UNITS)
        share = RoundRef(id=ref.id, lane=lane)
        users = (user for user in (f"buyer-{i}" for i in itertools.count()) if ref.lane_of(user) == lane)
        batches = [[Claim(user, 1) for user in itertools.islice(users, BATCH)] for _ in range(int(seconds * 400))]
        await gate.admit(share, batches.pop())  # connected, with the script loaded
        ready.wait()
        until_s = time.monotonic() + seconds
        admitted = 0

        async def call() -> None:
            nonlocal admitted
            while batches and time.monotonic() < until_s:
                admitted += len((await gate.admit(share, batches.pop())).answers)

        await asyncio.gather(*(call() for _ in range(CALLS_AT_ONCE)))
        await gate.close()
        return admitted

    results.put(asyncio.run(run()))


async def measure(servers: list[EmbeddedValkey], lanes: int, round_id: int, seconds: float) -> tuple[float, float]:
    """Claims a second, and microseconds of the servers' CPU for each claim."""
    round_ = make_round(id=round_id, lane=0, lanes=lanes, total=UNITS)
    urls = [servers[lane % len(servers)].url for lane in range(lanes)]
    for lane, url in enumerate(urls):
        gate = RedisGate(url, timeout_s=30, backlog_max=UNITS)
        await open_round(gate, make_round(id=round_id, lane=lane, total=UNITS // lanes))
        await gate.close()
    spawn = get_context("spawn")
    ready, results = spawn.Barrier(lanes + 1), spawn.Queue()
    clients = [
        spawn.Process(target=claim_for, args=(url, round_.ref, lane, seconds, ready, results))
        for lane, url in enumerate(urls)
    ]
    for client in clients:
        client.start()
    ready.wait()
    pids = [server.pid for server in servers]
    before_s = cpu_s(pids)
    admitted = sum(results.get() for _ in clients)
    cost_s = cpu_s(pids) - before_s
    for client in clients:
        client.join()
    return admitted / seconds, cost_s / admitted * 1e6


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--seconds", type=float, default=2)
    arguments.add_argument("--repeats", type=int, default=3)
    chosen = arguments.parse_args()
    round_ids = itertools.count(1)
    found: dict[tuple[int, int], list[tuple[float, float]]] = {setup: [] for setup in SETUPS}
    with tempfile.TemporaryDirectory(prefix="sk") as name:
        servers = [EmbeddedValkey(Path(name) / str(i), durability="strict") for i in range(3)]
        try:
            for server in servers:
                await server.start()
                await server.ready()
            for _ in range(chosen.repeats):  # interleaved, so that a busy moment does not decide
                for count, lanes in SETUPS:
                    figures = await measure(servers[:count], lanes, next(round_ids), chosen.seconds)
                    found[count, lanes].append(figures)
        finally:
            for server in servers:
                await server.stop()
    print("servers  lanes  claims/s (median)  server CPU µs/claim")
    for (count, lanes), figures in found.items():
        rate, cost = (statistics.median(column) for column in zip(*figures, strict=True))
        print(f"{count:>7}  {lanes:>5}  {rate:>17,.0f}  {cost:>19.1f}")


if __name__ == "__main__":
    asyncio.run(main())
