"""The keeper's auditor: reads all the time, tells people once of each thing that is broken, and, if it is told to,
pauses the sale before more can go wrong."""

from collections.abc import Sequence
from typing import Protocol

import structlog

from seckill.alarms import Alarm
from seckill.audit.report import SAFETY, Finding, Report, Verdict
from seckill.audit.telling import Teller
from seckill.domain import RoundStatus, SaleChange
from seckill.errors import SeckillError
from seckill.operator_desk import NotInForce, OperatorDesk
from seckill.ports import Ledger
from seckill.telemetry import AUDIT_FINDINGS, AUDITS

log = structlog.get_logger()

# What an alarm names; the audit itself names all.
NAMED_MAX = 20


class Reader(Protocol):
    async def read(self, *, gently: bool) -> Report: ...

    def teller(self) -> Teller: ...


class Watchdog:
    """`desk`: where a sale is paused when a safety invariant breaks; None: people decide."""

    def __init__(self, auditor: Reader, alarm: Alarm, ledger: Ledger, desk: OperatorDesk | None) -> None:
        self._auditor = auditor
        self._alarm = alarm
        self._ledger = ledger
        self._desk = desk
        self._known: set[tuple[object, ...]] = set()
        self._to_pause: set[tuple[int, int]] = set()  # sale and round
        self._unsure: list[str] = []

    async def step(self) -> Report:
        report = await self._auditor.read(gently=True)
        AUDITS.labels(report.verdict.value).inc()
        for result in report.results:
            AUDIT_FINDINGS.labels(result.invariant.name).set(len(result.findings))
        new = [finding for finding in report.findings if finding.key not in self._known]
        if self._known and not report.findings and report.verdict is Verdict.HOLDS:
            log.info("the audit finds nothing wrong any more")
        if report.verdict is not Verdict.UNKNOWN:  # what cannot be seen now is not mended
            self._known = {finding.key for finding in report.findings}
            self._to_pause &= _broken(report.findings)
        self._to_pause |= _broken(new)
        try:
            await self._pause()  # first: a slow address for alarms must not keep the sale open
        finally:
            await self._raise_alarms(new)
        self._mention(report)
        return report

    async def _raise_alarms(self, new: Sequence[Finding]) -> None:
        """One for each invariant of each round, not one for each order."""
        groups: dict[tuple[str, int | None], list[Finding]] = {}
        for finding in new:
            groups.setdefault((finding.invariant, finding.round_id), []).append(finding)
        teller = self._auditor.teller()
        for (invariant, round_id), group in groups.items():
            facts = {
                "invariant": invariant,
                "round": round_id,
                "found": len(group),
                "findings": [teller.sentence(finding) for finding in group[:NAMED_MAX]],
            }
            await self._alarm.raise_("the audit has found something broken", facts)

    async def _pause(self) -> None:
        """What cannot be paused now is tried again at the next reading."""
        if self._desk is None:
            return
        for sale_id, round_id in sorted(self._to_pause):
            try:
                sale = await self._ledger.sale(sale_id, round_id)
                if sale is not None and sale.round.status is RoundStatus.OPEN:
                    await self._desk.change(sale, SaleChange(status=RoundStatus.PAUSED))
                    log.warning("the sale is paused, because the audit has found something broken", sale=sale_id)
            except NotInForce as error:  # stored: the keeper passes it on
                log.warning("the sale is paused as soon as the gate answers", sale=sale_id, reason=str(error))
            except SeckillError as error:
                log.error("the sale could not be paused", sale=sale_id, reason=str(error))
                continue
            self._to_pause.discard((sale_id, round_id))

    def _mention(self, report: Report) -> None:
        reasons = report.troubles()
        if reasons and reasons != self._unsure:
            log.warning("the audit could not tell", reasons=reasons[:NAMED_MAX])
        self._unsure = reasons


def _broken(findings: Sequence[Finding]) -> set[tuple[int, int]]:
    """Sale and round of what is not safe."""
    return {
        (finding.sale_id, finding.round_id)
        for finding in findings
        if finding.invariant in SAFETY and finding.sale_id is not None and finding.round_id is not None
    }
