"""The auditor's report: a verdict for each invariant, and the ids of everything that breaks one."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from seckill.audit.invariants import SAFETY, Invariant

# A broken table must not produce a report that is unreadable or fills the memory.
FINDINGS_MAX = 10_000


class Verdict(StrEnum):
    HOLDS = "holds"
    BROKEN = "broken"
    UNKNOWN = "unknown"  # could not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: `kind` for programs, `says` for people."""

    invariant: str
    kind: str
    says: str
    round_id: int | None = None
    sale_id: int | None = None
    number: int | None = None  # the order's
    user: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Is the same for the same trouble at another time, when figures may differ."""
        return self.invariant, self.kind, self.round_id, self.number, self.user


class AuditedRound(Protocol):
    @property
    def id(self) -> int: ...

    @property
    def sale_id(self) -> int: ...


def finding_about(
    round_: AuditedRound, invariant: str, kind: str, says: str, *, number: int | None = None, user: str | None = None
) -> Finding:
    return Finding(
        invariant=invariant,
        kind=kind,
        says=says,
        round_id=round_.id,
        sale_id=round_.sale_id,
        number=number,
        user=user,
    )


@dataclass(frozen=True, slots=True)
class Unsure:
    """Why an invariant could not be judged for a round, or for all (None)."""

    invariants: tuple[str, ...]
    reason: str
    round_id: int | None = None
    passes: bool = False  # by itself, when the current comparison is complete


@dataclass(slots=True)
class Notes:
    """The results of one reading while it is being made."""

    findings: list[Finding] = field(default_factory=list)
    unsure: list[Unsure] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)  # how many things of each kind were checked

    def count(self, what: str, many: int = 1) -> None:
        self.checked[what] = self.checked.get(what, 0) + many

    def add(self, finding: Finding) -> None:
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(finding)

    def take(self, other: "Notes") -> None:
        for finding in other.findings:
            self.add(finding)
        self.unsure += other.unsure
        for what, many in other.checked.items():
            self.count(what, many)

    def keys(self) -> set[tuple[object, ...]]:
        return {finding.key for finding in self.findings}

    def only(self, keys: set[tuple[object, ...]]) -> None:
        self.findings = [finding for finding in self.findings if finding.key in keys]

    def without(self, invariants: Iterable[str]) -> None:
        dropped = set(invariants)
        self.findings = [finding for finding in self.findings if finding.invariant not in dropped]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantResult:
    """The result for one invariant."""

    invariant: Invariant
    verdict: Verdict
    figures: str
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Where the units of a round are: total = available + queued + live + returning."""

    round_id: int
    sale_id: int
    on: bool  # it has begun and is not over, by the ledger's clock
    total: int
    available: int
    queued: int
    live: int
    returning: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    at_ms: int  # by the ledger's clock
    orders_at_ms: int  # when the orders were last compared one by one
    took_ms: int
    units: tuple[Units, ...]
    lost: tuple[tuple[int, int], ...]  # round and sale of those that the gate does not have, or keeps closed
    results: tuple[InvariantResult, ...]
    passing: frozenset[str] = frozenset()  # reasons that will disappear by themselves in a moment
    rounds: frozenset[int] = frozenset()  # that were read
    unsure: frozenset[int | None] = frozenset()  # rounds that could not be judged completely; None: all of them

    @property
    def verdict(self) -> Verdict:
        found = {result.verdict for result in self.results}
        if Verdict.BROKEN in found:
            return Verdict.BROKEN
        return Verdict.UNKNOWN if Verdict.UNKNOWN in found else Verdict.HOLDS

    @property
    def findings(self) -> list[Finding]:
        return [finding for result in self.results for finding in result.findings]

    def is_unsure(self, round_id: int | None) -> bool:
        return None in self.unsure or round_id in self.unsure

    def is_sound(self, round_id: int) -> bool:
        """Whether everything about the round could be judged, and no safety invariant is broken."""
        wrong = {finding.round_id for finding in self.findings if finding.invariant in SAFETY}
        return round_id in self.rounds and round_id not in wrong and not self.is_unsure(round_id)

    def broken(self) -> list[str]:
        return [result.invariant.name for result in self.results if result.verdict is Verdict.BROKEN]

    def reasons(self) -> list[str]:
        """Returns each reason once: usually several invariants cannot be judged for the same one."""
        return list(dict.fromkeys(reason for result in self.results for reason in result.reasons))

    def troubles(self) -> list[str]:
        """Returns the reasons that people should know."""
        return [reason for reason in self.reasons() if reason not in self.passing]
