"""The one document of a run, from which the table, the JSON and the report are made."""

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from seckill import __version__
from seckill.lab.compare.release_schemes import FALLS_EVERY
from seckill.lab.compare.result import StrategyOutcome
from seckill.lab.compare.strategy import AT_ONCE
from seckill.lab.compare.workload import IMPATIENT_PRESSES, IMPATIENT_SHARE, Workload


def document(
    outcomes: Sequence[StrategyOutcome],
    workload: Workload,
    *,
    pause_ms: float,
    servers: Mapping[str, str],
    command: str,
) -> dict[str, Any]:
    return {
        "command": command,
        "version": __version__,
        "stock": workload.stock,
        "buyers": workload.buyers,
        "presses": len(workload.presses()),
        "limit_per_buyer": workload.limit_per_buyer,
        "seed": workload.seed,
        "pause_ms": pause_ms,
        "at_once": AT_ONCE,
        "servers": dict(servers),
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "strategies": [outcome.document() for outcome in outcomes],
    }


def verdict(run: Mapping[str, Any]) -> str:
    tried = [found for found in run["strategies"] if not found["not_run"]]
    sound = [found["strategy"] for found in tried if not found["flaws"]]
    named = ", ".join(sound) if sound else "none"
    return f"{len(sound)} of {len(tried)} designs sold exactly {run['stock']} units and lost nothing: {named}."


def method(run: Mapping[str, Any]) -> list[str]:
    return [
        f"{run['presses']} presses by {run['buyers']} people for {run['stock']} units, {run['limit_per_buyer']} each; "
        f"{IMPATIENT_SHARE:.0%} of the people press {IMPATIENT_PRESSES} times at once. Seed {run['seed']}: the same "
        "presses in the same order for every design.",
        f"Every design has two shop processes (and a consumer, where it has one) behind the same front door: a line "
        f"over a unix socket, {run['at_once']} presses in flight, no HTTP, no tokens. The engine is its own parts with "
        "default settings behind that same door.",
        f"Servers, the same for all: {'; '.join(run['servers'].values())}. Fresh, private, on this machine: "
        f"{run['machine']['cores']} cores, {run['machine']['system']}, Python {run['machine']['python']}. The crowd "
        "runs on the same cores, so the rates compare designs; they are no promise.",
        f"Between a look and a deed (only where a design has such a gap) stands a pause of {run['pause_ms']:g} ms, for "
        "the network and the work of a real shop.",
        "Killed: in a second run, a process is stopped between writing an order and its commit (async-rabbit: between "
        "script and publish; engine: after taking entries from the stream), killed with -9 and started again; then the "
        "rest of the people press. Lost: accepted, and not in the database when all had come to rest.",
        f"give-back-* and engine-release run three waves in which every {FALLS_EVERY}th order falls through; the "
        "consumer of the give-back schemes stands still during the first two, as a slow one would. They are not timed.",
        "accepted/s: until the last acceptance. persisted/s: until the last order was seen in the database (looked at "
        "every 20 ms). drain: from the last answer to that order.",
    ]
