"""A report for programs and people, with the ids that operators see."""

from datetime import UTC, datetime

import msgspec

from seckill.audit.report import Finding, Report
from seckill.domain.public_id import PublicIds

# No one would read more. `found` says how many there are.
SHOWN_MAX = 100


class AuditFinding(msgspec.Struct):
    """One thing that is wrong."""

    kind: str
    says: str
    round: str | None
    sale_id: str | None
    order_id: str | None
    order_number: str | None
    user: str | None  # the same as `buyer`
    buyer: str | None


class AuditResult(msgspec.Struct):
    """One invariant: `holds`, `broken` or `unknown` (could not tell, for these reasons)."""

    name: str
    says: str
    verdict: str
    checked: str
    found: int
    findings: list[AuditFinding]
    reasons: list[str]


class AuditUnits(msgspec.Struct):
    """Where the units of a round are."""

    round: str
    sale_id: str
    total: int
    available: int
    queued: int
    live: int
    returning: int


class Audit(msgspec.Struct):
    verdict: str
    at: str
    orders_compared_at: str | None
    took_ms: int
    invariants: list[AuditResult]
    units: list[AuditUnits]


class Teller:
    def __init__(self, sale_ids: PublicIds, order_ids: PublicIds) -> None:
        self._sale_ids = sale_ids
        self._order_ids = order_ids

    def document(self, report: Report) -> Audit:
        return Audit(
            verdict=report.verdict,
            at=_rfc3339(report.at_ms),
            orders_compared_at=_rfc3339(report.orders_at_ms) if report.orders_at_ms else None,
            took_ms=report.took_ms,
            invariants=[
                AuditResult(
                    name=result.invariant.name,
                    says=result.invariant.says,
                    verdict=result.verdict,
                    checked=result.figures,
                    found=len(result.findings),
                    findings=[self._finding(finding) for finding in result.findings[:SHOWN_MAX]],
                    reasons=list(result.reasons),
                )
                for result in report.results
            ],
            units=[
                AuditUnits(
                    round=str(units.round_id),
                    sale_id=self._sale_ids.encode(units.sale_id),
                    total=units.total,
                    available=units.available,
                    queued=units.queued,
                    live=units.live,
                    returning=units.returning,
                )
                for units in report.units
            ],
        )

    def _finding(self, finding: Finding) -> AuditFinding:
        return AuditFinding(
            kind=finding.kind,
            says=finding.says,
            round=None if finding.round_id is None else str(finding.round_id),
            sale_id=None if finding.sale_id is None else self._sale_ids.encode(finding.sale_id),
            order_id=self.order_id(finding.number),
            order_number=None if finding.number is None else str(finding.number),
            user=finding.user,
            buyer=finding.user,
        )

    def sale_id(self, number: int) -> str:
        return self._sale_ids.encode(number)

    def order_id(self, number: int | None) -> str | None:
        return None if number is None or not 0 <= number < 1 << 63 else self._order_ids.encode(number)

    def sentence(self, finding: Finding) -> str:
        """Returns what the finding is about, and what is wrong."""
        where = "" if finding.round_id is None else f"round {finding.round_id}"
        if finding.number is not None:
            facts = [f"number {finding.number}", *([f"buyer {finding.user}"] if finding.user else []), where]
            return f"order {self.order_id(finding.number)} ({', '.join(filter(None, facts))}) {finding.says}"
        if finding.user is not None:
            return f"buyer {finding.user} ({where}) {finding.says}"
        return f"{where}: {finding.says}" if where else finding.says


def _rfc3339(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
