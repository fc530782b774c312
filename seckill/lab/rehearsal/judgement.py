"""Judges whether a phase was good and, if not, which part was full, and draws the conclusion from all phases. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from seckill.lab.rehearsal.crowd import Phase, Shape
from seckill.lab.rehearsal.part_costs import PartFigures
from seckill.lab.rehearsal.plan import Tried, highest_good
from seckill.lab.rehearsal.sender_messages import PhaseSeen, percentile_ms

# The promises to buyers that a safe phase keeps.
WITHIN_MS = 1_000.0  # 99 of 100 presses are answered within this
UNANSWERED_MAX = 0.005
LAG_MS_MAX = 2_000  # and orders are written within this
# A sender that is later than this does not reach the rate that it reports.
LATE_MS_MAX = 250.0
BUSY = 0.85  # the share of a core at which a process counts as full
SENDER_BUSY = 0.9
MACHINE_BUSY = 0.93
SLOW_CALL_MS = 50.0  # to the gate
FEW = 20  # with fewer presses, a single one would weigh too much


class Bottleneck(StrEnum):
    SENDER = "sender"
    LIMITS = "limits"
    SOCKETS = "sockets"
    API = "api"
    GATE = "gate"
    DISK = "disk"
    WORKER = "worker"
    DATABASE = "database"
    MACHINE = "machine"
    BETWEEN = "between"


WORDS = {
    Bottleneck.SENDER: "the machine that sends",
    Bottleneck.LIMITS: "the limits of one address",
    Bottleneck.SOCKETS: "connections",
    Bottleneck.API: "the API processes",
    Bottleneck.GATE: "the gate (Valkey or Redis)",
    Bottleneck.DISK: "the gate's disk or the way to the gate",
    Bottleneck.WORKER: "the workers",
    Bottleneck.DATABASE: "the database",
    Bottleneck.MACHINE: "the machine, which sends and serves at once",
    Bottleneck.BETWEEN: "something that cannot be seen from here, such as a proxy or the network",
}
ADVICE = {
    Bottleneck.SENDER: "Send from a machine with more cores, from several at once, or with more --senders.",
    Bottleneck.LIMITS: "Name this machine in SECKILL_TRUSTED_PROXIES for the time of the rehearsal, so that each buyer "
    "counts as an address of its own.",
    Bottleneck.SOCKETS: "Raise the limit on open files and SECKILL_CONNECTIONS_MAX, and the proxy's own limits, or add "
    "API processes.",
    Bottleneck.API: "Add API processes (`--api N`, or more `seckill api`), one for each core at most.",
    Bottleneck.GATE: "Give the sale more lanes and the gate more primaries (a cluster), each with a core of its own.",
    Bottleneck.DISK: "Give the gate a disk that syncs faster, or bring it nearer; SECKILL_DURABILITY=fast answers "
    "without waiting for it, at the price that docs/guarantees.md names.",
    Bottleneck.WORKER: "Add workers, and give the sale more lanes for them to share.",
    Bottleneck.DATABASE: "Give the database a faster disk or more cores; the queue before it lets buyers in meanwhile, "
    "up to SECKILL_BACKLOG_MAX.",
    Bottleneck.MACHINE: "Send from another machine: this one takes from the deployment what it measures.",
    Bottleneck.BETWEEN: "Look at the proxy's connections, workers and logs, and at the network's bandwidth; the API "
    "itself was not full.",
}
# When one of these is full, it is unknown what the deployment could have done.
NOT_THE_DEPLOYMENT = (Bottleneck.SENDER, Bottleneck.LIMITS, Bottleneck.MACHINE)
# Answers that say "not now".
_NOT_NOW = ("unknown", "not_ready", "overloaded", "unavailable")
_OURS = ("no file or port left here", "no connection left here")
_NO_SOCKET = ("connection refused", "no connection in time", "too_many_connections")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    phase: Phase
    seen: PhaseSeen
    parts: PartFigures
    full: Bottleneck | None
    why: str

    @property
    def good(self) -> bool:
        return self.full is None

    @property
    def tried(self) -> Tried:
        return Tried(phase=self.phase, good=self.good)

    @property
    def p99_ms(self) -> float | None:
        return percentile_ms(self.seen.waits, 0.99)

    @property
    def reached(self) -> float:
        """Returns answers a second."""
        return self.seen.answered / self.seen.took_s if self.seen.took_s else 0.0


def judge(phase: Phase, seen: PhaseSeen, parts: PartFigures) -> Judged:
    full, why = _full(seen, parts)
    return Judged(phase=phase, seen=seen, parts=parts, full=full, why=why)


def _full(seen: PhaseSeen, parts: PartFigures) -> tuple[Bottleneck | None, str]:
    counts = seen.outcomes
    limited, ours, no_socket = counts.get("rate_limited", 0), _sum(counts, _OURS), _sum(counts, _NO_SOCKET)
    if _many(limited, seen):
        return Bottleneck.LIMITS, f"{limited:,} presses were refused because too many came from one address"
    late_ms = percentile_ms(seen.late, 0.99) or 0.0
    if late_ms > LATE_MS_MAX:
        if parts.shared and _is_full(parts.machine, MACHINE_BUSY) and max(seen.cpu, default=0) < SENDER_BUSY:
            return Bottleneck.MACHINE, f"visitors came up to {late_ms:,.0f} ms late, all cores being busy"
        return Bottleneck.SENDER, f"visitors were sent up to {late_ms:,.0f} ms late"
    if _many(ours, seen):
        return Bottleneck.SENDER, f"{ours:,} presses found no connection to be sent over"
    if _many(no_socket, seen):
        return Bottleneck.SOCKETS, f"{no_socket:,} presses got no connection"
    p99_ms = percentile_ms(seen.waits, 0.99) or 0.0
    unanswered = seen.pressed - seen.answered + _sum(counts, _NOT_NOW) + _proxys(counts)
    trouble = []
    if p99_ms > WITHIN_MS:
        trouble.append(f"99 of 100 answers took up to {p99_ms:,.0f} ms")
    if _many(unanswered, seen):
        trouble.append(f"{unanswered:,} of {seen.pressed:,} presses had no answer, or were put off")
    if parts.lag_ms > LAG_MS_MAX:
        trouble.append(f"orders waited {parts.lag_ms / 1000:.1f} s to be written, {parts.backlog:,} of them")
    if not trouble:
        return None, "every promise was kept"
    return _culprit(seen, parts, lags=parts.lag_ms > LAG_MS_MAX and len(trouble) == 1), "; ".join(trouble)


def _culprit(seen: PhaseSeen, parts: PartFigures, *, lags: bool) -> Bottleneck:
    if max(seen.cpu, default=0.0) >= SENDER_BUSY and not lags:
        return Bottleneck.SENDER  # answers may have waited to be read
    if lags or seen.outcomes.get("overloaded"):
        if parts.role("worker").busiest >= BUSY:
            return Bottleneck.WORKER
        return Bottleneck.MACHINE if parts.shared and _is_full(parts.machine, MACHINE_BUSY) else Bottleneck.DATABASE
    if _is_full(parts.gate_busiest, BUSY):
        return Bottleneck.GATE
    if parts.role("api").busiest >= BUSY:
        return Bottleneck.API
    if parts.shared and _is_full(parts.machine, MACHINE_BUSY):
        return Bottleneck.MACHINE
    if parts.admit_ms is not None and parts.admit_ms > SLOW_CALL_MS:
        return Bottleneck.DISK if parts.gate_busiest is not None else Bottleneck.GATE
    return Bottleneck.BETWEEN


def _is_full(share: float | None, limit: float) -> bool:
    return share is not None and share >= limit


def _sum(counts: dict[str, int], names: Sequence[str]) -> int:
    return sum(counts.get(name, 0) for name in names)


def _proxys(counts: dict[str, int]) -> int:
    """Counts answers of a proxy, which does not use our codes."""
    return sum(count for name, count in counts.items() if name.startswith("http 5"))


def _many(count: int, seen: PhaseSeen) -> bool:
    return count > UNANSWERED_MAX * seen.pressed and (count > 1 or seen.pressed < FEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalVerdict:
    safe: float | None  # the peak of an opening that kept every promise
    steady: float | None  # the highest even rate that kept every promise
    # if sender and deployment share a machine: the rate that its cores could reach without other work
    alone: float | None
    full: Bottleneck | None  # the part that was full first; None: no part was full
    full_at: float | None
    need: float | None
    exit_code: int  # 0: the need was met, or none was given; 1: it was not met; 2: unclear

    @property
    def is_lower_bound(self) -> bool:
        """Whether the deployment may be able to do more."""
        return self.full is None or self.full in NOT_THE_DEPLOYMENT


REACHED, NOT_REACHED, COULD_NOT_TELL = 0, 1, 2


def conclude(phases: Sequence[Judged], need: float | None, *, audit: str) -> RehearsalVerdict:
    """`audit`: the verdict of the audit after the load."""
    tried = [each.tried for each in phases]
    safe, steady = highest_good(tried, Shape.WAVE), highest_good(tried, Shape.STEADY)
    bad = sorted((each for each in phases if not each.good), key=lambda each: each.phase.rate)
    full = bad[0].full if bad else None
    unsure = RehearsalVerdict(
        safe=safe,
        steady=steady,
        alone=_alone(phases),
        full=full,
        full_at=bad[0].phase.rate if bad else None,
        need=need,
        exit_code=COULD_NOT_TELL,
    )
    return replace(unsure, exit_code=_exit_code(unsure, audit))


def _alone(phases: Sequence[Judged]) -> float | None:
    """Extrapolates from what the parts used at the highest good even rate to the rate at which all cores are busy or a
    process is full. Also returns None where the CPU time of the gate cannot be seen."""
    good = [each for each in phases if each.good and each.phase.shape is Shape.STEADY and each.parts.shared]
    if not good:
        return None
    highest = max(good, key=lambda each: each.phase.rate)
    parts = highest.parts
    if parts.gate_cpu_s is None or parts.gate_busiest is None or parts.machine_cores is None:
        return None
    serving = (parts.gate_cpu_s + sum(role.cpu_s for role in parts.roles.values())) / parts.lasted_s
    fullest = max(serving / parts.machine_cores, parts.gate_busiest, *(role.busiest for role in parts.roles.values()))
    return round(highest.phase.rate / fullest, 1) if fullest > 0 else None


def _exit_code(verdict: RehearsalVerdict, audit: str) -> int:
    if audit == "broken":
        return NOT_REACHED
    if verdict.safe is not None and verdict.safe >= (verdict.need or 0):
        return REACHED
    if verdict.need is None or verdict.is_lower_bound:
        return COULD_NOT_TELL
    return NOT_REACHED
