"""Joining a line over HTTP, beside pressing; and a hundred thousand people who watch how far the line has come.

    make check && .venv/bin/python benchmarks/line_http.py [--seconds 5] [--repeats 3] [--people 100000] [--watch 20]

**Joins.** One API process, a worker and a keeper on a fresh Valkey and SQLite (or SECKILL_DATABASE_URL). 500
connections, distinct buyers with their own tokens: claims on a sale and joins of a draw, in turns. A claim is answered
when the gate has it, a join when the ledger has it; afterwards the ledger is asked whether it has as many as were
answered. Rates depend on what else the machine does; the CPU time that one takes the API process hardly does.

**Watching.** Buyers' pages ask for `GET /v1/sales/{id}/line` every 3 to 4 s, and the answer may be kept for a second.
Each of the people is a timer here, and between them and the API stands what a CDN does: one copy, kept as long as
`Cache-Control` says, and one question for all who come while it is asked. What is counted is what reaches the API, its
CPU time, and how old what people saw was. Then the same question without any cache, as fast as one process answers it.
"""

import argparse
import asyncio
import heapq
import os
import random
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx2
import uvloop

from seckill.domain.door import OPEN_DOOR
from seckill.domain.sale import Sale
from seckill.lab.bench.claim_lines import make_tokens, write_lines
from seckill.lab.bench.load import CONNECTIONS, Load, generator, load
from seckill.lab.bench.measures import DRAW, UNITS
from seckill.lab.bench.place import Running, engine_on, place

# As line_parts.js asks.
EVERY_S, JITTER_S = 3.0, 1.0
DIRECT_CONNECTIONS = 200


async def measured(running: Running, sale: Sale, what: str, tokens: list[str], seconds: float) -> tuple[Load, float]:
    """And the microseconds of CPU time that one took the API process."""
    lines = write_lines(running.place.folder / what, running.path(sale, what), tokens)
    before = running.cpu_s()["api"]
    seen = await load(running.address, lines, seconds=seconds)
    assert seen.refusals == 0, f"{seen.refusals} of {seen.answers} {what} were refused"
    return seen, 1e6 * (running.cpu_s()["api"] - before) / seen.answers


async def joins(running: Running, seconds: float, repeats: int) -> Sale:
    tokens = make_tokens(running.place.settings, seconds)
    for door, what in ((OPEN_DOOR, "orders"), (DRAW, "entries")):  # connects everything to everything
        await measured(running, await running.new_sale(UNITS, door=door), what, tokens, seconds)
    print("         claims/s   p50 ms   µs CPU each      joins/s   p50 ms   µs CPU each   joins/claims")
    ratios, last = [], None
    for number in range(repeats):
        found: dict[str, tuple[Load, float]] = {}
        for what in ("orders", "entries")[:: 1 if number % 2 == 0 else -1]:  # neither is always the first
            sale = await running.new_sale(UNITS, door=DRAW if what == "entries" else OPEN_DOOR)
            found[what] = await measured(running, sale, what, tokens, seconds)
            if what == "entries":
                line = await running.engine.ledger.lines.line(sale.round.id)
                assert line is not None
                # And those whose answers were on the way when the load ended.
                more = line.waiting - found[what][0].answers
                assert 0 <= more <= CONNECTIONS, "the ledger has every entry that was answered"
                last = sale
        (claims, claim_us), (joined, join_us) = found["orders"], found["entries"]
        ratios.append(joined.per_s / claims.per_s)
        print(
            f"{number + 1:7}  {claims.per_s:8.0f} {claims.p50_ms:8.1f} {claim_us:13.0f}  "
            f"{joined.per_s:11.0f} {joined.p50_ms:8.1f} {join_us:13.0f}  {ratios[-1]:13.2f}",
            flush=True,
        )
    print(f"joins for each claim, the median: {statistics.median(ratios):.2f}")
    assert last is not None
    return last


class Cache:
    """What a CDN does with one address: a copy for as long as it may be kept, and one question at a time."""

    def __init__(self, http: httpx2.AsyncClient, path: str) -> None:
        self._http = http
        self._path = path
        self._asking: asyncio.Task[None] | None = None
        self._made_s = 0.0
        self._until_s = 0.0
        self.asked = 0

    async def get(self) -> float:
        """How old the answer is, in seconds."""
        if time.monotonic() >= self._until_s:
            if self._asking is None:
                self._asking = asyncio.create_task(self._ask())
            await self._asking
        return time.monotonic() - self._made_s

    async def _ask(self) -> None:
        self.asked += 1
        began_s = time.monotonic()
        answer = await self._http.get(self._path)
        answer.raise_for_status()
        kept = re.search(r"max-age=(\d+)", answer.headers["Cache-Control"])
        assert kept is not None
        self._made_s, self._until_s = began_s, time.monotonic() + int(kept[1])
        self._asking = None


async def watching(running: Running, sale: Sale, people: int, seconds: float) -> None:
    chance = random.Random(1)
    async with httpx2.AsyncClient(base_url=running.address, timeout=60) as http:
        cache = Cache(http, running.path(sale, "line"))
        await cache.get()
        due = [chance.uniform(0, EVERY_S + JITTER_S) for _ in range(people)]
        heapq.heapify(due)
        ages: list[float] = []
        asked, cpu_s, began_s = cache.asked, running.cpu_s(), time.monotonic()
        while (now_s := time.monotonic() - began_s) < seconds:
            come = 0
            while due[0] <= now_s:  # all who are due come now, and each comes again
                heapq.heapreplace(due, now_s + EVERY_S + chance.uniform(0, JITTER_S))
                come += 1
            if come:
                age = await cache.get()  # one question for all of them
                ages += [age] * come
            await asyncio.sleep(0.001)
        took_s = time.monotonic() - began_s
        spent = {role: running.cpu_s()[role] - before for role, before in cpu_s.items()}
    ages.sort()
    reached = (cache.asked - asked) / took_s
    print(
        f"{people} people for {took_s:.0f} s: {len(ages) / took_s:,.0f} looks a second, {reached:.2f} reached the API,"
    )
    print(f"whose CPU time was {100 * spent['api'] / took_s:.1f} % of a core, with all that it does when nobody asks;")
    print(f"what they saw was {ages[len(ages) // 2]:.2f} s old (half of them), {ages[-1]:.2f} s at most")


async def directly(running: Running, sale: Sale, seconds: float) -> None:
    """Without a cache: as fast as one process answers."""
    port = int(running.address.rsplit(":", 1)[1])
    request = f"GET {running.path(sale, 'line')} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
    until_s, answers = time.perf_counter() + seconds, 0

    async def ask() -> None:
        nonlocal answers
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until_s:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
            answers += 1
        writer.close()

    before = running.cpu_s()["api"]
    await asyncio.gather(*(ask() for _ in range(DIRECT_CONNECTIONS)))
    cpu_us = 1e6 * (running.cpu_s()["api"] - before) / answers
    feeds = 1e6 / cpu_us * (EVERY_S + JITTER_S / 2)
    print(
        f"without a cache: {answers / seconds:,.0f} a second, {cpu_us:.0f} µs CPU each: a core for {feeds:,.0f} people"
    )


async def main(given: Any) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {generator()}")
    async with place(os.environ.get("SECKILL_DATABASE_URL", "")) as here, engine_on(here) as running:
        sale = await joins(running, given.seconds, given.repeats)
        await watching(running, sale, given.people, given.watch)
        await directly(running, sale, given.seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--watch", type=float, default=20.0)
    uvloop.run(main(parser.parse_args()))
