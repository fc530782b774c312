"""Sales: anyone may look, operators may act."""

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain import sale as domain
from seckill.domain.money import DECIMALS
from seckill.domain.outcome import Outcome
from seckill.domain.recurrence import BadRecurrence, Recurrence
from seckill.errors import NotPossible
from seckill.web.context import Context, context
from seckill.web.parameters import ID_DIGITS_MAX, row_id
from seckill.web.problems import HttpProblem, invalid, not_found
from seckill.web.request_body import decode, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import (
    Custody,
    NewSale,
    Repetition,
    Sale,
    SalePatch,
    SaleRound,
    SaleRounds,
    Sales,
    Window,
    Windows,
    rfc3339,
    rfc3339_or_none,
    to_ms,
)

MAX_AGE_S = 1
YEARS = (2000, 2999)
NEXT_ROUNDS = 5
ROUNDS_MAX = 50  # in one answer
ENDED_MAX = 100  # in one answer: the past grows for ever, and every buyer asks for the list

_new_sale = msgspec.json.Decoder(NewSale)
_sale_patch = msgspec.json.Decoder(SalePatch)
_repetition = msgspec.json.Decoder(Repetition)


def view(ctx: Context, sale: domain.Sale) -> Sale:
    now_ms = ctx.sale_cache.now_ms()
    return Sale(
        id=ctx.sale_ids.encode(sale.id),
        title=sale.title,
        units=sale.round.total,
        limit_per_buyer=sale.round.limit_per_buyer,
        price_cents=sale.price_cents,
        currency=sale.currency,
        begins_at=rfc3339(sale.round.begins_ms),
        ends_at=rfc3339(sale.round.ends_ms),
        pay_within_s=sale.pay_within_s,
        cool_down_s=sale.round.cool_down_s,
        lanes=sale.round.lanes,
        state=sale.state(now_ms, ctx.sale_cache.sold_out(sale)),
        round=str(sale.round.id),
        repeat=None if sale.recurrence is None else sale.recurrence.repeat,
        timezone="UTC" if sale.recurrence is None else sale.recurrence.timezone,
        next_rounds=[rfc3339(begins_ms) for begins_ms in _next_rounds(sale)],
        server_time=rfc3339(now_ms),
    )


def _next_rounds(sale: domain.Sale) -> Sequence[int]:
    if sale.recurrence is None or sale.round.status is domain.RoundStatus.CLOSED:
        return ()
    return _begins_after(sale.recurrence, max(sale.round.scheduled_ms, sale.round.ends_ms - 1))


@lru_cache(maxsize=10_000)
def _begins_after(recurrence: Recurrence, after_ms: int) -> Sequence[int]:
    """Remembered, because every buyer looks at sales, and they change once in a round."""
    try:
        return tuple(islice(recurrence.after(after_ms), NEXT_ROUNDS))
    except BadRecurrence:  # a zone that another machine knew when the sale was announced
        return ()


async def list_sales(request: Request) -> Response:
    ctx = context(request)
    listed, older = _listed(ctx, request.query_params.get("before"))
    sales = [view(ctx, sale) for sale in listed]
    now = rfc3339(ctx.sale_cache.now_ms())
    return _cacheable(request, Sales(sales, now, older), Sales([_timeless(sale) for sale in sales], "", older))


def _listed(ctx: Context, before: str | None) -> tuple[list[domain.Sale], str | None]:
    """What is on or to come and the last that are over, or those that were over before that one; by their windows.
    Also the id with which to ask for earlier ones."""
    now_ms = ctx.sale_cache.now_ms()
    going: list[domain.Sale] = []
    over: list[domain.Sale] = []
    for sale in ctx.sale_cache.sales():
        (over if sale.state(now_ms, sold_out=False) == "ended" else going).append(sale)
    if before is not None:
        places = [place for place, sale in enumerate(over) if ctx.sale_cache.public_id(sale) == before]
        if not places:
            raise invalid("before", "is not one that this list gave")
        going, over = [], over[: places[0]]
    shown = over[-ENDED_MAX:]
    return shown + going, ctx.sale_cache.public_id(shown[0]) if len(shown) < len(over) else None


async def show_sale(request: Request) -> Response:
    ctx = context(request)
    sale = view(ctx, await _find(request))
    return _cacheable(request, sale, _timeless(sale))


