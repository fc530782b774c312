"""Checks what an operator announces or changes, as far as that is possible without the ledger, and makes the draft."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import msgspec

from seckill.domain import sale as domain
from seckill.domain.door import Door
from seckill.domain.money import DECIMALS
from seckill.domain.recurrence import BadRecurrence, Recurrence, zone_of
from seckill.domain.voucher import CODES_PER_BUYER_MAX
from seckill.web.context import Context
from seckill.web.problems import invalid
from seckill.web.sales.door_of_sale import check_shared_limit, door_of
from seckill.web.sales.goods import goods_of, uploaded_in
from seckill.web.sales.items import check_worth, item_drafts, price_of, units_of
from seckill.web.sales.line_of_sale import check_time_of_draw
from seckill.web.schemas import NewSale, Repetition, SalePatch, to_ms

YEARS = (2000, 2999)


async def draft_of(ctx: Context, new: NewSale) -> domain.SaleDraft:
    now_ms = ctx.sale_cache.now_ms()
    _check_new(new, now_ms)
    if new.currency not in DECIMALS:
        raise invalid("currency", f"{new.currency} is no currency of ISO 4217")
    taken = ctx.checkouts.currencies
    costs = new.price_cents or any(item.price_cents for item in new.items or ())
    if costs and taken is not None and new.currency not in taken:
        raise invalid("currency", f"must be {' or '.join(sorted(taken))}: {ctx.provider.name} takes nothing else")
    if new.lanes > ctx.settings.lanes:
        raise invalid("lanes", f"must be at most {ctx.settings.lanes}, as SECKILL_LANES says")
    check_shared_limit(new)
    door = door_of(new, ctx.settings)
    recurrence = await asyncio.to_thread(_recurrence_if_any, new)
    await check_early(recurrence, door)
    begins_ms, ends_ms = _first_window(new, recurrence, now_ms)
    check_time_of_draw(door.line, begins_ms, now_ms)
    items = item_drafts(new, ctx.settings.image_hosts)
    price_cents = min([item.price_cents for item in items] or [price_of(new)])
    units = units_of(new, items)
    check_worth(price_cents, units, items)
    goods = goods_of(new, price_cents, ctx.settings.image_hosts)
    await check_uploaded(ctx, new.images, [item.image for item in items])
    return domain.SaleDraft(
        title=new.title,
        units=units,
        limit_per_buyer=new.limit_per_buyer,
        price_cents=price_cents,
        currency=new.currency,
        begins_ms=begins_ms,
        ends_ms=ends_ms,
        pay_within_s=new.pay_within_s or ctx.settings.pay_within_s,
        recurrence=recurrence,
        timezone=new.timezone,
        lanes=new.lanes,
        cool_down_s=ctx.settings.cool_down_s if new.cool_down_s is None else new.cool_down_s,
        confirm=domain.Confirm(new.confirm),
        published=new.published,
        goods=goods,
        door=door,
        items=items,
        vouchers=new.vouchers,
        limit_by=None if new.limit_by == "sub" else new.limit_by,
        limit_group=new.limit_group,
    )


async def check_early(recurrence: Recurrence | None, door: Door) -> None:
    """Early buyers must not get into the round before."""
    early_ms = 1000 * door.audience.early_s_max
    if recurrence is None or not early_ms:
        return
    try:
        await asyncio.to_thread(replace(recurrence, window_ms=recurrence.window_ms + early_ms).check)
    except BadRecurrence:
        raise invalid("audience.early", "begins before the round before is over") from None


async def check_uploaded(
    ctx: Context, images: Sequence[str] | msgspec.UnsetType | None, of_items: Sequence[str | None]
) -> None:
    uploaded = uploaded_in([] if images is msgspec.UNSET or images is None else images, of_items)
    for digest in sorted(await ctx.pictures.missing(list(uploaded))):
        raise invalid(uploaded[digest], "is not there: upload the picture again")


def check_years(**instants: datetime | None) -> None:
    """Only allows years that every calendar and clock on the way can represent."""
    for field, instant in instants.items():
        if instant is not None and not YEARS[0] <= instant.year <= YEARS[1]:
            raise invalid(field, f"must be in the years {YEARS[0]} to {YEARS[1]}")


def check_order(begins_at: datetime, ends_at: datetime) -> None:
    """Compares in milliseconds: anything shorter is not a window."""
    check_years(begins_at=begins_at, ends_at=ends_at)
    if to_ms(ends_at) <= to_ms(begins_at):
        raise invalid("ends_at", "must be later than begins_at")


def _check_new(new: NewSale, now_ms: int) -> None:
    check_order(new.begins_at, new.ends_at)
    if new.repeat is None and to_ms(new.ends_at) <= now_ms:
        raise invalid("ends_at", "is already over")
    check_title(new.title)
    check_codes(new.limit_per_buyer, gives=new.vouchers)


def check_codes(limit_per_buyer: int, *, gives: bool) -> None:
    if gives and limit_per_buyer > CODES_PER_BUYER_MAX:
        raise invalid("limit_per_buyer", f"must be at most {CODES_PER_BUYER_MAX} in a sale that gives codes")


def _recurrence_if_any(new: NewSale) -> Recurrence | None:
    if new.repeat is not None:
        return recurrence_of(new, new.repeat)
    try:
        zone_of(new.timezone)
    except BadRecurrence as error:
        raise invalid(error.field, str(error)) from None
    return None


def recurrence_of(new: NewSale | Repetition, repeat: str) -> Recurrence:
    """Checks the recurrence over years of windows, which takes a moment."""
    begins_ms = to_ms(new.begins_at)
    recurrence = Recurrence(
        repeat=" ".join(repeat.split()),
        timezone=new.timezone,
        begins_ms=begins_ms,
        window_ms=to_ms(new.ends_at) - begins_ms,
    )
    try:
        recurrence.check()
    except BadRecurrence as error:
        raise invalid(error.field, str(error)) from None
    return recurrence


def _first_window(new: NewSale, recurrence: Recurrence | None, now_ms: int) -> tuple[int, int]:
    """For a repeating sale, returns the first window that is not over: the sale may have been announced long ago
    elsewhere."""
    if recurrence is None:
        return to_ms(new.begins_at), to_ms(new.ends_at)
    begins_ms = recurrence.next_not_over(recurrence.begins_ms - 1, now_ms)
    if begins_ms is None:
        raise invalid("repeat", "does not come any more")
    return begins_ms, begins_ms + recurrence.window_ms


def check_title(title: str) -> None:
    if not title.isprintable():
        raise invalid("title", "must be one line of text")


def check_window(patch: SalePatch, round_: domain.Round) -> None:
    check_years(begins_at=patch.begins_at, ends_at=patch.ends_at)
    begins_ms = round_.begins_ms if patch.begins_at is None else to_ms(patch.begins_at)
    ends_ms = round_.ends_ms if patch.ends_at is None else to_ms(patch.ends_at)
    if ends_ms <= begins_ms:
        raise invalid("begins_at" if patch.ends_at is None else "ends_at", "a sale must end after it begins")
