"""Sales: anyone may look, operators may act."""

import asyncio
import hashlib
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain import sale as domain
from seckill.domain.left_percent import left_percent
from seckill.domain.outcome import Outcome
from seckill.engine.rounds.unit_custody import UnitCustody
from seckill.errors import CodesMissing, ExternalIdTaken, LedgerError, NotOfThatGroup, NotPossible
from seckill.web.context import Context, context
from seckill.web.problems import HttpProblem, invalid
from seckill.web.requests.parameters import ID_DIGITS_MAX, idempotency_key, only, row_id
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import cacheable, json_response
from seckill.web.sales.door_of_sale import audience_shown, door_after
from seckill.web.sales.goods import goods_change
from seckill.web.sales.items import item_changes, item_views
from seckill.web.sales.next_rounds import NEXT_ROUNDS, next_rounds
from seckill.web.sales.sale_checks import (
    check_codes,
    check_early,
    check_order,
    check_title,
    check_uploaded,
    check_window,
    check_years,
    draft_of,
    recurrence_of,
)
from seckill.web.sales.sale_copy import SaleCopy, copied
from seckill.web.sales.sale_list import SaleList, timeless
from seckill.web.schemas import (
    Custody,
    ItemCustody,
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

log = structlog.get_logger()

MAX_AGE_S = 1
VARY = {"Vary": "Authorization, Seckill-Console"}  # operators get another answer from the same address
ROUNDS_MAX = 50  # in one answer
# The gate was not told, because the ledger comes first: otherwise the round would sell again when the two are compared.
NOT_STOPPED = (
    "Nothing was stopped: the database cannot be written to, and buyers are admitted as before. Try again; if it "
    "cannot wait, stop the API processes: that stops payment notices, too, and providers repeat them."
)
ENDED_MAX = 100  # in one answer: the past grows for ever, and every buyer asks for the list

_new_sale = msgspec.json.Decoder(NewSale)
_sale_copy = msgspec.json.Decoder(SaleCopy)
_sale_patch = msgspec.json.Decoder(SalePatch)
_repetition = msgspec.json.Decoder(Repetition)


def view(ctx: Context, sale: domain.Sale, *, whole: bool = True, to_operator: bool = False) -> Sale:
    """`whole`: shows the sale with all fields, rather than as one in a list. An operator is always shown everything."""
    shown = _summary(ctx, sale)
    goods = sale.goods
    if sale.items:
        shown.items = item_views(ctx, sale, to_operator=to_operator)
    if whole or to_operator:
        shown.description = goods.description
        shown.terms_url = goods.terms_url
        shown.delivery = goods.delivery
        shown.return_url = goods.return_url
        shown.audience = audience_shown(sale.door.audience)
        shown.limit_by = sale.limit_by or msgspec.UNSET
    if to_operator:
        shown.published = sale.published
        shown.external_id = goods.external_id
        shown.pass_work = sale.door.work
        shown.limit_group = sale.round.limit_group
        shown.serve_per_s = sale.door.line.serve_per_s
        shown.beacon = sale.door.line.beacon
        shown.list_buyers = sale.list_buyers
        shown.metadata = None if goods.metadata is None else msgspec.json.decode(goods.metadata)
        shown.waits_for_codes = not sale.round.covered
    return shown


def _summary(ctx: Context, sale: domain.Sale) -> Sale:
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
        confirm=sale.confirm,
        state=sale.state(now_ms, ctx.sale_cache.sold_out(sale)),
        round=str(sale.round.id),
        repeat=None if sale.recurrence is None else sale.recurrence.repeat,
        timezone=sale.timezone,
        next_rounds=[rfc3339(begins_ms) for begins_ms in next_rounds(sale)],
        server_time=rfc3339(now_ms),
        images=list(sale.goods.images),
        list_price_cents=sale.goods.list_price_cents,
        pass_=sale.door.pass_kind,
        order=sale.door.line.order,
        waiting_list=sale.door.line.waiting_list,
        lined=sale.round.lined,
        vouchers=sale.vouchers,
        left_percent=_left(ctx, sale),
    )


def _left(ctx: Context, sale: domain.Sale) -> int | None:
    pulse = ctx.sale_cache.pulse(sale.round.id)
    return None if pulse is None else left_percent(pulse.available, sale.round.total)


async def list_sales(request: Request) -> Response:
    ctx = context(request)
    await ctx.sale_cache.look_first()
    if not await ctx.operators.is_operator(request):
        return sale_list(ctx, request.query_params.get("before")).answer.response(request, MAX_AGE_S, VARY)
    only(request, ("before",))
    found, older = listed_sales(ctx, request.query_params.get("before"), hidden_too=True)
    sales = [view(ctx, sale, whole=False, to_operator=True) for sale in found]
    return json_response(Sales(sales, rfc3339(ctx.sale_cache.now_ms()), older))


