"""Makes the one document of a run, from which the table, the JSON and the report are made."""

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from seckill import __version__
from seckill.lab.compare.bot_crowd import LATE_S, LATE_SHARE, REACTION_S, WAIT_S
from seckill.lab.compare.doors import BOT_CORE_S_PER_UNIT, WORK_SCALE, DoorOutcome
from seckill.lab.compare.release_schemes import FALLS_EVERY
from seckill.lab.compare.result import StrategyOutcome
from seckill.lab.compare.strategy import AT_ONCE
from seckill.lab.compare.workload import IMPATIENT_PRESSES, IMPATIENT_SHARE, Workload


def document(
    outcomes: Sequence[StrategyOutcome],
    doors: Sequence[DoorOutcome],
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
        "doors": [outcome.document() for outcome in doors],
    }


def crowd_of(run: Mapping[str, Any]) -> str:
    if run["strategies"]:
        return f"{run['presses']} presses by {run['buyers']} people"
    return f"{run['buyers']} people, and a bot with {run['doors'][0]['fairness']['bot_names']} names,"


def verdict(run: Mapping[str, Any]) -> str:
    tried = [found for found in run["strategies"] if not found["not_run"]]
    if not run["strategies"]:
        return f"Of {run['stock']} units, the bot got {_bot_units(run)}."
    sound = [found["strategy"] for found in tried if not found["flaws"]]
    named = ", ".join(sound) if sound else "none"
    return f"{len(sound)} of {len(tried)} designs sold exactly {run['stock']} units and lost nothing: {named}."


def _bot_units(run: Mapping[str, Any]) -> str:
    return ", ".join(f"{door['fairness']['bot_units']} ({door['door']})" for door in run["doors"])


def method(run: Mapping[str, Any]) -> list[str]:
    return [*(_ladder_method(run) if run["strategies"] else []), *(_door_method(run) if run["doors"] else [])]


def _door_method(run: Mapping[str, Any]) -> list[str]:
    fair = run["doors"][0]["fairness"]
    core_s = BOT_CORE_S_PER_UNIT * run["stock"]
    return [
        f"bots-*: {fair['people']} people and one bot with {fair['bot_names']} names want {run['stock']} units, 1 "
        f"each. {1 - LATE_SHARE:.0%} of the people come in the {WAIT_S / 60:g} minutes before the start, the others "
        f"within {LATE_S:g} s after it; they press {REACTION_S[0]:g} to {REACTION_S[1]:g} s later. All names of the "
        "bot press in the first instant, or join before the start. A draw is open for long before, so nobody comes "
        "late to it. Times are made up and decide the order; nobody sleeps until then. What each gets is decided by "
        "the engine, with a worker and a keeper, on the servers above; there is no HTTP, and so there are no limits "
        "per address.",
        f"bots-pass: everybody really solves their challenge, of one {WORK_SCALE}th of the work of a real sale. The "
        f"bot has {core_s:g} s of a core before the start (a minute for 2,000 units), of which it really works one "
        f"{WORK_SCALE}th; what it spent is shown for the whole work.",
        "Of two people of whom one got a unit, the one who came earlier, or who pressed faster, got it so often: "
        "100 % is always, 50 % is as often as not, so that it decided nothing.",
    ]


def _ladder_method(run: Mapping[str, Any]) -> list[str]:
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
        f"Between a check and a write (only where a design has such a gap) stands a pause of {run['pause_ms']:g} ms, "
        "for the network and the work of a real shop.",
        "Killed: in a second run, a process is stopped between writing an order and its commit (async-rabbit: between "
        "script and publish; engine: after taking entries from the stream), killed with -9 and started again; then the "
        "rest of the people press. Lost: accepted, and not in the database when all had come to rest.",
        f"give-back-* and engine-release run three waves in which every {FALLS_EVERY}th order falls through; the "
        "consumer of the give-back schemes stands still during the first two, as a slow one would. They are not timed.",
        "accepted/s: until the last acceptance. persisted/s: until the last order was seen in the database (looked at "
        "every 20 ms). drain: from the last answer to that order.",
    ]
