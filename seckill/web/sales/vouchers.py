"""Codes for operators: uploaded, counted, looked up, redeemed."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain import voucher as domain
from seckill.domain.item import NO_ITEM
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Sale
from seckill.domain.voucher import CodeCount, Pool, VoucherState, fault_in
from seckill.engine.vouchers import CodesClash, NoCodes
from seckill.errors import UploadGivenUp
from seckill.ports.vouchers import Clash, ClashKind, RedeemOutcome
from seckill.web.context import Context, context
from seckill.web.problems import HttpProblem, bad_lines, invalid
from seckill.web.requests.uploaded_lines import BadLine
from seckill.web.requests.uploads import VOUCHERS, pieces, take_rest
from seckill.web.responses import json_response
from seckill.web.sales.items import unknown_item
from seckill.web.sales.upload_schemas import ItemCodes, VoucherCounts, VouchersAdded
from seckill.web.sales.voucher_file import portions
from seckill.web.schemas import Voucher, rfc3339_or_none

_REFUSED = {
    RedeemOutcome.NOT_GIVEN: ("voucher_not_given", "No buyer has this code: it is still in the pool."),
    RedeemOutcome.REDEEMED: ("voucher_redeemed", "This code has been redeemed before."),
    RedeemOutcome.VOID: ("voucher_void", "This code is void: its order was refunded."),
}


async def upload_vouchers(request: Request) -> Response:
    ctx = context(request)
    _check_media_type(request)
    sale = await _sale(request, ctx)
    item = _item(request, ctx, sale)
    body = pieces(request.receive, VOUCHERS)
    try:
        added = await ctx.vouchers.upload(sale, item, portions(body))
    except BadLine as error:
        await take_rest(body)
        raise bad_lines([(error.line, error.why)]) from None
    except CodesClash as error:
        await take_rest(body)
        raise bad_lines([(clash.line, _words(clash)) for clash in error.clashes]) from None
    except NoCodes:
        raise invalid("body", "has no codes: one on each line") from None
    except UploadGivenUp as error:
        raise HttpProblem(409, "upload_given_up", str(error)) from None
    return json_response(VouchersAdded(added=added, **_counts(ctx, sale, await ctx.vouchers.pool(sale))))


def _check_media_type(request: Request) -> None:
    kind = request.headers.get("content-type", "text/csv").partition(";")[0].strip().lower()
    if kind != "text/csv":
        raise invalid("Content-Type", "must be text/csv")


async def _sale(request: Request, ctx: Context) -> Sale:
    sale = await ctx.sale_cache.find_any(request.path_params["sale_id"])
    if sale is None:
        raise HttpProblem.of(Outcome.UNKNOWN_SALE)
    if not sale.vouchers:
        raise HttpProblem(409, "no_vouchers", "This sale gives no codes: announce one with `vouchers: true`.")
    return sale


def _item(request: Request, ctx: Context, sale: Sale) -> int:
    """Returns the only item that the codes are for."""
    item_id = request.query_params.get("item_id")
    if item_id is None:
        return NO_ITEM
    number = ctx.item_ids.number(item_id)
    if number is None or sale.item(number) is None:
        raise unknown_item("item_id")
    return number


def _words(clash: Clash) -> str:
    if clash.kind is ClashKind.SAME_UPLOAD:
        return f"has the same code as line {clash.earlier}"
    if clash.kind is ClashKind.POOL:
        return "has a code that was uploaded before"
    return "has a code that is being uploaded elsewhere at the same time"


async def count_vouchers(request: Request) -> Response:
    ctx = context(request)
    sale = await _sale(request, ctx)
    return json_response(VoucherCounts(**_counts(ctx, sale, await ctx.vouchers.pool(sale))))


def _counts(ctx: Context, sale: Sale, pool: Pool) -> dict[str, Any]:
    by_item = [(item, pool.by_item.get(item.id, CodeCount(0, 0))) for item in sale.items]
    items = [
        ItemCodes(item_id=ctx.item_ids.of(item.id), title=item.title, free=own.free, needed=own.needed)
        for item, own in by_item
    ]
    return {
        "codes": pool.codes,
        "free": pool.free,
        "given": pool.given,
        "redeemed": pool.redeemed,
        "void": pool.void,
        "missing": pool.missing,
        "items": items or UNSET,
    }


async def show_voucher(request: Request) -> Response:
    ctx = context(request)
    code = _code(request)
    found = await ctx.vouchers.find(code)
    if found is None:
        raise _unknown()
    return json_response(voucher_view(ctx, found))


async def redeem_voucher(request: Request) -> Response:
    ctx = context(request)
    redeemed = await ctx.vouchers.redeem(_code(request))
    if redeemed.voucher is None:
        raise _unknown()
    shown = voucher_view(ctx, redeemed.voucher)
    if redeemed.outcome in _REFUSED:
        code, sentence = _REFUSED[redeemed.outcome]
        raise HttpProblem(409, code, sentence, voucher=shown)
    return json_response(shown)


def _code(request: Request) -> str:
    code: str = request.path_params["code"]
    if fault_in(code) is not None:
        raise _unknown()
    return code


def _unknown() -> HttpProblem:
    return HttpProblem(404, "unknown_voucher", "There is no such code.")


def voucher_view(ctx: Context, voucher: domain.Voucher) -> Voucher:
    return Voucher(
        id=str(voucher.id),
        code=voucher.code,
        state=voucher.state,
        sale_id=ctx.sale_ids.encode(voucher.sale_id),
        order_id=None if voucher.number is None else ctx.order_ids.encode(int(voucher.number)),
        buyer=voucher.user,
        given_at=rfc3339_or_none(voucher.given_ms),
        shown_at=rfc3339_or_none(voucher.shown_ms),
        redeemed_at=rfc3339_or_none(voucher.redeemed_ms),
        void_at=rfc3339_or_none(voucher.void_ms),
    )


def codes(vouchers: Sequence[domain.Voucher]) -> list[str]:
    """Returns the codes that belong to the buyer."""
    return [each.code for each in vouchers if each.state is not VoucherState.VOID]
