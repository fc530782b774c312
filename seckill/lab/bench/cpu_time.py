"""The CPU time of the engine's parts. It is steadier than rates, which depend on what else the machine does."""

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import make_url, text

from seckill.backends.sql.database_choice import open_database
from seckill.lab.bench.processes import children_of, cpu_s, parent_of

HERE = ("127.0.0.1", "localhost", "::1")
# Process names → the names in the document.
PARTS = {"api": "api", "worker": "worker", "keeper": "keeper", "valkey": "gate"}


def by_part_s(pids: Mapping[str, int], ledger_pid: int | None) -> dict[str, float]:
    """Returns the CPU time used so far. The cost of a ledger in a file is part of the worker's; that of a ledger on
    another machine cannot be seen."""
    found = {PARTS[name]: cpu_s([pid]) for name, pid in pids.items()}
    # PostgreSQL has a process for every connection.
    found["ledger"] = cpu_s([ledger_pid, *children_of(ledger_pid)]) if ledger_pid else 0.0
    return found


def per_claim_us(before: Mapping[str, float], after: Mapping[str, float], claims: int) -> dict[str, float]:
    """Returns the time that each part, and all together, took for one claim."""
    parts = {name: (after[name] - before[name]) / claims * 1e6 for name in after}
    return {**parts, "all": sum(parts.values())}


async def ledger_server_pid(url: str) -> int | None:
    """Returns None if the ledger is a file, is on another machine, or does not tell its pid."""
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
