"""A process of its own that writes to a ledger: `python -m tests.backends.sql.writer_process URL SALE FIRST BATCHES`.

Prints the counter of the first order of each batch after it is committed. With 0 batches it begins a transaction,
changes something, says so and stays there until it is killed.
"""

import asyncio
import sys
from contextlib import suppress

from sqlalchemy import text

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.domain.admission import Admission
from seckill.errors import LedgerUnavailable
from tests.backends.sql.making import admission

BATCH = 20


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def record(ledger: SqlLedger, batch: list[Admission]) -> None:
    """Writes as a worker does: it waits for a database that others keep busy."""
    while True:
        with suppress(LedgerUnavailable):
            await ledger.record(batch)
            return


async def main(url: str, sale_id: int, first: int, batches: int) -> None:
    ledger = open_ledger(url)
    sale = await ledger.sale(sale_id)
    assert sale is not None
    if not batches:
        async with ledger.database.writers.begin() as connection:
            await connection.execute(text("UPDATE sales SET title = 'half-done'"))
            say("writing")
            await asyncio.Event().wait()
    for start in range(first, first + batches * BATCH, BATCH):
        await record(ledger, [admission(sale.round, start + more) for more in range(BATCH)])
        say(start)
    await ledger.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
