"""What an audit every second costs: claims a second with it against claims a second without it.

    make check && .venv/bin/python benchmarks/audit_cost.py [--pairs 4] [--seconds 15]

Runs `benchmarks/accept.py` in turns, without the keeper's audit and with it, each on a fresh folder, so that what else
the machine does falls on both. Says the ratio of the medians, and by how much the runs without it differ among
themselves: a ratio that is closer to 1 than that says "not to be seen". The keeper's CPU for each claim says the same
from another side.
"""

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

ACCEPT = Path(__file__).parent / "accept.py"


def accepted(audit_every_s: float, seconds: int) -> tuple[float, float]:
    """Claims a second, and the keeper's CPU in µs for each."""
    command = [sys.executable, str(ACCEPT), "--audit-every", f"{audit_every_s:g}", "--seconds", str(seconds)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate, cpu_us = (re.search(pattern, output) for pattern in (r"accepted/s +(\d+)", r"keeper (\d+) µs"))
    assert rate
    assert cpu_us
    return float(rate[1]), float(cpu_us[1])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--pairs", type=int, default=4)
    arguments.add_argument("--seconds", type=int, default=15)
    chosen = arguments.parse_args()
    rates: dict[float, list[float]] = {0.0: [], 1.0: []}
    cpu_us: dict[float, list[float]] = {0.0: [], 1.0: []}
    for pair in range(chosen.pairs):
        for every_s in (0.0, 1.0) if pair % 2 == 0 else (1.0, 0.0):
            rate, us = accepted(every_s, chosen.seconds)
            rates[every_s].append(rate)
            cpu_us[every_s].append(us)
            print(
                f"audit {'every second' if every_s else 'off         '}  {rate:8.0f}/s   keeper {us:.0f} µs", flush=True
            )
    without, with_ = (statistics.median(rates[every_s]) for every_s in (0.0, 1.0))
    spread = (max(rates[0.0]) - min(rates[0.0])) / without
    print(
        f"ratio {with_ / without:.3f} of the medians; the runs without an audit differ by {spread:.0%} among themselves"
    )


main()
