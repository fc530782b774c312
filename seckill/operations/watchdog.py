"""The keeper's auditor: reads continuously, alerts operators once to each thing that is broken, and, if told to, pauses
the sale before more can go wrong. When it turns out that nothing is wrong, it says so and resumes the sale.

The ledger remembers which pauses are the audit's, so that any keeper can lift them, and no other pause is lifted.
Operators have the last word: what they pause or resume stays so. After a rebuild a pause stays as well: then the alarm
was true, and an operator should know why.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import structlog

from seckill.audit.document import Teller
from seckill.audit.invariants import SAFETY
from seckill.audit.report import Finding, Report, Verdict
from seckill.domain.sale import Round, RoundStatus, Sale, SaleChange
from seckill.engine.rounds.operator import NotInForce, OperatorDesk
from seckill.errors import SeckillError
from seckill.ports.alarm import Alarm
from seckill.ports.alarm_cause import AlarmCause
from seckill.ports.ledger import WatchdogLedger
from seckill.ports.record import Actor, acting_as
from seckill.telemetry import AUDIT_FINDINGS, AUDITS

log = structlog.get_logger()

# What an alarm names; the audit itself names all.
NAMED_MAX = 20

_PAUSE = SaleChange(status=RoundStatus.PAUSED, by_audit=True)
_LIFT = SaleChange(status=RoundStatus.OPEN, by_audit=True)


class Reader(Protocol):
    async def read(self, *, gently: bool, at_once: Collection[int] = ...) -> Report: ...

    def teller(self) -> Teller: ...


class Watchdog:
    """`pauses`: a sale is paused when a safety invariant breaks; otherwise operators decide."""

    def __init__(
        self, auditor: Reader, alarm: Alarm, ledger: WatchdogLedger, desk: OperatorDesk, *, pauses: bool = False
    ) -> None:
        self._auditor = auditor
        self._alarm = alarm
        self._ledger = ledger
        self._desk = desk
        self._pauses = pauses
        self._known: dict[tuple[object, ...], Finding] = {}
        # Sale and round → whether we knew of something broken in it before, and this is something else.
        self._to_pause: dict[tuple[int, int], bool] = {}
        self._unsure: list[str] = []
        for verdict in Verdict:  # shown before they happen: what is not there does not stand still, and rings no alarm
            AUDITS.labels(verdict.value)

    async def step(self) -> Report:
        report = await self._auditor.read(gently=True)
        AUDITS.labels(report.verdict.value).inc()
        for result in report.results:
            AUDIT_FINDINGS.labels(result.invariant.name).set(len(result.findings))
        new = [finding for finding in report.findings if finding.key not in self._known]
        gone = self._take_note(report, new)
        try:
            await self._pause()  # first: a slow address for alarms must not keep the sale open
            await self._lift(report)
        finally:
            await self._raise_alarms(new)
            await self._resolve_alarms(gone)
        self._mention(report)
        return report

    def _take_note(self, report: Report, new: Sequence[Finding]) -> list[tuple[str, int | None]]:
        """Returns what is no longer broken, by invariant and round. What cannot be seen now is not mended."""
        before = _grouped(self._known.values())
        hidden = {key: finding for key, finding in self._known.items() if report.is_unsure(finding.round_id)}
        strange = _broken(new) - _broken(self._known.values())
        self._known = hidden | {finding.key: finding for finding in report.findings}
        still = _broken(self._known.values())
        self._to_pause = {place: further for place, further in self._to_pause.items() if place in still}
        self._to_pause |= {place: place not in strange for place in _broken(new)}
        if before and not self._known and report.verdict is Verdict.HOLDS:
            log.info("the audit finds nothing wrong any more")
        gone = before.keys() - _grouped(self._known.values()).keys()
        return [(invariant, round_id) for invariant, round_id in gone if round_id is None or round_id in report.rounds]

    async def _raise_alarms(self, new: Sequence[Finding]) -> None:
        """One for each invariant of each round, not one for each order."""
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

    async def _pause(self) -> None:
        """What cannot be paused now is tried again at the next reading."""
        if not self._pauses:
            return
        for (sale_id, round_id), further in sorted(self._to_pause.items()):
            try:
                sale = await self._ledger.sale(sale_id, round_id)
                if sale is not None and sale.round.status is RoundStatus.OPEN:
                    if sale.round.concerns_audit and not further:
                        log.warning("the sale stays open: an operator has resumed it all the same", sale=sale_id)
                    else:
                        await self._change(sale, _PAUSE)
                        log.warning("the sale is paused, because the audit has found something broken", sale=sale_id)
            except NotInForce as error:  # stored: the keeper passes it on
                log.warning("the sale is paused as soon as the gate answers", sale=sale_id, reason=str(error))
            except SeckillError as error:
                log.error("the sale could not be paused", sale=sale_id, reason=str(error))
                continue
            del self._to_pause[sale_id, round_id]

    async def _change(self, sale: Sale, change: SaleChange) -> None:
        with acting_as(Actor("audit")):
            await self._desk.change(sale, change)

    async def _lift(self, report: Report) -> None:
        """Whichever keeper paused it. Everything is compared once more first, and must be sound both times."""
        try:
            sound = [each for each in await self._ledger.rounds_of_audit() if report.is_sound(each.id)]
            if not sound:
                return
            again = await self._auditor.read(gently=True, at_once={each.id for each in sound})
            for round_ in sound:
                if again.is_sound(round_.id):
                    await self._lift_one(round_)
        except SeckillError as error:
            log.error("a pause could not be lifted", reason=str(error))

    async def _lift_one(self, round_: Round) -> None:
        sale = await self._ledger.sale(round_.sale_id, round_.id)
        if sale is None or not sale.round.concerns_audit:
            return  # another keeper or an operator was faster
        try:
            await self._change(sale, _LIFT)
        except NotInForce as error:  # stored: the keeper passes it on
            log.warning("the sale goes on as soon as the gate answers", sale=sale.id, reason=str(error))
        if sale.round.status is RoundStatus.PAUSED:
            facts = {"sale": self._auditor.teller().sale_id(sale.id), "round": round_.id}
            await self._alarm.resolve("the audit finds nothing wrong any more: the sale it had paused goes on", facts)

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


def _broken(findings: Iterable[Finding]) -> set[tuple[int, int]]:
    """Sale and round of what is not safe."""
    return {
        (finding.sale_id, finding.round_id)
        for finding in findings
        if finding.invariant in SAFETY and finding.sale_id is not None and finding.round_id is not None
    }
