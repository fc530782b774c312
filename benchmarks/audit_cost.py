"""What an audit every second costs, while claims are taken as fast as they come.

    make check && .venv/bin/python benchmarks/audit_cost.py [--pairs 3] [--seconds 15]

Runs the engine in turns without the keeper's audit and with it, on fresh servers, under the load of `seckill bench`.
What counts is the CPU time of the keeper and of Valkey in each second of it: what else the machine does changes the
rates, but hardly that. The keeper's other loops are in both. With a ledger in a file (SQLite), the database's work for
the audit is the keeper's as well, so nothing is left out.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from seckill.lab.bench import measures
from seckill.lab.bench.claim_lines import make_tokens, write_lines
from seckill.lab.bench.load import load
from seckill.lab.bench.place import engine_on, place


async def busy(every_s: float, seconds: float) -> tuple[float, float, float]:
    """CPU seconds of the keeper and of Valkey in a second of load, and claims a second."""
    async with place("") as here, engine_on(here, SECKILL_AUDIT_EVERY_S=f"{every_s:g}") as running:
        sale = await running.new_sale(measures.UNITS)
        lines = write_lines(here.folder / "lines", running.path(sale), make_tokens(here.settings, seconds))
        before, began_s = running.cpu_s(), time.monotonic()
        seen = await load(running.address, lines, seconds=seconds)
        took_s, after = time.monotonic() - began_s, running.cpu_s()
        keeper, valkey = ((after[name] - before[name]) / took_s for name in ("keeper", "valkey"))
        return keeper, valkey, seen.per_s


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--pairs", type=int, default=3)
    arguments.add_argument("--seconds", type=int, default=15)
    chosen = arguments.parse_args()
    keeper: dict[float, list[float]] = {0.0: [], 1.0: []}
    for pair in range(chosen.pairs):
        for every_s in (0.0, 1.0) if pair % 2 == 0 else (1.0, 0.0):
            keeper_s, valkey_s, rate = await busy(every_s, chosen.seconds)
            keeper[every_s].append(keeper_s)
            told = f"keeper {keeper_s * 1000:.0f} ms/s, Valkey {valkey_s * 1000:.0f} ms/s, {rate:.0f} claims/s"
            print(f"audit {'every second' if every_s else 'off         '}  {told}", flush=True)
    without, with_ = (statistics.median(keeper[every_s]) for every_s in (0.0, 1.0))
    takes_s = with_ - without
    print(
        f"the audit takes {takes_s * 1000:.0f} ms of each second: {takes_s / (os.cpu_count() or 1):.2%} of the machine"
    )


asyncio.run(main())
