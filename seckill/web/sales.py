"""Sales: everybody may look, operators may act."""

import hashlib
from datetime import datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill import domain
from seckill.custody import take_custody
from seckill.errors import NotPossible
from seckill.outcomes import Outcome
from seckill.web.body import decode, read_body
from seckill.web.context import Context, context
from seckill.web.problems import Problem, invalid, not_found
from seckill.web.schemas import Custody, NewSale, Sale, SalePatch, Sales, rfc3339, to_ms

MAX_AGE_S = 1
YEARS = (2000, 2999)

_new_sale = msgspec.json.Decoder(NewSale)
_sale_patch = msgspec.json.Decoder(SalePatch)


def view(ctx: Context, sale: domain.Sale) -> Sale:
    now_ms = ctx.catalogue.now_ms()
    return Sale(
        id=ctx.engine.sale_ids.encode(sale.id),
        title=sale.title,
        units=sale.round.total,
        limit_per_buyer=sale.round.limit_per_buyer,
        price_cents=sale.price_cents,
        currency=sale.currency,
        begins_at=rfc3339(sale.round.begins_ms),
        ends_at=rfc3339(sale.round.ends_ms),
        pay_within_s=sale.pay_within_s,
        state=sale.state(now_ms, ctx.catalogue.sold_out(sale)),
        round=str(sale.round.id),
        server_time=rfc3339(now_ms),
    )


async def list_sales(request: Request) -> Response:
    ctx = context(request)
    sales = [view(ctx, sale) for sale in ctx.catalogue.sales()]
    now = rfc3339(ctx.catalogue.now_ms())
    return _cacheable(request, Sales(sales, now), Sales([_timeless(sale) for sale in sales], ""))


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
    return Response(msgspec.json.encode(content), 200, headers, "application/json")


async def _find(request: Request) -> domain.Sale:
    sale = await context(request).catalogue.find(request.path_params["sale_id"])
    if sale is None:
        raise Problem.of(Outcome.UNKNOWN_SALE)
    return sale


async def create_sale(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    new = decode(await read_body(request.receive), _new_sale)
    _check_new(new, ctx.catalogue.now_ms())
    draft = domain.SaleDraft(
        title=new.title,
        units=new.units,
        limit_per_buyer=new.limit_per_buyer,
        price_cents=new.price_cents,
        currency=new.currency,
        begins_ms=to_ms(new.begins_at),
        ends_ms=to_ms(new.ends_at),
        pay_within_s=new.pay_within_s or ctx.settings.pay_within_s,
    )
    sale = await ctx.operator_desk.announce(draft, ctx.catalogue.quietest_lane(ctx.settings.lanes))
    ctx.catalogue.put(sale)
    content = view(ctx, sale)
    headers = {"Location": f"/v1/sales/{content.id}"}
    return Response(msgspec.json.encode(content), 201, headers, "application/json")


def _check_years(**instants: datetime | None) -> None:
    """What every calendar and clock on the way can write down."""
    for field, instant in instants.items():
        if instant is not None and not YEARS[0] <= instant.year <= YEARS[1]:
            raise invalid(field, f"must be in the years {YEARS[0]} to {YEARS[1]}")


def _check_new(new: NewSale, now_ms: int) -> None:
    _check_years(begins_at=new.begins_at, ends_at=new.ends_at)
    if new.ends_at <= new.begins_at:
        raise invalid("ends_at", "must be later than begins_at")
    if to_ms(new.ends_at) <= now_ms:
        raise invalid("ends_at", "is already over")
    if new.repeat is not None:
        raise invalid("repeat", "repeating sales are not available yet; leave it out")
    if new.timezone != "UTC":
        raise invalid("timezone", "is for repeating sales, which are not available yet; leave it out")
    _check_title(new.title)


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
    sale = await _find(request)
    if request.query_params.get("round", str(sale.round.id)) != str(sale.round.id):
        raise not_found()
    taken = await take_custody(sale.round, ctx.engine.gate, ctx.engine.ledger)
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
        next_return_at=None if taken.next_expiry_ms is None else rfc3339(taken.next_expiry_ms),
    )
    return Response(msgspec.json.encode(content), 200, {"Cache-Control": "no-store"}, "application/json")


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
        sale = await ctx.operator_desk.change(known.id, change)
    except NotPossible as error:
        raise Problem(409, "not_possible", str(error)) from None
    if sale is None:
        raise Problem.of(Outcome.UNKNOWN_SALE)
    ctx.catalogue.put(sale)
    return Response(msgspec.json.encode(view(ctx, sale)), 200, media_type="application/json")
