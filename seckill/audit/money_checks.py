"""Checks of money: a payment pays one order, is refunded, or is not decided yet. Money that has paid an order may be
refunded as well, in parts, and then the order says how much."""

from collections.abc import Sequence

from seckill.audit.database import AnyRow


def wrong_money(row: AnyRow, payments: Sequence[AnyRow]) -> str | None:
    """Returns what is wrong with an order's payments, if anything. `payments`: those that name the order or pay it."""
    pays = [payment for payment in payments if payment.settles == row.id]
    named = [payment for payment in payments if payment.order_id == row.id]
    return _wrong_price(row, pays) or _wrong_fate(named) or _wrong_refund(row, pays, named)


def _wrong_price(row: AnyRow, pays: Sequence[AnyRow]) -> str | None:
    was_paid = row.state in ("paid", "refunded") and row.paid_ms is not None
    if was_paid and row.price_cents:
        if len(pays) != 1:
            return f"is {row.state}, but {len(pays)} payments pay for it"
        if (pays[0].amount_cents, pays[0].currency) != (row.price_cents, row.currency):
            return (
                f"costs {row.price_cents} {row.currency} in minor units, "
                f"but {pays[0].amount_cents} {pays[0].currency} were paid"
            )
    elif pays:
        return f"is {row.state}, but payment {pays[0].id} pays for it"
    return None


def _wrong_fate(named: Sequence[AnyRow]) -> str | None:
    for payment in named:
        fates = (payment.settles is not None, payment.next_ms is not None)
        goes_back = payment.back_cents is not None and payment.settles is None
        if sum((*fates, goes_back)) != 1:
            return f"has payment {payment.id}, which must either pay for an order, go back or wait for a decision"
        if goes_back and payment.back_cents != payment.amount_cents:
            return (
                f"has payment {payment.id} of {payment.amount_cents} {payment.currency} in minor units, "
                f"of which {payment.back_cents} go back"
            )
    return None


def _wrong_refund(row: AnyRow, pays: Sequence[AnyRow], named: Sequence[AnyRow]) -> str | None:
    back = sum(int(payment.back_cents or 0) for payment in pays)
    if pays and back != row.refunded_cents:
        return f"is refunded {row.refunded_cents} {row.currency} in minor units, but {back} of its payment go back"
    if row.state == "refunded":
        if row.refunded_cents != row.price_cents:
            return f"is refunded, but only {row.refunded_cents} of {row.price_cents} {row.currency} in minor units"
        if not pays and row.price_cents and not any(payment.back_cents is not None for payment in named):
            return "is refunded, but no money goes back"
    elif row.refunded_cents and not (row.state == "paid" and 0 < row.refunded_cents < row.price_cents):
        return f"is {row.state}, but {row.refunded_cents} {row.currency} of it in minor units are refunded"
    return None