def sale_list(ctx: Context, before: str | None) -> SaleList:
    """Returns the list as everyone sees it."""

    def make() -> SaleList:
        found, older = listed_sales(ctx, before, hidden_too=False)
        return SaleList([view(ctx, sale, whole=False) for sale in found], older, now_ms)

    now_ms = ctx.sale_cache.now_ms()
    return ctx.sale_lists.of(before, ctx.sale_cache.news, now_ms, make)


def listed_sales(ctx: Context, before: str | None, *, hidden_too: bool) -> tuple[list[domain.Sale], str | None]:
    """Returns the current and coming sales and the last past ones, or those that were over before the given one, sorted
    by window. Also returns the id with which to ask for earlier ones."""
    now_ms = ctx.sale_cache.now_ms()
    going: list[domain.Sale] = []
    over: list[domain.Sale] = []
    for sale in ctx.sale_cache.sales():
        if not (sale.published or hidden_too):
            continue
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
    if await ctx.operators.is_operator(request):
        return json_response(view(ctx, await sale_in_path(request), to_operator=True))
    found = await ctx.sale_cache.find(request.path_params["sale_id"])
    if found is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    sale = view(ctx, found)
    if request.path_params["sale_id"] != sale.id:  # the id was misspelled: caches may only keep one spelling
        return json_response(sale, headers={"Cache-Control": "no-store"})
    # The tag ignores the server's time: an unchanged sale is a 304 although time went on.
    return cacheable(request, sale, MAX_AGE_S, timeless(sale), VARY)


async def sale_in_path(request: Request) -> domain.Sale:
    """Returns the sale, even a hidden one: for operators only."""
    sale = await context(request).sale_cache.find_any(request.path_params["sale_id"])
    if sale is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    return sale


async def create_sale(request: Request) -> Response:
    body = await read_body(request.receive)
    return await _create(request, decode(body, _new_sale), _announce_key(request, body))


async def duplicate_sale(request: Request) -> Response:
    ctx = context(request)
    body = await read_body(request.receive)
    wish: Any = decode(body, _sale_copy)
    check_years(begins_at=wish.begins_at or None)
    known = await sale_in_path(request)
    changes = msgspec.json.decode(body or b"{}")
    shown = view(ctx, known, to_operator=True)
    new = copied(known, shown, changes, wish.begins_at or None, ctx.sale_cache.now_ms())
    key = _announce_key(request, msgspec.json.encode({"copy_of": shown.id, "changes": changes}))
    return await _create(request, decode(msgspec.json.encode(new), _new_sale), key)


async def _create(request: Request, new: NewSale, key: domain.AnnounceKey | None) -> Response:
    ctx = context(request)
    # Asked first: repeating an announcement that was in time is not too late.
    announced = None if key is None else await ctx.operator_desk.announced(key)
    if announced is None:
        announced = await _announce(ctx, await draft_of(ctx, new), key)
    if announced.sale is None:
        raise HttpProblem.of(Outcome.KEY_REUSED)
    ctx.sale_cache.put(announced.sale)  # a repeat may come to a node that does not know the sale yet
    sale_id = ctx.sale_ids.encode(announced.sale.id)
    content = view(ctx, await ctx.sale_cache.find_any(sale_id) or announced.sale, to_operator=True)
    return json_response(content, 201 if announced.new else 200, {"Location": f"/v1/sales/{sale_id}"})


def _announce_key(request: Request, body: bytes) -> domain.AnnounceKey | None:
    """Bodies with the same meaning as JSON count as the same."""
    key = idempotency_key(dict(request.scope["headers"]).get(b"idempotency-key"))
    meaning = msgspec.json.encode(msgspec.json.decode(body or b"{}"), order="sorted")
    return domain.AnnounceKey(_digest(key.encode()), _digest(meaning)) if key else None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=32).hexdigest()


async def _announce(ctx: Context, draft: domain.SaleDraft, key: domain.AnnounceKey | None) -> domain.Announced:
    try:
        with ctx.sale_cache.lane_for_new_round(ctx.settings.lanes, draft.lanes) as lane:
            if key is None:
                announced = domain.Announced(await ctx.operator_desk.announce(draft, lane), new=True)
            else:
                announced = await ctx.operator_desk.announce_once(draft, lane, key)
            if announced.sale is not None:
                ctx.sale_cache.put(announced.sale)
            return announced
    except ExternalIdTaken as error:
        raise _taken(ctx, error) from None
    except NotOfThatGroup as error:
        raise invalid(error.field, error.says) from None


def _taken(ctx: Context, error: ExternalIdTaken) -> HttpProblem:
    return HttpProblem(409, "external_id_taken", str(error), sale_id=ctx.sale_ids.encode(error.sale_id))


