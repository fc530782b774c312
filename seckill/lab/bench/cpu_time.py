"""CPU time of the engine's parts: steadier than rates, which depend on what else the machine does."""

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import make_url, text

from seckill.backends.sql.database_choice import open_database
from seckill.lab.bench.processes import children_of, cpu_s, parent_of

HERE = ("127.0.0.1", "localhost", "::1")
# What the processes are called, and what the document calls them.
PARTS = {"api": "api", "worker": "worker", "keeper": "keeper", "valkey": "gate"}


def by_part_s(pids: Mapping[str, int], ledger_pid: int | None) -> dict[str, float]:
    """So far. A ledger that is a file costs the worker what it costs; one that is elsewhere cannot be seen."""
    found = {PARTS[name]: cpu_s([pid]) for name, pid in pids.items()}
    # PostgreSQL has a process for every connection.
    found["ledger"] = cpu_s([ledger_pid, *children_of(ledger_pid)]) if ledger_pid else 0.0
    return found


def per_claim_us(before: Mapping[str, float], after: Mapping[str, float], claims: int) -> dict[str, float]:
    """What each part took for one claim, and all of them together."""
    parts = {name: (after[name] - before[name]) / claims * 1e6 for name in after}
    return {**parts, "all": sum(parts.values())}


async def ledger_server_pid(url: str) -> int | None:
    """None when it is a file, on another machine, or not to be seen."""
    address = make_url(url)
    if address.host not in HERE:
        return None
    database = open_database(url)
    try:
        async with database.readers.connect() as connection:
            if address.drivername.startswith("postgres"):
                backend = int((await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one())
                return parent_of(backend)
            folder, file = (await connection.execute(text("SELECT @@datadir, @@pid_file"))).one()
            return int((Path(folder) / file).read_text())
    except (OSError, ValueError):
        return None
    finally:
        await database.close()
