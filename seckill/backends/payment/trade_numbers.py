"""Names payments at providers that let the shop choose the name. The name contains the order and the kind of page,
because these providers treat a page for phones and one for desktops as two payments."""

import re

from seckill.errors import NotUnderstood

_FORM = re.compile(r"([0-9A-Z]{1,26})_[dp]")


def trade_number(order_id: str, *, on_phone: bool) -> str:
    return f"{order_id}_{'p' if on_phone else 'd'}"


def order_in(number: str) -> str | None:
    """Returns None if we did not give this name: others may sell through the same account."""
    found = _FORM.fullmatch(number)
    return found[1] if found else None


def refund_number(order_id: str, refund_id: int) -> str:
    return f"{order_id}_r{refund_id}"


def fen(yuan: str) -> int:
    """Converts exactly: 0.29 is 29, although a float says otherwise. Raises NotUnderstood."""
    found = re.fullmatch(r"([0-9]{1,12})(?:\.([0-9]{1,2}))?", yuan)
    if found is None:
        raise NotUnderstood(f"{yuan!r} is no amount in yuan")
    return int(found[1]) * 100 + int((found[2] or "").ljust(2, "0"))


def yuan(fen_: int) -> str:
    return f"{fen_ // 100}.{fen_ % 100:02}"