async def show_windows(request: Request) -> Response:
    """Shows a sale's windows before it is announced, so that no operator has to trust a cron expression."""
    ctx = context(request)
    wanted = decode(await read_body(request.receive), _repetition)
    check_order(wanted.begins_at, wanted.ends_at)
    recurrence = await asyncio.to_thread(recurrence_of, wanted, wanted.repeat)
    after_ms = max(recurrence.begins_ms - 1, ctx.sale_cache.now_ms() - recurrence.window_ms)
    content = Windows(
        [
            Window(begins_at=rfc3339(begins_ms), ends_at=rfc3339(begins_ms + recurrence.window_ms))
            for begins_ms in islice(recurrence.after(after_ms), NEXT_ROUNDS)
        ]
    )
    return json_response(content)


async def change_sale(request: Request) -> Response:
    ctx = context(request)
    patch = decode(await read_body(request.receive), _sale_patch)
    check_title(patch.title or "")
    known = await sale_in_path(request)
    check_window(patch, known.round)
    door = door_after(patch, known.door, ctx.settings)
    if door is not None:
        await check_early(known.recurrence, door)
    check_codes(patch.limit_per_buyer or 1, gives=known.vouchers)
    goods = goods_change(patch, known.price_cents, ctx.settings.image_hosts)
    items = item_changes(ctx, patch, known, ctx.settings.image_hosts)
    await check_uploaded(ctx, patch.images, [item.image for item in items])
    return await _change(
        request,
        domain.SaleChange(
            title=patch.title,
            add_units=patch.add_units or 0,
            limit_per_buyer=patch.limit_per_buyer,
            cool_down_s=patch.cool_down_s,
            begins_ms=None if patch.begins_at is None else to_ms(patch.begins_at),
            ends_ms=None if patch.ends_at is None else to_ms(patch.ends_at),
            published=patch.published,
            door=door,
            goods=goods,
            items=items,
        ),
    )


async def custody(request: Request) -> Response:
    ctx = context(request)
    sale = await with_round(ctx, await sale_in_path(request), request.query_params.get("round"))
    taken = await ctx.rounds.custody(sale.round)
    if taken is None:
        raise _no_round(str(sale.round.id))
    content = Custody(round=str(sale.round.id), **_units(taken))
    if sale.items:
        content.items = [
            ItemCustody(item_id=ctx.item_ids.of(item.id), title=item.title, **_units(taken.items[item.id]))
            for item in sale.items
            if item.id in taken.items
        ]
    return json_response(content)


def _units(taken: UnitCustody) -> dict[str, Any]:
    return {
        "total": taken.total,
        "available": taken.available,
        "queued": taken.queued,
        "unpaid": taken.unpaid,
        "paid": taken.paid,
        "kept": taken.kept,
        "returning": taken.returning,
        "dead": taken.dead,
        "sold": taken.unpaid + taken.paid + taken.kept,
        "next_return_at": rfc3339_or_none(taken.next_expiry_ms),
        "orders": taken.orders,
        "lapsed": taken.lapsed,
    }


async def with_round(ctx: Context, sale: domain.Sale, text: str | None) -> domain.Sale:
    """Returns the sale with the round that was asked for, as the ledger has it."""
    if text is None:
        return sale
    found = await ctx.rounds.find(sale.id, row_id(text) or 0)
    if found is None:
        raise _no_round(text[:ID_DIGITS_MAX])
    return found


def _no_round(text: str) -> HttpProblem:
    return HttpProblem(404, "not_found", f"This sale has no round {text}.")


async def list_rounds(request: Request) -> Response:
    ctx = context(request)
    sale, asked = await sale_in_path(request), request.query_params
    if "round" in asked:
        found: Sequence[domain.Sale] = [await with_round(ctx, sale, asked["round"])]
    else:
        before = (await with_round(ctx, sale, asked["before"])).round.id if "before" in asked else None
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
    known = await sale_in_path(request)
    try:
        sale = await ctx.operator_desk.change(known, change)
    except ExternalIdTaken as error:
        raise _taken(ctx, error) from None
    except CodesMissing as error:
        raise HttpProblem(422, "codes_missing", str(error), missing=error.missing) from None
    except NotPossible as error:
        raise HttpProblem(409, "not_possible", str(error)) from None
    except LedgerError as error:
        if change.status not in (domain.RoundStatus.PAUSED, domain.RoundStatus.CLOSED):
            raise
        log.error("a sale could not be stopped", sale=known.id, reason=str(error))
        raise HttpProblem(503, "not_ready", NOT_STOPPED) from None
    if sale is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    ctx.sale_cache.put(sale)
    return json_response(view(ctx, sale, to_operator=True), headers={})
