"""What a line costs when it is empty and when a million people are in it: joining, looking, serving, the draw.

    .venv/bin/python benchmarks/line_scale.py [DATABASE_URL] [--entries 1000000]

Without an address, a new SQLite database in a temporary folder; CPU time is this process's, which writes it, and the
seconds in brackets are by the clock: on a busy machine a multiple of it. Joining is told for each tenth of the line.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from seckill.backends.door.beacon_reader import HttpBeacon
from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.migration import migrate
from seckill.domain.door import Door
from seckill.domain.line import LineOrder, LineRules
from seckill.domain.public_id import PublicIds
from seckill.domain.sale import Sale, SaleChange, SaleDraft
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.line.beacons import Beacons
from seckill.engine.line.drawing import Drawing
from seckill.ports.line import Joining, NoEntry

BATCH = 500
PORTIONS = 10
HOUR_MS = 3_600_000


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("url", nargs="?")
    options.add_argument("--entries", type=int, default=1_000_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.url or f"sqlite:///{Path(folder) / 'ledger.db'}"
        await migrate(url)
        ledger = open_ledger(url)
        await measure(ledger, given.entries)
        await ledger.close()


async def measure(ledger: SqlLedger, entries: int) -> None:
    now_ms = int(time.time() * 1000)
    rules = LineRules(order=LineOrder.DRAW)
    draft = SaleDraft(
        title="Phone",
        units=entries,
        limit_per_buyer=1,
        price_cents=100,
        currency="CNY",
        begins_ms=now_ms + HOUR_MS,
        ends_ms=now_ms + 2 * HOUR_MS,
        pay_within_s=900,
        door=Door(line=rules),
    )
    sale = await ledger.create_sale(draft, lane=0)
    began_s, started_s = time.perf_counter(), time.process_time()
    portion = max(1, entries // BATCH // PORTIONS)
    for batch in range(1, entries // BATCH + 1):
        await join(ledger, sale, (batch - 1) * BATCH)
        if batch % portion == 0:
            cpu_us = 1e6 * (time.process_time() - started_s) / (portion * BATCH)
            say(f"joining, up to {batch * BATCH:,} in the line: {cpu_us:.1f} µs of CPU time each")
            started_s = time.process_time()
    say(f"{entries:,} entries in {time.perf_counter() - began_s:.0f} s")
    await say_size(ledger, entries)
    await ledger.change_sale(sale.id, SaleChange(begins_ms=int(time.time() * 1000)))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    beacons = Beacons(ledger.lines, HttpBeacon(), Alarm(""))
    with taking() as draw:
        await Drawing(ledger.lines, PublicIds(b"k" * 32, "entry"), beacons).step()
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    say(f"the draw: {draw}, {grown_kb / 1024:.0f} MB more than before")
    for _ in range(3):
        with taking() as calling:
            called = await ledger.lines.call_next(sale.round.id, "bench", 60, {0: entries}, BATCH)
        assert called is not None
        refused = {entry.id: "bench" for entry in called}
        with taking() as settling:
            await ledger.lines.settle_called(sale.round.id, "bench", called, refused)
        say(f"serving {len(called)}: calling {calling}, settling {settling}")
    await look(ledger, sale, entries)


async def look(ledger: SqlLedger, sale: Sale, entries: int) -> None:
    last = (await ledger.lines.entries_by_place(sale.round.id, entries - BATCH, BATCH))[-1]
    with taking() as one:
        [standing] = await ledger.lines.standings([last.id])
    say(f"looking at one's place, {standing.ahead:,} ahead: {one}")
    asked = [(sale.round.id, f"buyer-{number:09}") for number in range(0, entries, max(1, entries // BATCH))]
    with taking() as many:
        found = await ledger.lines.standings_of(asked)
    say(f"{len(found)} of all places, who do not know their entries, look at once: {many}")
    with taking() as far:
        await ledger.lines.served_up_to(standing.line)
    say(f"how far the line has come: {far}")


class Taken:
    cpu_s = 0.0
    wall_s = 0.0

    def __str__(self) -> str:
        return f"{1e3 * self.cpu_s:,.1f} ms of CPU time ({self.wall_s:.2f} s)"


@contextmanager
def taking() -> Iterator[Taken]:
    taken = Taken()
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    yield taken
    taken.cpu_s, taken.wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s


async def join(ledger: SqlLedger, sale: Sale, first: int) -> None:
    asked = [Joining(user=f"buyer-{number:09}", quantity=1) for number in range(first, first + BATCH)]
    joined = await ledger.lines.join(sale.round.id, asked)
    assert not isinstance(joined, NoEntry)


async def say_size(ledger: SqlLedger, entries: int) -> None:
    kind = ledger.database.writers.dialect.name
    if kind == "postgresql":
        statement = "SELECT pg_relation_size('line_entries'), pg_total_relation_size('line_entries')"
    elif kind == "sqlite":
        of = "SELECT sum(pgsize) FROM dbstat WHERE name"
        statement = f"SELECT ({of} = 'line_entries'), ({of} LIKE '%line_entries%')"
    else:
        return
    async with ledger.database.readers.connect() as connection:
        rows, total = (await connection.execute(text(statement))).one()
    say(f"an entry: {rows / entries:.0f} bytes, with its indexes {total / entries:.0f}")


def say(words: str) -> None:
    print(words, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
