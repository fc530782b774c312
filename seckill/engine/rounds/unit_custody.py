"""Where every unit of a round is.

Units move from the gate to the ledger on the way in and from the ledger to the gate on the way out. Read one after the
other under load, one of the two can be ahead. So the ledger is read, then the gate, and again if something moved
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
    kept: int  # of refunded orders, and not back on sale
    returning: int  # over, not back on sale yet
    dead: int  # admitted, and given up without a row
    next_expiry_ms: int | None
    orders: int  # written so far; orders, not units
    lapsed: int  # of these, cancelled or not paid in time
    items: Mapping[int, "UnitCustody"] = field(default_factory=dict)  # together they are all of the above


async def take_custody(round_: Round, gate: CustodyGate, ledger: CustodyLedger) -> UnitCustody | None:
    """None if the ledger has no such round. Raises GateUnavailable while the gate does not have it, unless it need not
    have it any more: then the ledger knows all there is to know."""
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
    """Without orders that the gate has never heard of: a worker had them in hand while the round was rebuilt, and when
    they were given up, the buyers' records had been copied. None if more were given up meanwhile."""
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
