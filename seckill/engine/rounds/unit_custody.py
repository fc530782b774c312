"""Finds out where every unit of a round is.

A sold unit moves from the gate to the ledger, and a returned one from the ledger to the gate. As they are read one
after the other, either can be ahead under load. So the ledger is read, then the gate, and both again if a unit moved
between them in the wrong direction.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seckill.domain.sale import Round
from seckill.errors import GateUnavailable
from seckill.ports.gate import CustodyGate, GateView, ItemView
from seckill.ports.ledger import CustodyLedger, Tally

READINGS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCustody:
    """total = available + queued + unpaid + paid + kept + returning + dead."""

    total: int
    available: int
    queued: int  # admitted, not in the ledger yet
    unpaid: int
    paid: int
    kept: int  # of refunded orders, but not back on sale
    returning: int  # over, not back on sale yet
    dead: int  # admitted, but given up without a row
    next_expiry_ms: int | None
    orders: int  # written so far; orders, not units
    lapsed: int  # of these, cancelled or not paid in time
    items: Mapping[int, "UnitCustody"] = field(default_factory=dict)  # together they are all of the above


async def take_custody(round_: Round, gate: CustodyGate, ledger: CustodyLedger) -> UnitCustody | None:
    """Returns None if the ledger has no such round. Raises GateUnavailable while the gate does not have the round,
    unless it no longer needs to: then the ledger knows everything."""
    for _ in range(READINGS_MAX):
        tally = await ledger.tally(round_.id)
        if tally is not None and round_.retired_ms is not None:
            return _at_rest(tally)
        view = await gate.inspect(round_.ref)
        if tally is None:
            return None
        if view is None:
            break
        comparable = await as_the_gate_counts(tally, round_, gate, ledger)
        custody = None if comparable is None else _combine(comparable, view)
        if custody is not None and all(each.queued >= 0 and each.returning >= 0 for each in _parts(custody)):
            return custody
    raise GateUnavailable("The gate and the ledger do not agree about this round now; try again.")


async def as_the_gate_counts(tally: Tally, round_: Round, gate: CustodyGate, ledger: CustodyLedger) -> Tally | None:
    """Subtracts orders that the gate has never heard of: a worker was handling them while the round was rebuilt, and
    they were given up after the buyers' records had been copied. Returns None if more were given up meanwhile."""
    if not tally.voided:
        return tally
    voided = await ledger.voided(round_.id)
    if sum(order.quantity for orders in voided.values() for order in orders) != tally.voided:
        return None
    known = await gate.remembered(round_.ref, voided)
    unheard = [order for user, orders in voided.items() for order in orders if order.number not in known[user]]
    units: Counter[int] = Counter()
    for order in unheard:
        units[order.item] += order.quantity
    items = {item: _without(of_item, units[item]) for item, of_item in tally.items.items()}
    return replace(_without(tally, units.total()), items=items)


def _without(tally: Tally, units: int) -> Tally:
    return replace(tally, recorded=tally.recorded - units, ended=tally.ended - units)


def _parts(custody: UnitCustody) -> list[UnitCustody]:
    return [custody, *custody.items.values()]


def _at_rest(tally: Tally) -> UnitCustody:
    return UnitCustody(
        total=tally.total,
        available=tally.total - tally.unpaid - tally.paid - tally.kept - tally.dead,
        queued=0,
        dead=tally.dead,
        unpaid=tally.unpaid,
        paid=tally.paid,
        kept=tally.kept,
        returning=0,
        next_expiry_ms=tally.next_expiry_ms,
        orders=tally.orders,
        lapsed=tally.lapsed,
        items={item: _at_rest(of_item) for item, of_item in tally.items.items()},
    )


def _combine(tally: Tally, view: GateView | ItemView) -> UnitCustody:
    of_items = {} if isinstance(view, ItemView) else view.items
    return UnitCustody(
        total=view.total,
        available=view.available,
        queued=view.admitted - tally.recorded - tally.dead,
        dead=tally.dead,
        unpaid=tally.unpaid,
        paid=tally.paid,
        kept=tally.kept,
        returning=tally.ended - view.released,
        next_expiry_ms=tally.next_expiry_ms,
        orders=tally.orders,
        lapsed=tally.lapsed,
        items={item: _combine(tally.items[item], stock) for item, stock in of_items.items() if item in tally.items},
    )
