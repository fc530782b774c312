"""Checks from the ledger to the gate: every single order, and what the gate remembers about it.

The row is read first, with its history and its release, in one snapshot, and then the gate, which by then must know
what the row says.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial

import msgspec

from seckill.audit.database import AnyRow
from seckill.audit.gate import GateReader, Held
from seckill.audit.lane_shares import lane_of, orders_of
from seckill.audit.ledger import LedgerReader, LedgerRound
from seckill.audit.money_checks import wrong_money
from seckill.audit.report import Notes, finding_about

# Both times come from the database, in one statement; this is more than any statement takes between two of its columns.
WRITTEN_WITHIN_MS = 1000
OVER = ("cancelled", "expired", "failed", "refunded")
# Whether an order of this state holds its units. A refund decides on money and units separately, so after an operator's
# refund both are possible.
HOLDS = {"unpaid": True, "paid": True, "cancelled": False, "expired": False, "failed": False, "refunded": False}
STEPS = {
    "queued": ("unpaid", "paid", "failed"),  # a free order is paid at once
    "unpaid": ("paid", "cancelled", "expired"),
    "paid": ("refunded",),
    "cancelled": ("refunded",),
    "expired": ("refunded",),
    "failed": ("refunded",),
}


class Subject(msgspec.Struct):
    """An order in the ledger, with everything that belongs to it."""

    row: AnyRow
    events: Sequence[AnyRow]
    releases: Sequence[AnyRow]
    payments: Sequence[AnyRow]
    codes: int
    codes_astray: int


async def audit_orders(
    round_: LedgerRound, ledger: LedgerReader, gate: GateReader | None, notes: Notes
) -> AsyncIterator[None]:
    """Checks orders in portions. If the gate cannot be asked, checks the ledger alone."""
    after = ("", 0)
    last = False
    while not last:
        portion = await ledger.portion(round_, after)
        last = portion.last
        if not portion.rows:
            return
        wanted: dict[str, list[Held]] = {}
        for row in portion.rows:
            order = Held(row.id, row.quantity, row.slot, row.request_id, row.active_slot is not None, row.item_id or 0)
            wanted.setdefault(row.user_id, []).append(order)
        held = {} if gate is None else await orders_of(gate, round_, wanted)
        paid: dict[int, list[AnyRow]] = {}
        for payment in portion.payments:
            for number in {payment.order_id, payment.settles}:
                paid.setdefault(number, []).append(payment)
        for row in portion.rows:
            subject = Subject(
                row,
                portion.events.get(row.id, ()),
                portion.releases.get(row.id, ()),
                paid.get(row.id, ()),
                *portion.codes.get(row.id, (0, 0)),
            )
            check_row(round_, subject, notes)
            if gate is not None:
                check_against_gate(round_, subject, held.get(row.user_id, {}).get(row.id), notes)
        notes.count("orders", len(portion.rows))
        after = (portion.rows[-1].user_id, portion.rows[-1].id)
        yield


def check_row(round_: LedgerRound, subject: Subject, notes: Notes) -> None:
    row = subject.row
    add = partial(finding_about, round_, number=row.id, user=row.user_id)
    live = row.active_slot is not None
    if row.state not in HOLDS:
        notes.add(add("orders", "state", f"has the state {row.state}, which does not exist"))
    refunded = row.paid_ms is not None and (row.refunded_cents > 0 or row.state == "refunded")
    if row.active_slot not in (None, row.slot) or (live != HOLDS.get(row.state, live) and not refunded):
        notes.add(add("orders", "slot", f"is {row.state} and has the active slot {row.active_slot}"))
    if row.state in OVER and row.closed_ms is None:
        notes.add(add("orders", "closed", f"is {row.state}, but it was not noted when it ended"))
    if (row.id >> 24) & 0xFF != lane_of(round_, row.user_id):
        says = f"has a number of lane {(row.id >> 24) & 0xFF}, its buyer is in lane {lane_of(round_, row.user_id)}"
        notes.add(add("orders", "lane", says))
    if (wrong := _wrong_step(row.state, subject.events)) is not None:
        notes.add(add("history", "path", wrong))
    if live and subject.releases:
        notes.add(add("releases", "of_live", f"is {row.state}, but its release was decided"))
    if not live and not subject.releases:
        notes.add(add("releases", "missing", f"is {row.state}, but its release was never decided"))
    if (money := wrong_money(row, subject.payments)) is not None:
        notes.add(add("money", "payment", money))
    due = row.quantity if row.state == "paid" and live else 0
    if round_.gives_codes and subject.codes != due:
        notes.add(add("vouchers", "count", f"is {row.state} and has {subject.codes} codes instead of {due}"))
    if subject.codes_astray:
        notes.add(add("vouchers", "item", f"has {subject.codes_astray} codes that are for another item"))
    if row.expires_ms is not None:
        if row.expires_ms < row.recorded_ms + round_.pay_within_s * 1000:
            notes.add(add("time", "short", f"had less than {round_.pay_within_s} s to pay"))
        if row.expires_ms > row.recorded_ms + round_.pay_within_s * 1000 + WRITTEN_WITHIN_MS:
            notes.add(add("time", "long", f"has more than {round_.pay_within_s} s to pay"))
        if row.state == "expired" and row.closed_ms is not None and row.closed_ms < row.expires_ms:
            early_s = (row.expires_ms - row.closed_ms) / 1000
            notes.add(add("time", "early", f"expired {early_s:g} s before its time to pay was over"))


def _wrong_step(state: str, events: Sequence[AnyRow]) -> str | None:
    at = "queued"
    for event in events:
        if event.from_state != at or event.to_state not in STEPS.get(at, ()):
            return f"went from {event.from_state} to {event.to_state} when it was {at}"
        at = event.to_state
    return None if at == state else f"is {state}, but its history ends with {at}"


def check_against_gate(round_: LedgerRound, subject: Subject, held: Held | None, notes: Notes) -> None:
    row = subject.row
    add = partial(finding_about, round_, number=row.id, user=row.user_id)
    if held is None:
        # An entry of an earlier epoch that was given up after the rebuild: the gate has forgotten it and need not
        # release it.
        given_up = row.epoch != round_.epoch and row.expires_ms is None and row.paid_ms is None
        if not given_up:
            notes.add(add("admission", "row", "is in the ledger, but the gate never admitted it"))
        return
    if (row.quantity, row.slot) != (held.quantity, held.slot):
        says = f"has {row.quantity} units in slot {row.slot} in the ledger, {held.quantity} in {held.slot} in the gate"
        notes.add(add("orders", "content", says))
    elif row.request_id != held.request_id:
        says = f"has the request id {row.request_id} in the ledger, {held.request_id} in the gate"
        notes.add(add("orders", "content", says))
    elif (row.item_id or 0) != held.item:
        says = f"is of item {row.item_id} in the ledger, of item {held.item or None} in the gate"
        notes.add(add("orders", "content", says))
    # A retired round takes nothing back.
    if held.live and not round_.retired and any(release.done_ms is not None for release in subject.releases):
        notes.add(add("releases", "not_in_gate", f"is {row.state} and was given back, but the gate still holds it"))
