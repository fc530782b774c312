"""Checks that only need counters and work at any moment and at full load.

Orders move from the gate to the ledger, releases from the ledger to the gate, and all counters compared here only grow.
So the ledger is read, then the gate, then the ledger again:

- what the ledger had written at its first reading, the gate must have admitted by its own reading;
- what the gate has given back by its reading, the ledger must have decided by its second.

Anything that moves between the readings shifts both comparisons to the safe side. The epoch must be the same in all
three.
"""

from dataclasses import dataclass
from functools import partial

from seckill.audit.gate import Absent, GateRound
from seckill.audit.invariants import OF_GATE
from seckill.audit.item_checks import judge_item_shares, judge_items
from seckill.audit.lane_shares import Shares, judge_shares
from seckill.audit.ledger import LedgerRound
from seckill.audit.report import Notes, Units, Unsure, finding_about


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One round, read from the ledger, then the gate, then the ledger again."""

    before: LedgerRound
    gate: GateRound | Absent
    after: LedgerRound
    shares: Shares | None = None  # only for a round with several

    @property
    def id(self) -> int:
        return self.before.id

    def why_not(self) -> str | None:
        """Returns why gate and ledger cannot be compared now, or None if they can."""
        if isinstance(self.gate, Absent):
            return self.gate.reason
        if self.gate.preparing:
            return f"round {self.id} is being opened or rebuilt: the gate admits nobody"
        if self.before.epoch != self.after.epoch:
            return f"round {self.id} was being rebuilt while it was read"
        if self.gate.epoch != self.after.epoch:
            return f"round {self.id} is in epoch {self.gate.epoch} in the gate and {self.after.epoch} in the ledger"
        return None

    def gone_in_order(self) -> bool:
        """Whether all its orders are final, so that nothing is missing if the gate no longer has the round, or keeps it
        closed for a rebuild that is no longer needed."""
        return self._away() and self.before.at_rest and self.after.at_rest

    def lost(self) -> bool:
        """Whether the gate answers but does not have the round, or keeps it closed until it is rebuilt."""
        return self._away() and not self.gone_in_order()

    def _away(self) -> bool:
        return self.gate.missing if isinstance(self.gate, Absent) else self.gate.preparing

    def opening(self) -> tuple[int, int] | None:
        """Identifies the gate's opening of the round, if it can be compared."""
        if self.why_not() is not None or isinstance(self.gate, Absent):
            return None
        return self.gate.epoch, self.gate.opened_ms

    def same_opening(self, later: GateRound | Absent) -> bool:
        """Whether the round was not rebuilt since."""
        if isinstance(later, Absent) or later.preparing:
            return False
        return self.opening() == (later.epoch, later.opened_ms)


def judge(reading: Reading, notes: Notes) -> None:
    notes.count("rounds")
    _judge_ledger(reading.after, notes)
    if reading.gone_in_order():
        return
    _judge_epoch(reading, notes)
    reason = reading.why_not()
    if reason is not None:
        notes.unsure.append(Unsure(OF_GATE, reason, reading.id))
        return
    assert isinstance(reading.gate, GateRound)
    _judge_gate(reading, reading.gate, notes)
    judge_items(reading.before, reading.gate, reading.after, notes)
    if reading.shares is not None:
        judge_shares(reading.shares, reading.before, reading.after, notes)
        judge_item_shares(reading.shares.first, reading.shares.later, reading.after, notes)


def units_of(reading: Reading) -> Units | None:
    """Returns units to be shown to people. Under load two readings may be a moment apart, so differences are shown as
    at least 0."""
    gate, ledger = reading.gate, reading.after
    if isinstance(gate, Absent) or gate.preparing:
        return None
    return Units(
        round_id=ledger.id,
        sale_id=ledger.sale_id,
        on=ledger.status != "closed" and ledger.begins_ms <= ledger.now_ms < ledger.ends_ms,
        total=gate.total,
        available=gate.available,
        queued=max(0, gate.admitted - reading.after.written - reading.after.buried),
        live=ledger.sold,
        returning=max(0, ledger.decided - gate.released),
    )


def _judge_ledger(ledger: LedgerRound, notes: Notes) -> None:
    if not 0 <= ledger.sold <= min(ledger.total, ledger.written):
        says = f"the ledger counts {ledger.sold} units sold of {ledger.total}, and {ledger.written} ever written"
        notes.add(finding_about(ledger, "counters", "impossible", says))


def _judge_epoch(reading: Reading, notes: Notes) -> None:
    """Another epoch or opening is fine as long as the gate admits no one. `after` counts here: the process that opens
    the gate has noted it in the ledger before."""
    gate, before, after = reading.gate, reading.before, reading.after
    if isinstance(gate, Absent) or gate.preparing or before.epoch != after.epoch:
        return
    add = partial(finding_about, after, "epoch")
    if gate.epoch != after.epoch:
        says = f"the gate sells in epoch {gate.epoch}, the ledger is in epoch {after.epoch}"
        notes.add(add("other_epoch", says))
    elif gate.opened_ms != after.opened_ms:
        notes.add(add("other_opening", "the gate sells from another opening than the one that the ledger has noted"))
    elif gate.revision > after.revision:
        says = f"the gate has revision {gate.revision} of the rules, the ledger only {after.revision}"
        notes.add(add("other_rules", says))
    elif before.revision == after.revision == gate.revision and (gate.total, gate.rules) != (after.total, after.rules):
        says = f"in the gate {gate.total} units, {gate.rules}; in the ledger {after.total} units, {after.rules}"
        notes.add(add("other_rules", says))


def _judge_gate(reading: Reading, gate: GateRound, notes: Notes) -> None:
    before, after = reading.before, reading.after
    add = partial(finding_about, after)
    due = gate.total - gate.admitted + gate.released
    if gate.available != due or not 0 <= gate.available <= gate.total or not 0 <= gate.released <= gate.admitted:
        says = (
            f"{gate.available} units available, but {gate.total} − {gate.admitted} admitted + "
            f"{gate.released} released = {due}"
        )
        notes.add(add("stock", "sum", says))
    if gate.buyers_gone:
        says = f"{gate.buyers_gone} of {gate.buyers + gate.buyers_gone} buyers' records are gone from the gate"
        notes.add(add("buyers", "gone", says))
    if before.written > gate.admitted:
        says = f"the ledger has {before.written} units written, the gate has admitted only {gate.admitted}"
        notes.add(add("admission", "behind", says))
    if gate.released > after.decided:
        says = f"the gate has given back {gate.released} units, the ledger has decided only {after.decided}"
        notes.add(add("give_back", "ahead", says))
