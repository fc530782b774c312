"""Mends what the audit has found, but only in the safe direction: no unit is invented, and nothing is released that the
ledger has not decided to release. Anything that cannot be mended this way is left to an operator.

Every repair begins with a new audit, and every step may be repeated. So after a crash, a repair is simply started
again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from seckill.audit import Auditor
from seckill.audit.document import Teller
from seckill.audit.report import Finding, Report
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.admission import Admission, admission_of
from seckill.domain.order import LAPSED
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Round
from seckill.engine.orders.releases import BATCH_MAX
from seckill.errors import GateError, LedgerRefused, SeckillError
from seckill.failpoints import reached
from seckill.loops import Stop
from seckill.ports.gate import GateStatus, Release, RepairGate
from seckill.ports.ledger import RepairLedger
from seckill.ports.queue_entry import write_entry
from seckill.ports.record import RecordBook
from seckill.ports.transport import Delivery

log = structlog.get_logger()

# Longer than the rebuilder itself gives the workers.
REBUILT_WITHIN_S = 60.0
POLL_S = 0.2
# The next turn mends what a step has brought to light. If this many turns are not enough, more would not help.
TURNS_MAX = 3

# The gate is wrong and the ledger is right: a rebuild brings the gate to what the ledger says.
_REBUILD = {
    ("stock", "sum"),
    ("stock", "units"),
    ("stock", "gift"),
    ("items", "stock"),
    ("items", "sum"),
    ("items", "missing"),
    ("items", "lane"),
    ("items", "records"),
    ("buyers", "gone"),
    ("buyers", "lane"),
    ("buyers", "admitted"),
    ("buyers", "released"),
    ("buyers", "unreadable"),
    ("buyers", "twice"),
    ("buyers", "note"),
    ("buyers", "past"),
    ("epoch", "other_epoch"),
    ("epoch", "other_opening"),
    ("epoch", "other_rules"),
    ("admission", "behind"),
    ("admission", "row"),
    ("give_back", "ahead"),
    ("give_back", "undecided"),
    ("orders", "content"),
}
_RECOUNT = {("counters", "sold"), ("counters", "written"), ("counters", "impossible"), ("items", "sold")}
# These compare the gate with the ledger's counters: while those are wrong, they say nothing about the gate.
_BY_COUNTERS = {("admission", "behind"), ("give_back", "ahead")}
_ADVICE = {
    "counters": "They are set to what the orders add up to as soon as no order of the round is in doubt.",
    "items": "Compare the orders of the round with `round_items`, and correct those that name a wrong one.",
    "give_back": "The gate is rebuilt as soon as the order is no longer in doubt.",
    "limit": "It oversells nothing. Cancel one of the buyer's orders, or leave it.",
    "lost": "Its row was there once: put it back from a backup. Until then nothing of its round is rebuilt.",
    "history": "Compare the order with its `order_events` and with what the buyer knows, and correct its row.",
    "releases": "Compare its state, its `order_events` and its row in `outbox`, and correct the one that is wrong.",
    "orders": "Compare its row with its `order_events`, and correct it.",
    "queue": "A worker that cannot write it sets it aside; `seckill dead list` shows it then. Find out who wrote it.",
    "time": "The order is over. If the buyer was promised more time, sell them another.",
    "vouchers": "Compare the order with `vouchers`; if codes are missing, upload more.",
    "money": "Compare the order with `payments` and `refunds`, and with what the payment provider says.",
    "progress": "Start a worker: `seckill worker`, or `seckill up`.",
}
_LATER = "Decide about the others first."


@dataclass(frozen=True, slots=True)
class Step:
    says: str  # what it does, beginning with the verb
    act: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Plan:
    steps: list[Step] = field(default_factory=list)
    for_people: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Mended:
    """What was done, what the last audit found, and what is still to be done."""

    done: list[str]
    report: Report
    plan: Plan


class Repair:
    def __init__(self, use_cases: UseCases) -> None:
        self._use = use_cases
        self._gate: RepairGate = use_cases.engine.gate
        self._ledger: RepairLedger = use_cases.engine.ledger
        self._book: RecordBook = use_cases.engine.ledger.book

    async def plan(self, report: Report, teller: Teller) -> Plan:
        """Plans the steps in the necessary order: lost orders must be in the ledger before a gate is rebuilt."""
        plan = Plan()
        by_round: dict[tuple[int, int], list[Finding]] = {}
        for finding in report.findings:
            if finding.round_id is not None and finding.sale_id is not None:
                by_round.setdefault((finding.round_id, finding.sale_id), []).append(finding)
        rebuilds: dict[tuple[int, int], str] = dict.fromkeys(report.lost, "the gate does not have it")
        mended: set[tuple[object, ...]] = set()
        for place, findings in by_round.items():
            mended |= self._plan_orders(place, findings, teller, plan)
            wrong = _of_gate(findings)
            if wrong:
                rebuilds.setdefault(place, wrong[0].says)
        mended |= self._plan_waiting(report, plan)
        for place, why in rebuilds.items():
            mended |= await self._plan_rebuild(place, why, by_round.get(place, []), mended, plan)
        for finding in report.findings:
            if finding.key not in mended:
                advice = _ADVICE.get(finding.invariant, _LATER)
                plan.for_people.append(f"{finding.invariant}: {teller.sentence(finding)}. {advice}")
        return plan

    def _plan_orders(
        self, place: tuple[int, int], findings: Sequence[Finding], teller: Teller, plan: Plan
    ) -> set[tuple[object, ...]]:
        """Plans for counters and single orders of one round. Returns what the steps will mend."""
        kinds = {(finding.invariant, finding.kind) for finding in findings}
        mended: set[tuple[object, ...]] = set()
        # If a row was deleted or changed by hand, the counters may be the only trace of it.
        if kinds & _RECOUNT and ("lost", "row_gone") not in kinds and not _doubtful(findings):
            # What is still wrong with the right counters is found by the next audit.
            settled = _RECOUNT | _BY_COUNTERS
            mended |= {finding.key for finding in findings if (finding.invariant, finding.kind) in settled}
            plan.steps.append(
                Step(
                    f"Set the counters of round {place[0]} in the ledger to what its orders add up to.",
                    lambda: self._recount(place[0]),
                )
            )
        # A record that the counters do not confirm may be forged.
        adds_up = not kinds & {("buyers", "admitted"), ("buyers", "twice")}
        for finding in findings:
            if (finding.invariant, finding.kind) == ("lost", "nowhere") and adds_up:
                mended.add(finding.key)
                says = f"Write {_order(finding, teller)} to the ledger, as the gate remembers it."
                plan.steps.append(Step(says, lambda finding=finding: self._write(finding)))  # type: ignore[misc]
            if (finding.invariant, finding.kind) == ("releases", "not_in_gate") and adds_up:
                mended.add(finding.key)
                says = f"Give back the units of {_order(finding, teller)} in the gate: the ledger has decided it."
                plan.steps.append(Step(says, lambda finding=finding: self._release(finding)))  # type: ignore[misc]
        return mended

    def _plan_waiting(self, report: Report, plan: Plan) -> set[tuple[object, ...]]:
        mended: set[tuple[object, ...]] = set()
        for kind, says, act in (
            ("overdue", "Expire the orders whose time to pay is over, by the ledger's clock.", self._expire),
            ("outbox", "Pass on what the ledger has decided and no keeper has passed on.", self._pass_on),
            ("damaged", "Take away what stands under the gate's keys and is not its own.", self._discard),
        ):
            found = {
                finding.key for finding in report.findings if (finding.invariant, finding.kind) == ("progress", kind)
            }
            if found:
                plan.steps.append(Step(says, act))
            mended |= found
        return mended

    async def _plan_rebuild(
        self,
        place: tuple[int, int],
        why: str,
        findings: Sequence[Finding],
        mended: set[tuple[object, ...]],
        plan: Plan,
    ) -> set[tuple[object, ...]]:
        round_ = await self._round(place)
        if round_ is None:
            return set()
        unwritten = [finding for finding in findings if finding.invariant == "lost" and finding.key not in mended]
        kinds = {(finding.invariant, finding.kind) for finding in findings}
        if ("buyers", "unreadable") in kinds and ("buyers", "admitted") in kinds:
            unwritten += [finding for finding in findings if finding.kind == "unreadable"]
        if unwritten:
            plan.for_people.append(
                f"round {round_.id} has to be rebuilt ({why}), but that would forget what only the gate knows: "
                f"{len(unwritten)} records that are not in the ledger. Decide about these first."
            )
            return set()
        view = await self._gate.inspect(round_.ref)
        if view is not None and view.epoch > round_.epoch:
            plan.for_people.append(
                f"round {round_.id} is in epoch {view.epoch} in the gate and {round_.epoch} in the ledger: the ledger "
                "has gone back in time. Bring back its newest backup; the gate is not touched until then."
            )
            return {finding.key for finding in findings if finding.invariant == "epoch"}
        says = f"Close round {round_.id} to buyers, write what is queued, and rebuild the gate from the ledger ({why})."
        plan.steps.append(Step(says, lambda: self._rebuild(place)))
        return {finding.key for finding in findings if (finding.invariant, finding.kind) in _REBUILD}

    async def apply(self, plan: Plan, tell: Callable[[str], None]) -> None:
        for step in plan.steps:
            tell(step.says)
            # Noted beforehand: whatever becomes of the step, the record says who wanted it.
            await self._book.note("repair.applied", "", after={"step": step.says})
            reached("repair.step.before")
            await step.act()
            reached("repair.step.after")

    async def run(self, auditor: Auditor, *, apply: bool, tell: Callable[[str], None] = lambda _: None) -> Mended:
        """Audits and plans. With `apply`, also carries the plan out and audits again."""
        done: list[str] = []

        def note(says: str) -> None:
            done.append(says)
            tell(says)

        for turn in range(TURNS_MAX + 1):
            report = await auditor.read(full=True)
            plan = await self.plan(report, auditor.teller())
            if not (apply and plan.steps) or turn == TURNS_MAX:
                break
            await self.apply(plan, note)
        return Mended(done, report, plan)

    async def _round(self, place: tuple[int, int]) -> Round | None:
        """Returns None for a retired round, which the gate no longer needs."""
        sale = await self._ledger.sale(place[1], place[0])
        return None if sale is None or sale.round.retired_ms is not None else sale.round

    async def _recount(self, round_id: int) -> None:
        await self._ledger.recount(round_id)

    async def _expire(self) -> None:
        while await self._use.release_desk.expire() == BATCH_MAX:
            pass

    async def _discard(self) -> None:
        """Discards foreign values under the keys of lanes. Those under keys of rounds go with the rebuild."""
        await self._use.lane_damage.discard()

    async def _pass_on(self) -> None:
        await self._use.release_desk.pass_on()

    async def _write(self, finding: Finding) -> None:
        """Writes an order as a worker would. If the ledger refuses it, it is treated like any refused order: tried
        again, then failed and released, and its buyer told."""
        lanes = [] if finding.number is None else [OrderNumber.from_int(finding.number).lane]
        standing = await self._gate.standing(lanes)
        admission = await self._remembered(finding)
        if admission is None:  # another process has written it
            return
        # An order that a server taking over may lack must not be in the ledger: its buyer could buy once more.
        await self._gate.assure(lanes, standing)
        try:
            await self._ledger.record([admission])
        except LedgerRefused as error:
            entry_id = f"repair-{int(admission.number)}"
            delivery = Delivery(admission.number.lane, entry_id, write_entry(admission), admission)
            await self._ledger.set_aside(delivery, str(error), self._use.settings.retry_delays_s[0])
            log.warning("the ledger refuses it: set aside", order=int(admission.number), reason=str(error))
        reached("repair.record.after")

    async def _remembered(self, finding: Finding) -> Admission | None:
        round_ = await self._round((finding.round_id or 0, finding.sale_id or 0))
        if round_ is None or finding.number is None or finding.user is None:
            return None
        number = OrderNumber.from_int(finding.number)
        (holdings,) = await self._gate.holdings([round_.ref], finding.user)
        for held in holdings or ():
            if held.number == number:
                return admission_of(round_, finding.user, held)
        return None

    async def _release(self, finding: Finding) -> None:
        round_ = await self._round((finding.round_id or 0, finding.sale_id or 0))
        if round_ is None or finding.number is None or finding.user is None:
            return
        order = await self._ledger.order(OrderNumber.from_int(finding.number))
        (holdings,) = await self._gate.holdings([round_.ref], finding.user)
        for held in holdings or ():
            if order is not None and held.number == order.number:
                release = Release(held.number, finding.user, round_.epoch, held.request_id, order.state in LAPSED)
                await self._gate.release(round_.ref, [release])

    async def _rebuild(self, place: tuple[int, int]) -> None:
        round_ = await self._round(place)
        if round_ is None:
            return
        first_epoch = round_.epoch
        view = await self._gate.inspect(round_.ref)
        if view is not None:
            # Fences the round in whatever epoch it is: from now on no buyer is admitted.
            await self._gate.fence(replace(round_, epoch=view.epoch))
        reached("repair.fence.after")
        await self._drain(round_)
        rebuilder = self._use.rebuilder()
        give_up_s = time.monotonic() + REBUILT_WITHIN_S
        while time.monotonic() < give_up_s:
            round_ = await self._round(place)
            if round_ is None or await self._sells_again(round_, first_epoch) or await rebuilder.step(round_):
                return
            await asyncio.sleep(POLL_S)
        raise GateError(f"Round {place[0]} could not be rebuilt within {REBUILT_WITHIN_S:.0f} s: repeat it.")

    async def _sells_again(self, round_: Round, first_epoch: int) -> bool:
        """Whether the round sells again. A keeper may have rebuilt it at the same time."""
        view = await self._gate.inspect(round_.ref)
        open_ = view is not None and view.status is not GateStatus.PREPARING and view.epoch == round_.epoch
        return open_ and round_.epoch > first_epoch

    async def _drain(self, round_: Round) -> None:
        """Writes the queued entries first, whether there are workers or not, because they would be void after the
        rebuild."""
        worker = self._use.worker(Stop(), lanes=round_.every_lane)
        try:
            await worker.prepare()
            while await worker.take_over() + await worker.read_and_record(wait_s=0):
                pass
        except SeckillError as error:
            log.warning("not all that is queued could be written", reason=str(error))


def _of_gate(findings: Sequence[Finding]) -> list[Finding]:
    """Returns the findings that a rebuild of the gate would mend."""
    doubtful = _doubtful(findings)
    kinds = {(finding.invariant, finding.kind) for finding in findings}
    wanted = _REBUILD - _BY_COUNTERS if kinds & _RECOUNT else _REBUILD
    return [
        finding
        for finding in findings
        if (finding.invariant, finding.kind) in wanted and finding.number not in doubtful
    ]


def _doubtful(findings: Sequence[Finding]) -> set[int]:
    """Returns the orders about which the ledger contradicts itself: nothing is changed to match those."""
    doubtful = {("history", "path"), ("releases", "of_live"), ("releases", "missing")}
    if any((finding.invariant, finding.kind) == ("items", "sold") for finding in findings):
        doubtful.add(("orders", "content"))  # the counts of items suggest that the gate may be right and the row wrong
    return {
        finding.number
        for finding in findings
        if finding.number is not None and (finding.invariant, finding.kind) in doubtful
    }


def _order(finding: Finding, teller: Teller) -> str:
    return f"order {teller.order_id(finding.number)} of {finding.user} (round {finding.round_id})"