def _timeless(sale: Sale) -> Sale:
    return msgspec.structs.replace(sale, server_time="")


def _cacheable(request: Request, content: msgspec.Struct, timeless: msgspec.Struct) -> Response:
    """The tag leaves the server's time out: a sale that did not change is a 304 although time went on."""
    digest = hashlib.blake2b(msgspec.json.encode(timeless), digest_size=12).hexdigest()
    headers = {"ETag": f'W/"{digest}"', "Cache-Control": f"public, max-age={MAX_AGE_S}"}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return json_response(content, headers=headers)


async def _find(request: Request) -> domain.Sale:
    sale = await context(request).sale_cache.find(request.path_params["sale_id"])
    if sale is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    return sale


async def create_sale(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    new = decode(await read_body(request.receive), _new_sale)
    now_ms = ctx.sale_cache.now_ms()
    _check_new(new, now_ms)
    if new.currency not in DECIMALS:
        raise invalid("currency", f"{new.currency} is no currency of ISO 4217")
    if new.lanes > ctx.settings.lanes:
        raise invalid("lanes", f"must be at most {ctx.settings.lanes}, as SECKILL_LANES says")
    recurrence = None if new.repeat is None else await asyncio.to_thread(_recurrence, new, new.repeat)
    begins_ms, ends_ms = _first_window(new, recurrence, now_ms)
    draft = domain.SaleDraft(
        title=new.title,
        units=new.units,
        limit_per_buyer=new.limit_per_buyer,
        price_cents=new.price_cents,
        currency=new.currency,
        begins_ms=begins_ms,
        ends_ms=ends_ms,
        pay_within_s=new.pay_within_s or ctx.settings.pay_within_s,
        recurrence=recurrence,
        lanes=new.lanes,
        cool_down_s=ctx.settings.cool_down_s if new.cool_down_s is None else new.cool_down_s,
    )
    lane = ctx.sale_cache.quietest_lane(ctx.settings.lanes, new.lanes)
    sale = await ctx.operator_desk.announce(draft, lane)
    ctx.sale_cache.put(sale)
    content = view(ctx, sale)
    return json_response(content, 201, {"Location": f"/v1/sales/{content.id}"})


def _check_years(**instants: datetime | None) -> None:
    """What every calendar and clock on the way can write down."""
    for field, instant in instants.items():
        if instant is not None and not YEARS[0] <= instant.year <= YEARS[1]:
            raise invalid(field, f"must be in the years {YEARS[0]} to {YEARS[1]}")


def _check_new(new: NewSale, now_ms: int) -> None:
    _check_years(begins_at=new.begins_at, ends_at=new.ends_at)
    if new.ends_at <= new.begins_at:
        raise invalid("ends_at", "must be later than begins_at")
    if new.repeat is None and to_ms(new.ends_at) <= now_ms:
        raise invalid("ends_at", "is already over")
    if new.repeat is None and new.timezone != "UTC":
        raise invalid("timezone", "is for sales that repeat; leave it out, and write the offset into begins_at")
    _check_title(new.title)


async def show_windows(request: Request) -> Response:
    """Before it is announced, so that no operator has to trust in cron."""
    ctx = context(request)
    ctx.require_operator(request)
    wanted = decode(await read_body(request.receive), _repetition)
    _check_years(begins_at=wanted.begins_at, ends_at=wanted.ends_at)
    if wanted.ends_at <= wanted.begins_at:
        raise invalid("ends_at", "must be later than begins_at")
    recurrence = await asyncio.to_thread(_recurrence, wanted, wanted.repeat)
    after_ms = max(recurrence.begins_ms - 1, ctx.sale_cache.now_ms() - recurrence.window_ms)
    content = Windows(
        [
            Window(begins_at=rfc3339(begins_ms), ends_at=rfc3339(begins_ms + recurrence.window_ms))
            for begins_ms in islice(recurrence.after(after_ms), NEXT_ROUNDS)
        ]
    )
    return json_response(content)


def _recurrence(new: NewSale | Repetition, repeat: str) -> Recurrence:
    """Looks at years of windows, which takes a moment."""
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
    """Of a sale that repeats: the first that is not over. It may have been announced long ago elsewhere."""
    if recurrence is None:
        return to_ms(new.begins_at), to_ms(new.ends_at)
    begins_ms = recurrence.next_not_over(recurrence.begins_ms - 1, now_ms)
    if begins_ms is None:
        raise invalid("repeat", "does not come any more")
    return begins_ms, begins_ms + recurrence.window_ms


def _check_title(title: str) -> None:
    if not title.isprintable():
        raise invalid("title", "must be one line of text")


async def change_sale(request: Request) -> Response:
    context(request).require_operator(request)
    patch = decode(await read_body(request.receive), _sale_patch)
    _check_title(patch.title or "")
    _check_window(patch, (await _find(request)).round)
    return await _change(
        request,
        domain.SaleChange(
            title=patch.title,
            add_units=patch.add_units or 0,
            limit_per_buyer=patch.limit_per_buyer,
            cool_down_s=patch.cool_down_s,
            begins_ms=None if patch.begins_at is None else to_ms(patch.begins_at),
            ends_ms=None if patch.ends_at is None else to_ms(patch.ends_at),
        ),
    )


def _check_window(patch: SalePatch, round_: domain.Round) -> None:
    _check_years(begins_at=patch.begins_at, ends_at=patch.ends_at)
    begins_ms = round_.begins_ms if patch.begins_at is None else to_ms(patch.begins_at)
    ends_ms = round_.ends_ms if patch.ends_at is None else to_ms(patch.ends_at)
    if ends_ms <= begins_ms:
        raise invalid("begins_at" if patch.ends_at is None else "ends_at", "a sale must end after it begins")


async def custody(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    sale = await _with_round(ctx, await _find(request), request.query_params.get("round"))
    taken = await ctx.rounds.custody(sale.round)
    if taken is None:
        raise not_found()
    content = Custody(
        round=str(sale.round.id),
        total=taken.total,
        available=taken.available,
        queued=taken.queued,
        unpaid=taken.unpaid,
        paid=taken.paid,
        returning=taken.returning,
        dead=taken.dead,
        sold=taken.unpaid + taken.paid,
        next_return_at=rfc3339_or_none(taken.next_expiry_ms),
        orders=taken.orders,
        lapsed=taken.lapsed,
    )
    return json_response(content)


async def _with_round(ctx: Context, sale: domain.Sale, text: str | None) -> domain.Sale:
    """The sale with the round that was asked for, as the ledger has it."""
    if text is None:
        return sale
    found = await ctx.rounds.find(sale.id, row_id(text) or 0)
    if found is None:
        raise HttpProblem(404, "not_found", f"This sale has no round {text[:ID_DIGITS_MAX]}.")
    return found


async def list_rounds(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    sale, asked = await _find(request), request.query_params
    if "round" in asked:
        found: Sequence[domain.Sale] = [await _with_round(ctx, sale, asked["round"])]
    else:
        before = (await _with_round(ctx, sale, asked["before"])).round.id if "before" in asked else None
        found = await ctx.rounds.newest(sale.id, before, ROUNDS_MAX)
    content = SaleRounds(rounds=[_round(ctx, each) for each in found])
    return json_response(content)


def _round(ctx: Context, sale: domain.Sale) -> SaleRound:
    return SaleRound(
        round=str(sale.round.id),
        units=sale.round.total,
        limit_per_buyer=sale.round.limit_per_buyer,
        cool_down_s=sale.round.cool_down_s,
        begins_at=rfc3339(sale.round.begins_ms),
        ends_at=rfc3339(sale.round.ends_ms),
        state=sale.state(ctx.sale_cache.now_ms(), ctx.sale_cache.sold_out(sale)),
    )


async def pause_sale(request: Request) -> Response:
    return await _change(request, domain.SaleChange(status=domain.RoundStatus.PAUSED))


async def resume_sale(request: Request) -> Response:
    return await _change(request, domain.SaleChange(status=domain.RoundStatus.OPEN))


async def close_sale(request: Request) -> Response:
    return await _change(request, domain.SaleChange(status=domain.RoundStatus.CLOSED))


async def _change(request: Request, change: domain.SaleChange) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    known = await _find(request)
    try:
        sale = await ctx.operator_desk.change(known, change)
    except NotPossible as error:
        raise HttpProblem(409, "not_possible", str(error)) from None
    if sale is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    ctx.sale_cache.put(sale)
    return json_response(view(ctx, sale), headers={})
