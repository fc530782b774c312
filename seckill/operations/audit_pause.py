"""Decides when the audit pauses a sale, and when it resumes it.

If this is switched on, the audit pauses a sale in which a safety invariant breaks, before more can go wrong. When it
turns out that nothing is wrong, it says so and resumes the sale.

The ledger remembers which pauses are the audit's, so that any keeper can lift those and no others. Operators have the
last word: a sale that they pause or resume stays so. A pause also stays after a rebuild: then the alarm was justified,
and an operator should find out why.
"""

from collections.abc import Collection, Iterable
from typing import Protocol

import structlog

from seckill.audit.document import Teller
from seckill.audit.invariants import SAFETY
from seckill.audit.report import Finding, Report
from seckill.domain.sale import Round, RoundStatus, Sale, SaleChange
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.rounds.operator_changes import NotInForce, OperatorDesk
from seckill.errors import SeckillError
from seckill.ports.ledger import WatchdogLedger
from seckill.ports.record import Actor, acting_as

log = structlog.get_logger()

_PAUSE = SaleChange(status=RoundStatus.PAUSED, by_audit=True)
_LIFT = SaleChange(status=RoundStatus.OPEN, by_audit=True)


class Reader(Protocol):
    async def read(self, *, gently: bool, at_once: Collection[int] = ...) -> Report: ...

    def teller(self) -> Teller: ...


class AuditPause:
    """`pauses`: a sale is paused when a safety invariant breaks; otherwise operators decide."""

    def __init__(
        self, auditor: Reader, alarm: Alarm, ledger: WatchdogLedger, desk: OperatorDesk, *, pauses: bool
    ) -> None:
        self._auditor = auditor
        self._alarm = alarm
        self._ledger = ledger
        self._desk = desk
        self._pauses = pauses
        # Sale and round → whether something else was already known to be broken in it.
        self._to_pause: dict[tuple[int, int], bool] = {}

    def take_note(self, new: Iterable[Finding], *, before: Iterable[Finding], after: Iterable[Finding]) -> None:
        """`new`: the findings of this reading; `before` and `after`: everything known to be broken, without and with
        them."""
        found, still = _broken(new), _broken(after)
        strange = found - _broken(before)
        self._to_pause = {place: further for place, further in self._to_pause.items() if place in still}
        self._to_pause |= {place: place not in strange for place in found}

    async def begin(self) -> None:
        """Pauses the sales in question. One that cannot be paused now is tried again at the next reading."""
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

    async def lift(self, report: Report) -> None:
        """Resumes a sale, whichever keeper paused it. First everything is compared once more, and must be sound both
        times."""
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
            return  # another keeper or an operator has resumed it
        try:
            await self._change(sale, _LIFT)
        except NotInForce as error:  # stored: the keeper passes it on
            log.warning("the sale goes on as soon as the gate answers", sale=sale.id, reason=str(error))
        if sale.round.status is RoundStatus.PAUSED:
            facts = {"sale": self._auditor.teller().sale_id(sale.id), "round": round_.id}
            await self._alarm.resolve("the audit finds nothing wrong any more: the sale it had paused goes on", facts)


def _broken(findings: Iterable[Finding]) -> set[tuple[int, int]]:
    """The sale and round of every finding that concerns safety."""
    return {
        (finding.sale_id, finding.round_id)
        for finding in findings
        if finding.invariant in SAFETY and finding.sale_id is not None and finding.round_id is not None
    }
