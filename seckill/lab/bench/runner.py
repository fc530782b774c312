"""Rounds of all measurements, one after the other, so that a noisy moment hits no figure alone; then medians."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seckill.lab.bench import measures
from seckill.lab.bench.load import Load
from seckill.lab.bench.measures import Accepted

Say = Callable[[str], None]

# What the engine is to reach: ratio → the least that is good enough.
GOALS: Mapping[str, float] = {
    "accept_to_plain_port": 8,
    "persist_to_plain_persist": 15,
    "accept_to_http_ceiling": 0.4,
    "accept_to_gate_ceiling": 0.35,
    "refuse_to_http_ceiling": 0.8,
    "persist_to_accept": 1.0,
    "accept_at_1m_to_accept": 0.9,
}
# And the most.
LIMITS: Mapping[str, float] = {"drain_s": 2, "memory_per_buyer_bytes": 150}


async def run(
    ledger_url: str, *, rounds: int, seconds: float, sustained_s: float, say: Say, million: bool = True
) -> dict[str, Any]:
    """The document: the medians and the ratios, and under `run` how they came about. Without the `million` buyers,
    which take half a minute to make, what is measured with them is None."""
    found = [await _round(ledger_url, seconds, _numbered(say, number)) for number in range(1, rounds + 1)]
    say("sustained load")
    long = await measures.sustained(sustained_s, ledger_url)
    say("confirmed by the gate and by the ledger")
    confirmed = await measures.confirm(seconds, rounds, ledger_url)
    in_turns: list[tuple[float, float]] = []
    memory_per_buyer: float | None = None
    if million:
        say("a million buyers")
        in_turns, memory_per_buyer = await measures.accept_at_1m(seconds, rounds, ledger_url)
    medians = {key: statistics.median(round_[key] for round_ in found) for key in found[0]}
    figures: dict[str, float | None] = {
        **medians,
        "persist": long.persist,
        "drain_s": long.drain_s,
        "accept_at_1m": statistics.median(at_1m for _, at_1m in in_turns) if in_turns else None,
    }
    compared: dict[str, float | None] = {
        **ratios(found, long),
        "accept_at_1m_to_accept": statistics.median(at_1m / accept for accept, at_1m in in_turns) if in_turns else None,
        "memory_per_buyer_bytes": memory_per_buyer,
    }
    return {
        **_rounded(figures),
        "confirm": {str(where): _medians(loads) for where, loads in confirmed.items()},
        "ratios": _rounded(compared),
        "run": {
            "sustained": {
                "seconds": sustained_s,
                "accept": round(long.accept, 2),
                "api_memory_bytes": [long.api_bytes_before, long.api_bytes],
            },
            "accept_and_at_1m": [[round(figure, 2) for figure in pair] for pair in in_turns],
            "rounds": [{key: round(value, 2) for key, value in round_.items()} for round_ in found],
        },
    }


def _rounded(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 2) for name, value in figures.items()}


def _medians(loads: Sequence[Load]) -> dict[str, float]:
    return {
        "accept": round(statistics.median(load.accepted_per_s for load in loads), 2),
        "p50_ms": round(statistics.median(load.p50_ms for load in loads), 2),
        "p99_ms": round(statistics.median(load.p99_ms for load in loads), 2),
    }


def _numbered(say: Say, number: int) -> Say:
    return lambda what: say(f"round {number}: {what}")


async def _round(ledger_url: str, seconds: float, say: Say) -> dict[str, float]:
    say("the HTTP server alone")
    http_ceiling = await measures.http_ceiling(seconds)
    say("the admission script alone")
    gate_ceiling = await measures.gate_ceiling(seconds, ledger_url)
    say("the tutorials' last step")
    plain_port, plain_persist = await measures.plain(seconds, ledger_url)
    say("the engine")
    accepted, refuse = await measures.accept_and_refuse(seconds, ledger_url)
    return {
        "http_ceiling": http_ceiling,
        "gate_ceiling": gate_ceiling,
        "plain_port": plain_port,
        "plain_persist": plain_persist,
        "accept": accepted.accept,
        "refuse": refuse,
        "p50_ms": accepted.p50_ms,
        "p99_ms": accepted.p99_ms,
        "mean_batch": accepted.mean_batch,
    }


def ratios(rounds: Sequence[Mapping[str, float]], long: Accepted) -> dict[str, float]:
    """Of figures that were measured one after the other: first each round's own, then the medians of these."""

    def median(of: str, to: str) -> float:
        return statistics.median(round_[of] / round_[to] for round_ in rounds)

    return {
        "accept_to_plain_port": median("accept", "plain_port"),
        "persist_to_plain_persist": long.persist / statistics.median(round_["plain_persist"] for round_ in rounds),
        "accept_to_http_ceiling": median("accept", "http_ceiling"),
        "accept_to_gate_ceiling": median("accept", "gate_ceiling"),
        "refuse_to_http_ceiling": median("refuse", "http_ceiling"),
        "persist_to_accept": long.persist / long.accept,
    }


def judged(found: Mapping[str, Any]) -> list[tuple[str, float, str, bool]]:
    """Each goal that was measured by name, with the figure, what was asked for, and whether that was reached."""
    every = {**found["ratios"], "drain_s": found["drain_s"]}
    values = {name: value for name, value in every.items() if value is not None}
    least = [(name, values[name], f"{goal:g}", values[name] >= goal) for name, goal in GOALS.items() if name in values]
    most = [
        (name, values[name], f"at most {goal:g}", values[name] <= goal)
        for name, goal in LIMITS.items()
        if name in values
    ]
    return least + most
