"""Whether any role's memory grows with the claims that it has dealt with.

    make check && nice .venv/bin/python benchmarks/memory.py [--rounds 50] [--claims 50000] [--pay-within-s 60]

Runs API, worker, keeper (which audits every second) and `seckill audit --watch` on fresh servers. One round after the
other is sold out to new buyers, of whom one in five comes too late. Every other round is free, so that all its orders
are paid; of the rest none is paid in time, so that all come back. After each round, when nothing is queued any more,
it prints the resident memory of each process in MB, with the claims answered until then.
"""

import argparse
import asyncio
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from seckill.bootstrap.use_cases import UseCases
from seckill.domain.sale import RoundStatus, Sale, SaleChange, SaleDraft
from seckill.lab.bench.claim_lines import write_lines
from seckill.lab.bench.load import load
from seckill.lab.bench.place import HOUR_MS, BenchPlace, Running, engine_on, place
from seckill.lab.bench.tokens import Tokens
from seckill.local.tether import tethered

POLL_S = 0.2
ROUND_WITHIN_S = 3600


async def announce(running: Running, units: int, pay_within_s: int, *, free: bool) -> Sale:
    now_ms = int(time.time() * 1000)
    draft = SaleDraft(
        title="Memory",
        units=units,
        limit_per_buyer=1,
        price_cents=0 if free else 100,
        currency="CNY",
        begins_ms=now_ms - 1000,
        ends_ms=now_ms + HOUR_MS,
        pay_within_s=pay_within_s,
    )
    return await UseCases(running.engine, running.place.settings).operator_desk.announce(draft, 0)


async def sell_out(running: Running, sale: Sale, tokens: list[str]) -> int:
    """Returns how many claims were answered. All orders are written when it returns, and the round is closed."""
    lines = write_lines(running.place.folder / "lines", running.path(sale), tokens)
    seen = await load(running.address, lines, seconds=ROUND_WITHIN_S)
    while await running.engine.transport.backlog([sale.round.lane]):  # noqa: ASYNC110 (no event tells of it)
        await asyncio.sleep(POLL_S)
    desk = UseCases(running.engine, running.place.settings).operator_desk
    await desk.change(sale, SaleChange(status=RoundStatus.CLOSED))
    return seen.answers


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def watching(stack: AsyncExitStack, here: BenchPlace) -> int:
    """`seckill audit --watch` beside it; its process number."""
    environ = dict(os.environ) | {
        "SECKILL_REDIS_URL": here.settings.redis_url,
        "SECKILL_DATABASE_URL": here.settings.database_url,
    }
    process = await asyncio.create_subprocess_exec(
        *tethered([sys.executable, "-m", "seckill", "audit", "--watch"]),
        env=environ,
        stdout=asyncio.subprocess.DEVNULL,
    )

    async def stop() -> None:
        process.terminate()
        await process.wait()

    stack.push_async_callback(stop)
    return process.pid


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=50)
    arguments.add_argument("--claims", type=int, default=50_000, help="in each round")
    arguments.add_argument("--pay-within-s", type=int, default=60)
    arguments.add_argument("--ledger-url", default="", help="a PostgreSQL server; otherwise a file")
    chosen = arguments.parse_args()
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(place(chosen.ledger_url))
        running = await stack.enter_async_context(engine_on(here, SECKILL_AUDIT_EVERY_S="1"))
        pids = dict(running.pids) | {"audit": await watching(stack, here)}
        assert here.settings.jwt_secret is not None
        tokens = Tokens(here.settings.jwt_secret)
        print("claims   " + "".join(f"{name:>9}" for name in pids), flush=True)
        answered = 0
        for number in range(chosen.rounds):
            sale = await announce(running, chosen.claims * 4 // 5, chosen.pay_within_s, free=number % 2 == 0)
            buyers = [tokens.of(f"buyer-{number}-{i}") for i in range(chosen.claims)]
            answered += await sell_out(running, sale, buyers)
            print(f"{answered:>9,}" + "".join(f"{resident_mb(pid):9.1f}" for pid in pids.values()), flush=True)


asyncio.run(main())
