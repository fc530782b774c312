"""What becomes of a load that does not end, with the pace that the ledger sets and without.

    make check && .venv/bin/python benchmarks/pace.py [--ledger mariadb] [--seconds 20] [--turns 2]

Two API processes, a worker and a keeper, as `seckill up` starts them, a sale that never sells out, and 500 clients that
press again as soon as they are answered. Accepted, written and waiting are said for each turn: a load that is accepted
faster than it is written fills the queue sooner or later, and then people are refused.
"""

import argparse
import asyncio
import time
from pathlib import Path

from order_cost import server

from seckill.lab.bench.claim_lines import make_tokens, write_lines
from seckill.lab.bench.load import load
from seckill.lab.bench.place import Running, engine_on, place

UNITS = 100_000_000
PACES = {"without": "0", "with": "1"}
WARM_UP_S = 2


async def turn(ledger_url: str, name: str, seconds: float) -> None:
    async with place(ledger_url) as here:
        pace = {"SECKILL_PACE_AFTER_S": PACES[name]}
        async with engine_on(here, ["worker", "keeper", "api", "api"], **pace) as running:
            tokens = make_tokens(here.settings, seconds + WARM_UP_S)
            few = len(tokens) // 10
            await press(running, here.folder / "early", tokens[:few], WARM_UP_S)
            print(name, await press(running, here.folder / "lines", tokens[few:], seconds), flush=True)


async def press(running: Running, file: Path, tokens: list[str], seconds: float) -> str:
    sale = await running.new_sale(UNITS)
    lines = write_lines(file, running.path(sale), tokens)
    waiting: list[int] = []

    async def watch() -> None:
        while True:
            waiting.append(await running.engine.transport.backlog([sale.round.lane]))
            await asyncio.sleep(0.5)

    watching = asyncio.create_task(watch())
    seen = await load(running.address, lines, seconds=seconds)
    watching.cancel()
    written = await running.engine.ledger.tally(sale.round.id)
    ended_s = time.monotonic()
    while await running.engine.transport.backlog([sale.round.lane]):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return (
        f"accepted {seen.accepted_per_s:,.0f}/s, written {written.unpaid / seen.took_s:,.0f}/s, "
        f"p50 {seen.p50_ms:.0f} p99 {seen.p99_ms:.0f} ms, refused {seen.refusals}, waiting {waiting[::4]}, "
        f"the rest took {time.monotonic() - ended_s:.1f} s"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", choices=["sqlite", "postgres", "mariadb"], default="mariadb")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=2)
    args = parser.parse_args()
    async with server(args.ledger) as (url, _):
        for number in range(args.turns):
            for name in list(PACES)[:: 1 if number % 2 == 0 else -1]:
                await turn(url, name, args.seconds)


if __name__ == "__main__":
    asyncio.run(main())
