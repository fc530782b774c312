"""Where every unit of a round is.

Units move from the gate to the ledger on the way in and from the ledger to the gate on the way out. Read one after the
other under load, one of the two can be ahead. So the ledger is read, then the gate, and again if something moved
between them in the wrong direction.
"""

from dataclasses import dataclass

from seckill.domain import Round
from seckill.errors import GateUnavailable
from seckill.ports import Gate, GateView, Ledger, Tally

READINGS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Custody:
    """total = available + queued + unpaid + paid + returning + dead."""

    total: int
    available: int
    queued: int  # admitted, not in the ledger yet
    unpaid: int
    paid: int
    returning: int  # over, not back on sale yet
    dead: int  # admitted, and given up without a row
    next_expiry_ms: int | None


async def take_custody(round_: Round, gate: Gate, ledger: Ledger) -> Custody | None:
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
        custody = _combine(tally, view)
        if custody.queued >= 0 and custody.returning >= 0:
            return custody
    raise GateUnavailable("The gate and the ledger do not agree about this round now; try again.")


def _at_rest(tally: Tally) -> Custody:
    return Custody(
        total=tally.total,
        available=tally.total - tally.unpaid - tally.paid - tally.dead,
        queued=0,
        dead=tally.dead,
        unpaid=tally.unpaid,
        paid=tally.paid,
        returning=0,
        next_expiry_ms=tally.next_expiry_ms,
    )


def _combine(tally: Tally, view: GateView) -> Custody:
    return Custody(
        total=view.total,
        available=view.available,
        queued=view.admitted - tally.recorded - tally.dead,
        dead=tally.dead,
        unpaid=tally.unpaid,
        paid=tally.paid,
        returning=tally.ended - view.released,
        next_expiry_ms=tally.next_expiry_ms,
    )
