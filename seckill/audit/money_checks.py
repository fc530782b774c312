"""The money: what was taken pays for one order, goes back, or is not decided yet. Never two of these."""

from collections.abc import Sequence

from seckill.audit.database import AnyRow


def wrong_money(row: AnyRow, payments: Sequence[AnyRow]) -> str | None:
    """What is wrong with the payments of an order, if anything. `payments`: those that name it or pay for it."""
    pays = [payment for payment in payments if payment.settles == row.id]
    if row.state == "paid" and row.price_cents:
        if len(pays) != 1:
            return f"is paid, but {len(pays)} payments pay for it"
        if (pays[0].amount_cents, pays[0].currency) != (row.price_cents, row.currency):
            return (
                f"costs {row.price_cents} {row.currency} in minor units, "
                f"but {pays[0].amount_cents} {pays[0].currency} were paid"
            )
    elif pays:
        return f"is {row.state}, but payment {pays[0].id} pays for it"
    named = [payment for payment in payments if payment.order_id == row.id]
    for payment in named:
        fates = (payment.settles is not None, payment.refund_id is not None, payment.next_ms is not None)
        if sum(fates) != 1:
            return f"has payment {payment.id}, which must either pay for an order, go back or wait for a decision"
        if payment.refund_id is not None and payment.refunded_cents != payment.amount_cents:
            return (
                f"has payment {payment.id} of {payment.amount_cents} {payment.currency} in minor units, "
                f"of which {payment.refunded_cents} go back"
            )
    if row.state == "refunded" and not any(payment.refund_id is not None for payment in named):
        return "is refunded, but no money goes back"
    return None
