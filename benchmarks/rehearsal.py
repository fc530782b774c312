"""Whether a rehearsal and the benchmark say the same of one machine.

    .venv/bin/python benchmarks/rehearsal.py [--times 3] [--for 60]

In turns: `seckill up --demo` in a fresh folder with `seckill rehearse --presses-only` against it, and `seckill bench
--quick`. Both send people who press once, to Valkey that syncs before it answers and SQLite. Compared are what the
rehearsal says that the machine could take without the sender (`alone_per_s`) with what the benchmark accepted a second,
and what a press cost each part: the figures of docs/rehearsal.md. Rates need a machine with nothing else to do.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from seckill.errors import StartError
from seckill.lab.bench.child import child
from seckill.lab.bench.place import until_answering
from seckill.lab.servers.ports import HOST, free_port

PARTS = ("api", "gate", "worker")
BUYERS = 1_000_000


def environ(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")} | more


async def told(arguments: list[str], **more: str) -> Any:
    """What a command prints as JSON."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "seckill", *arguments, "--json", env=environ(**more), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return json.loads(output)


async def rehearsed(seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as folder:
        data, port = Path(folder) / "data", free_port()
        url = f"http://{HOST}:{port}"
        up = [sys.executable, "-m", "seckill", "up", "--demo", "--data", str(data), "--port", str(port)]
        async with child(up, environ=environ(SECKILL_LOG_LEVEL="error"), quiet=True):
            await until_answering(url, "/readyz")
            asked = ["rehearse", "--url", url, "--presses-only", "--beside-sales", "--buyers", str(BUYERS)]
            found = await told([*asked, "--for", f"{seconds:g}s"], SECKILL_DATA_DIR=str(data))
    for phase in found["phases"]:
        print(
            f"    {phase['shape']:6} {phase['rate_per_s']:8,.0f} a second, 99 % in {phase['p99_ms'] or 0:7,.0f} ms, "
            f"{phase['admit_batch'] or 0:5.1f} in a call, {phase['why']} {phase['busy']}",
            file=sys.stderr,
        )
    verdict = found["verdict"]
    print(f"    {verdict['says']} steady {verdict['steady_per_s']}, alone {verdict['alone_per_s']}", file=sys.stderr)
    return {"per_s": verdict["alone_per_s"] or 0.0} | {part: found["costs"][f"{part}_us"] or 0.0 for part in PARTS}


async def benched() -> dict[str, float]:
    found = await told(["bench", "--quick"])
    print(f"    accepted {found['accept']}, in a call {found['mean_batch']}", file=sys.stderr)
    return {"per_s": found["accept"]} | {part: found["cpu_us"][part] for part in PARTS}


def compared(rehearsal: dict[str, float], bench: dict[str, float]) -> dict[str, float]:
    if not all((*rehearsal.values(), *bench.values())):
        raise StartError("One of them was accepted nothing, or no rate was good: this machine is too busy.")
    together = [sum(each[part] for part in PARTS) for each in (rehearsal, bench)]
    return {name: rehearsal[name] / bench[name] for name in rehearsal} | {"all": together[0] / together[1]}


def line(name: str, found: dict[str, float]) -> str:
    return f"{name:10} {found['per_s']:10,.0f}  " + "  ".join(f"{found[part]:6.0f}" for part in PARTS)


async def main(times: int, seconds: float) -> None:
    print(f"           {'a second':>10}  " + "  ".join(f"{part:>6}" for part in PARTS) + "  µs a press")
    ratios: list[dict[str, float]] = []
    for turn in range(times):
        found: dict[str, dict[str, float]] = {}
        for what in ("rehearsal", "bench")[:: 1 if turn % 2 == 0 else -1]:  # neither is always the first
            found[what] = await (rehearsed(seconds) if what == "rehearsal" else benched())
            print(line(what, found[what]), f" load {os.getloadavg()[0]:.1f}", flush=True)
        ratios.append(compared(found["rehearsal"], found["bench"]))
    for name in ratios[0]:
        each = [ratio[name] for ratio in ratios]
        print(f"rehearsal / bench, {name}: {statistics.median(each):.2f} ({', '.join(f'{one:.2f}' for one in each)})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--for", dest="seconds", type=float, default=60)
    options = parser.parse_args()
    asyncio.run(main(options.times, options.seconds))
