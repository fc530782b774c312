"""Drafts, admissions and reads for the tests of the ledger."""

import time

from seckill.domain.admission import Admission
from seckill.domain.door import OPEN_DOOR, Door
from seckill.domain.item import NO_ITEM, ItemDraft
from seckill.domain.order_number import OrderNumber
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import Round, SaleDraft

HOUR_MS = 3_600_000


def draft(
    *,
    title: str = "Socks",
    units: int = 100,
    limit_per_buyer: int = 1,
    price_cents: int = 500,
    begins_ms: int | None = None,
    ends_ms: int | None = None,
    pay_within_s: int = 900,
    recurrence: Recurrence | None = None,
    cool_down_s: int = 0,
    door: Door = OPEN_DOOR,
    vouchers: bool = False,
    items: tuple[ItemDraft, ...] = (),
) -> SaleDraft:
    """A sale that began an hour ago."""
    begins_ms = int(time.time() * 1000) - HOUR_MS if begins_ms is None else begins_ms
    return SaleDraft(
        title=title,
        units=sum(item.units for item in items) or units,
        limit_per_buyer=limit_per_buyer,
        price_cents=price_cents,
        currency="CNY",
        begins_ms=begins_ms,
        ends_ms=begins_ms + 24 * HOUR_MS if ends_ms is None else ends_ms,
        pay_within_s=pay_within_s,
        recurrence=recurrence,
        cool_down_s=cool_down_s,
        door=door,
        vouchers=vouchers,
        items=items,
    )


def admission(
    round_: Round,
    counter: int,
    *,
    user: str | None = None,
    quantity: int = 1,
    slot: int = 1,
    request_id: str = "",
    epoch: int | None = None,
    round_id: int | None = None,
    item: int = NO_ITEM,
) -> Admission:
    """The order with that counter; the same counter gives the same order number."""
    return Admission(
        number=number(round_, counter),
        round_id=round_.id if round_id is None else round_id,
        epoch=round_.epoch if epoch is None else epoch,
        user=f"buyer-{counter}" if user is None else user,
        quantity=quantity,
        slot=slot,
        request_id=request_id,
        admitted_ms=round_.begins_ms + counter,
        item=item,
    )


def number(round_: Round, counter: int) -> OrderNumber:
    return OrderNumber.mint(round_.begins_ms, round_.lane, counter)
