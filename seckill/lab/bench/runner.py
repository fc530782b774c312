"""Repeats all measurements in rounds, so that a noisy moment does not spoil a single figure, and takes the medians."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seckill.lab.bench import measures
from seckill.lab.bench.gateway import gateway
from seckill.lab.bench.load import Load
from seckill.lab.bench.measures import Accepted
from seckill.lab.bench.native_http import native_http
from seckill.lab.bench.startup import startup

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """How often and for how long to measure. Without the `million` buyers, who take half a minute to make, the figures
    that need them are None."""

    rounds: int
    seconds: float
    sustained_s: float
    overload_s: float
    million: bool


async def run(ledger_url: str, plan: BenchPlan, say: Say) -> dict[str, Any]:
    """Returns the document: medians and ratios, and under `run` how they were measured. Comparisons with something that
    is not installed are None."""
    rounds, seconds = plan.rounds, plan.seconds
    found = [await _round(ledger_url, seconds, _numbered(say, number)) for number in range(1, rounds + 1)]
    say("sustained load, and more than that")
    long, overload = await measures.sustained(plan.sustained_s, ledger_url, plan.overload_s)
    say("confirmed by the gate and by the ledger")
    confirmed = await measures.confirm(seconds, rounds, ledger_url)
    say("from the command to the first claim")
    started = await startup()
    in_turns: list[tuple[float, float]] = []
    memory_per_buyer: float | None = None
    if plan.million:
        say("a million buyers")
        in_turns, memory_per_buyer = await measures.accept_at_1m(seconds, rounds, ledger_url)
    figures: dict[str, float | None] = {
        **{key: _median(round_[key] for round_ in found) for key in found[0]},
        "persist": long.persist,
        "drain_s": long.drain_s,
        "accept_at_1m": _median(at_1m for _, at_1m in in_turns),
        "start_s": started.start_s,
        "memory_mb": started.memory_mb,
    }
    compared: dict[str, float | None] = {
        **ratios(found, long),
        "accept_at_1m_to_accept": _median(at_1m / accept for accept, at_1m in in_turns),
        "memory_per_buyer_bytes": memory_per_buyer,
        "backlog_s": max(each.backlog / max(each.persisted, 1.0) for each in overload),
    }
    return {
        **_rounded(figures),
        "cpu_us": {part: round(value, 1) for part, value in long.cpu_us.items()},
        "overload": [_rounded(asdict(each)) for each in overload],
        "confirm": {str(where): _medians(loads) for where, loads in confirmed.items()},
        "ratios": _rounded(compared),
        "run": {
            "sustained": {
                "seconds": plan.sustained_s,
                "accept": round(long.accept, 2),
                "api_memory_bytes": [long.api_bytes_before, long.api_bytes],
            },
            "overload_s": plan.overload_s,
            "accept_and_at_1m": [[round(figure, 2) for figure in pair] for pair in in_turns],
            "rounds": [_rounded(round_) for round_ in found],
        },
    }


def _median(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return statistics.median(known) if known else None


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


async def _round(ledger_url: str, seconds: float, say: Say) -> dict[str, float | None]:
    say("the HTTP server alone")
    http_ceiling = await measures.http_ceiling(seconds)
    say("a compiled HTTP server alone")
    native = await native_http(seconds)
    say("the admission script alone")
    gate_ceiling = await measures.gate_ceiling(seconds, ledger_url)
    say("the tutorials' last step")
    plain_port, plain_persist = await measures.plain(seconds, ledger_url)
    say("nginx with a script")
    scripted = await gateway(seconds)
    say("the engine")
    accepted, refused = await measures.accept_and_refuse(seconds, ledger_url)
    say("a draw that is joined")
    joined = await measures.joined(seconds, ledger_url)
    return {
        "http_ceiling": http_ceiling,
        "native_http": native,
        "gate_ceiling": gate_ceiling,
        "plain_port": plain_port,
        "plain_persist": plain_persist,
        "gateway": scripted,
        "accept": accepted.accept,
        "refuse": refused.refusals / refused.took_s,
        "p50_ms": accepted.p50_ms,
        "p99_ms": accepted.p99_ms,
        "refuse_p50_ms": refused.p50_ms,
        "refuse_p99_ms": refused.p99_ms,
        "mean_batch": accepted.mean_batch,
        "join": joined.join,
        "join_p50_ms": joined.p50_ms,
        "join_p99_ms": joined.p99_ms,
        "join_cpu_us": joined.cpu_us["all"],
    }


def ratios(rounds: Sequence[Mapping[str, float | None]], long: Accepted) -> dict[str, float | None]:
    """Returns the medians of the rounds' ratios: each ratio compares figures that were measured one right after the
    other."""

    def median(of: str, to: str) -> float | None:
        pairs = [(round_[of], round_[to]) for round_ in rounds]
        return _median(ours / theirs for ours, theirs in pairs if ours is not None and theirs)

    plain_persist = _median(round_["plain_persist"] for round_ in rounds)
    return {
        "accept_to_plain_port": median("accept", "plain_port"),
        "persist_to_plain_persist": long.persist / plain_persist if plain_persist else None,
        "accept_to_http_ceiling": median("accept", "http_ceiling"),
        "accept_to_native_http": median("accept", "native_http"),
        "accept_to_gate_ceiling": median("accept", "gate_ceiling"),
        "accept_to_gateway": median("accept", "gateway"),
        "refuse_to_http_ceiling": median("refuse", "http_ceiling"),
        "refuse_to_native_http": median("refuse", "native_http"),
        "join_to_accept": median("join", "accept"),
        "refuse_p99_to_p50": median("refuse_p99_ms", "refuse_p50_ms"),
        "persist_to_accept": long.persist / long.accept,
    }
