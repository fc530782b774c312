"""The keeper's auditor. It reads continuously, alerts operators once to each thing that is broken, and tells them when
it no longer is. `audit_pause.py` decides which sales are paused and resumed.
"""

from collections.abc import Iterable, Sequence

import structlog

from seckill.audit.report import Finding, Report, Verdict
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.operations.audit_pause import AuditPause, Reader
from seckill.ports.ledger import WatchdogLedger
from seckill.telemetry import AUDIT_FINDINGS, AUDITS

log = structlog.get_logger()

# An alarm names at most this many; the audit itself names all.
NAMED_MAX = 20


class Watchdog:
    """`pauses`: a sale is paused when a safety invariant breaks; otherwise operators decide."""

    def __init__(
        self, auditor: Reader, alarm: Alarm, ledger: WatchdogLedger, desk: OperatorDesk, *, pauses: bool = False
    ) -> None:
        self._auditor = auditor
        self._alarm = alarm
        self._pause = AuditPause(auditor, alarm, ledger, desk, pauses=pauses)
        self._known: dict[tuple[object, ...], Finding] = {}
        self._unsure: list[str] = []
        # shown from the start: an alert on a metric that stands still needs the metric to exist
        for verdict in Verdict:
            AUDITS.labels(verdict.value)

    async def step(self) -> Report:
        report = await self._auditor.read(gently=True)
        AUDITS.labels(report.verdict.value).inc()
        for result in report.results:
            AUDIT_FINDINGS.labels(result.invariant.name).set(len(result.findings))
        new = [finding for finding in report.findings if finding.key not in self._known]
        gone = self._take_note(report, new)
        try:
            await self._pause.begin()  # pause first: a slow address for alarms must not keep the sale open
            await self._pause.lift(report)
        finally:
            await self._raise_alarms(new)
            await self._resolve_alarms(gone)
        self._mention(report)
        return report

    def _take_note(self, report: Report, new: Sequence[Finding]) -> list[tuple[str, int | None]]:
        """Returns what is no longer broken, by invariant and round. Trouble that merely cannot be seen now does not
        count as mended."""
        before = _grouped(self._known.values())
        hidden = {key: finding for key, finding in self._known.items() if report.is_unsure(finding.round_id)}
        known = hidden | {finding.key: finding for finding in report.findings}
        self._pause.take_note(new, before=self._known.values(), after=known.values())
        self._known = known
        if before and not self._known and report.verdict is Verdict.HOLDS:
            log.info("the audit finds nothing wrong any more")
        gone = before.keys() - _grouped(self._known.values()).keys()
        return [(invariant, round_id) for invariant, round_id in gone if round_id is None or round_id in report.rounds]

    async def _raise_alarms(self, new: Sequence[Finding]) -> None:
        """Raises one alarm for each invariant of each round, not one for each order."""
        teller = self._auditor.teller()
        for (invariant, round_id), group in _grouped(new).items():
            facts = {
                "invariant": invariant,
                "round": round_id,
                "found": len(group),
                "findings": [teller.sentence(finding) for finding in group[:NAMED_MAX]],
            }
            await self._alarm.raise_(AlarmCause.AUDIT_BROKEN, facts, lasting=True)

    async def _resolve_alarms(self, gone: Sequence[tuple[str, int | None]]) -> None:
        for invariant, round_id in gone:
            facts = {"invariant": invariant, "round": round_id}
            await self._alarm.resolve(
                "what the audit had found broken is no longer so", facts, ends=AlarmCause.AUDIT_BROKEN
            )

    def _mention(self, report: Report) -> None:
        reasons = report.troubles()
        if reasons and reasons != self._unsure:
            log.warning("the audit could not tell", reasons=reasons[:NAMED_MAX])
        self._unsure = reasons


def _grouped(findings: Iterable[Finding]) -> dict[tuple[str, int | None], list[Finding]]:
    groups: dict[tuple[str, int | None], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.invariant, finding.round_id), []).append(finding)
    return groups
