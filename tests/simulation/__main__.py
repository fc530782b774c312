"""`make simulate`: many seeds, or one with everything that happened in it."""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from tests.simulation.run import Verdict, simulate

SHOWN = (
    "joined",
    "entry served",
    "entry passed_over",
    "left the line",
    "join_the_line",
    "a shared limit is reached",
    "kills",
    "stops",
    "cuts",
    "losses",
    "failovers",
    "doubles",
    "poison",
    "admitted",
    "repeated",
    "sold_out",
    "not_ready",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("--seeds", type=int, default=5000, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, with all that happens")
    parser.add_argument("--processes", type=int, default=1)
    wanted = parser.parse_args()
    if wanted.seed is not None:
        return _one(simulate(wanted.seed, chatty=True))
    return _many(range(wanted.first, wanted.first + wanted.seeds), wanted.processes)


def _one(verdict: Verdict) -> int:
    for line in verdict.trace:
        _say(line)
    _say(f"{verdict.weather}")
    _say(f"seed {verdict.seed}: {verdict.broken or 'everything held'}; digest {verdict.digest}")
    return 0 if verdict.held else 1


def _many(seeds: range, processes: int) -> int:
    began_s = time.monotonic()
    counts: Counter[str] = Counter()
    broken: list[int] = []
    with ProcessPoolExecutor(processes) as pool:
        for done, verdict in enumerate(pool.map(_briefly, seeds, chunksize=10), 1):
            counts.update(verdict.counts)
            if not verdict.held:
                broken.append(verdict.seed)
                _say(f"seed {verdict.seed}: {verdict.broken}")
            if done % 200 == 0 or done == len(seeds):
                _say(f"{done} seeds, {done / (time.monotonic() - began_s):.1f}/s, {len(broken)} broken")
    _say(", ".join(f"{name} {counts[name]}" for name in SHOWN))
    if broken:
        _say(f"Play one again, with everything that happened: make simulate SEED={broken[0]}")
    return 1 if broken else 0


def _briefly(seed: int) -> Verdict:
    """Returns the verdict without the trace: the seed can be played again."""
    return replace(simulate(seed), trace=[])


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
