"""Makes one document of what a rehearsal has found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from seckill.lab.rehearsal.capacity import PLANNED, needs
from seckill.lab.rehearsal.crowd import Habits
from seckill.lab.rehearsal.deployment import Deployment
from seckill.lab.rehearsal.judgement import (
    ADVICE,
    COULD_NOT_TELL,
    LAG_MS_MAX,
    REACHED,
    WITHIN_MS,
    WORDS,
    Bottleneck,
    Judged,
    RehearsalVerdict,
    conclude,
)
from seckill.lab.rehearsal.marked_sale import MarkedSale
from seckill.lab.rehearsal.part_costs import Idle, Measured, PartFigures, costs
from seckill.lab.rehearsal.sender_messages import percentile_ms
from seckill.lab.rehearsal.watch import WatchReading

TIMES = (1, 10, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    wanted_buyers: int
    seconds: float
    need: float | None
    senders: int
    lanes: int
    habits: Habits
    deployment: Deployment
    idle: Idle
    phases: Sequence[Judged]
    spans: Sequence[tuple[float, float, str]]
    readings: Sequence[WatchReading]
    drain_s: float | None
    audit: str
    custody: dict[str, int]


def document(found: Findings, marked: MarkedSale) -> dict[str, Any]:
    verdict = conclude(found.phases, found.need, audit=found.audit)
    cost = costs([_measured(each) for each in found.phases if each.good], found.idle)
    base = verdict.safe or verdict.steady
    shared = any(each.parts.shared for each in found.phases)
    return {
        "verdict": {
            "says": says(verdict, found.audit),
            "safe_per_s": verdict.safe,
            "steady_per_s": verdict.steady,
            "alone_per_s": verdict.alone,
            "at_least": verdict.is_lower_bound,
            "full": verdict.full,
            "full_at_per_s": verdict.full_at,
            "need_per_s": verdict.need,
            "exit_code": verdict.exit_code,
        },
        "advice": advice(verdict, found, shared=shared),
        "phases": [_phase(each) for each in found.phases],
        "costs": asdict(cost),
        "idle_cores": {**found.idle.roles, "gate": found.idle.gate},
        "needs": [asdict(needs(base * times, cost)) for times in TIMES] if base and cost.known else [],
        "deployment": asdict(found.deployment) | {"shares_the_machine": shared, "processes": _processes(found)},
        "crowd": {
            "buyers": found.wanted_buyers,
            "senders": found.senders,
            "seconds": found.seconds,
            "lanes": found.lanes,
            "habits": asdict(found.habits),
        },
        "promises": {"p99_ms": WITHIN_MS, "lag_ms": LAG_MS_MAX, "planned_share_of_a_core": PLANNED},
        "after": {
            "sale_id": marked.sale.id,
            "closed": marked.closed,
            "hidden": marked.hidden,
            "complaints": marked.complaints,
            "drain_s": None if found.drain_s is None else round(found.drain_s, 1),
            "audit": found.audit,
            "custody": found.custody,
        },
        "series": _series(found),
    }


def says(verdict: RehearsalVerdict, audit: str) -> str:
    if audit == "broken":
        return "The audit found something broken after the rehearsal: see `seckill audit`, before anything else."
    first = _rate_words(verdict)
    if verdict.full is not None and verdict.full_at is not None:
        first += f"; first full, at {verdict.full_at:,.0f} a second: {WORDS[verdict.full]}"
    if verdict.need is None:
        return f"{first}."
    words = {REACHED: "reached", COULD_NOT_TELL: "could not tell"}
    return f"{first}. Asked for: {verdict.need:,.0f} a second, {words.get(verdict.exit_code, 'not reached')}."


def _rate_words(verdict: RehearsalVerdict) -> str:
    if verdict.safe is None:
        if verdict.steady is None:
            return "No rate was found that is safe here"
        return f"{verdict.steady:,.0f} presses a second went well, but no opening confirmed it"
    more = ", and more could not be tried" if verdict.is_lower_bound else ""
    return f"{verdict.safe:,.0f} presses a second are safe here{more}"


def advice(verdict: RehearsalVerdict, found: Findings, *, shared: bool) -> list[str]:
    said = [] if verdict.full is None else [ADVICE[verdict.full]]
    if verdict.full is None:
        said.append("Nothing was full: rehearse with more --buyers, or for longer (--for).")
    if shared and verdict.full not in (Bottleneck.MACHINE, Bottleneck.SENDER):
        said.append(
            "The crowd was sent from a machine that also serves: both compete for its cores, and the deployment alone "
            "can do more. Send from another machine."
        )
    if shared and verdict.alone is not None and verdict.steady is not None:
        said.append(
            f"{verdict.steady:,.0f} presses a second went well evenly. By what the parts used then, the same machine "
            f"without the sender and all else could take about {verdict.alone:,.0f} of this crowd."
        )
    if any(each.parts.gate_busiest is None for each in found.phases):
        said.append("The gate's own figures could not be read: set SECKILL_REDIS_URL to see them.")
    if found.drain_s is None:
        said.append("Not every order was written within a minute after the load: look at the workers and the database.")
    return said


def _measured(each: Judged) -> Measured:
    return Measured(
        rate=each.phase.presses / each.phase.seconds,
        answered=each.seen.answered,
        connections=each.seen.connections,
        bytes_in=each.seen.bytes_out,
        bytes_out=each.seen.bytes_in,
        parts=each.parts,
    )


def _phase(each: Judged) -> dict[str, Any]:
    seen = each.seen
    return {
        "shape": each.phase.shape,
        "rate_per_s": each.phase.rate,
        "seconds": round(each.phase.seconds, 1),
        "good": each.good,
        "full": each.full,
        "why": each.why,
        "visits": seen.visits,
        "pressed": seen.pressed,
        "answered": seen.answered,
        "answered_per_s": round(each.reached, 1),
        "outcomes": dict(sorted(seen.outcomes.items(), key=lambda pair: -pair[1])),
        "p50_ms": percentile_ms(seen.waits, 0.5),
        "p99_ms": each.p99_ms,
        "late_p99_ms": percentile_ms(seen.late, 0.99),
        "looked": seen.looked,
        "watched": seen.watched,
        "paid": seen.paid,
        "failed_beside": seen.failed_beside,
        "connections": seen.connections,
        "busy": busy(each),
        "lag_ms": each.parts.lag_ms,
        "backlog": each.parts.backlog,
        "admit_ms": each.parts.admit_ms,
        "admit_batch": each.parts.admit_batch,
        "record_ms": each.parts.record_ms,
        "record_batch": each.parts.record_batch,
    }


def busy(each: Judged) -> dict[str, float | None]:
    """Returns how busy each part was, as a share of a core, or None for a part that cannot be seen from here."""
    parts: PartFigures = each.parts
    seen_roles = {name: figures.busiest for name, figures in parts.roles.items()}
    return {
        "sender": round(max(each.seen.cpu, default=0.0), 3),
        "api": seen_roles.get("api"),
        "gate": parts.gate_busiest,
        "worker": seen_roles.get("worker"),
        "keeper": seen_roles.get("keeper"),
        "machine": parts.machine,
    }


def _processes(found: Findings) -> dict[str, dict[str, int]]:
    """Counts the processes by role, with their memory at the end."""
    if not found.phases:
        return {}
    return {
        role: {"processes": figures.processes, "memory_bytes": figures.memory_bytes}
        for role, figures in found.phases[-1].parts.roles.items()
    }


def _series(found: Findings) -> dict[str, Any]:
    """Returns the accepted orders of each second, and how many waited to be written."""
    accepted = []
    known = [reading for reading in found.readings if reading.accepted is not None]
    for before, after in pairwise(known):
        if after.at_s - before.at_s > 0.3 and before.accepted is not None and after.accepted is not None:
            rate = (after.accepted - before.accepted) / (after.at_s - before.at_s)
            accepted.append([round(after.at_s, 1), round(rate, 1)])
    backlog = [[round(reading.at_s, 1), reading.backlog] for reading in known]
    return {
        "accepted_per_s": accepted,
        "backlog": backlog,
        "phases": [[round(begins_s, 1), round(ends_s, 1), name] for begins_s, ends_s, name in found.spans],
    }
