"""What a line costs when it is empty and when a million people are in it: joining, looking, serving, the draw.

    .venv/bin/python benchmarks/line_scale.py [DATABASE_URL] [--entries 1000000]

Without an address, a new SQLite database in a temporary folder; CPU time is this process's, which writes it. Joining is
told for each tenth of the line.
"""

import argparse
import asyncio
import resource
import tempfile
import time
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
    started_s = time.perf_counter()
    beacons = Beacons(ledger.lines, HttpBeacon(), Alarm(""))
    await Drawing(ledger.lines, PublicIds(b"k" * 32, "entry"), beacons).step()
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    say(f"the draw: {time.perf_counter() - started_s:.0f} s, {grown_kb / 1024:.0f} MB more than before")
    for _ in range(3):
        started_s = time.perf_counter()
        called = await ledger.lines.call_next(sale.round.id, "bench", 60, {0: entries}, BATCH)
        assert called is not None
        called_s, started_s = time.perf_counter() - started_s, time.perf_counter()
        refused = {entry.id: "bench" for entry in called}
        await ledger.lines.settle_called(sale.round.id, "bench", called, refused)
        settled_s = time.perf_counter() - started_s
        say(f"serving {len(called)}: calling {1e3 * called_s:.0f} ms, settling {1e3 * settled_s:.0f} ms")
    last = (await ledger.lines.entries_by_place(sale.round.id, entries - 10, 1))[0]
    started_s = time.perf_counter()
    standing = await ledger.lines.standing(last.id)
    assert standing is not None
    say(f"looking at one's place, {standing.ahead:,} ahead: {1e3 * (time.perf_counter() - started_s):.1f} ms")
    started_s = time.perf_counter()
    await ledger.lines.served_up_to(standing.line)
    say(f"how far the line has come: {1e3 * (time.perf_counter() - started_s):.1f} ms")


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
