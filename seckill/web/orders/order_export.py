"""Exports orders for operators: as CSV or as lines of JSON, portion by portion."""

import csv
import io
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from seckill.domain.order import Order
from seckill.engine.orders.buyer_orders import recorded
from seckill.ports.record import acting, acting_as
from seckill.web import schemas
from seckill.web.context import Context, context
from seckill.web.orders import buyer_orders
from seckill.web.orders.order_list import asks_for_codes, cursor_in, know_items, orders_page, orders_wanted
from seckill.web.requests.parameters import page_size
from seckill.web.responses import NO_STORE

# How many rows of an export are in memory at a time.
PORTION = 1000
# In a portion that was asked for with `limit`, this header says what to give as `after`.
NEXT_HEADER = "Seckill-Next"
# A spreadsheet takes a cell that begins like this for a formula; some do so even for the full-width form of the
# character.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


class _Lines(Protocol):
    def written(self, rows: Sequence[schemas.ExportedOrder]) -> bytes: ...


class _CsvLines:
    """The names of the columns come before the first row, unless the export continues after an earlier portion."""

    def __init__(self, with_names: bool) -> None:
        self._names = [schemas.ExportedOrder.__struct_fields__] if with_names else []

    def written(self, rows: Sequence[schemas.ExportedOrder]) -> bytes:
        text = io.StringIO(newline="")
        lines = csv.writer(text)
        lines.writerows(self._names)
        lines.writerows([_cell(value) for value in msgspec.structs.astuple(row)] for row in rows)
        self._names = []
        return text.getvalue().encode()


class _JsonLines:
    def written(self, rows: Sequence[schemas.ExportedOrder]) -> bytes:
        return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, dict):  # the shop's metadata of the claim
        return msgspec.json.encode(value).decode()
    if isinstance(value, list):  # codes, or numbers of payments
        value = " ".join(value)
    text = "" if value is None or value is msgspec.UNSET else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


async def export_csv(request: Request) -> Response:
    return await _export(request, "csv", "text/csv", _CsvLines("after" not in request.query_params))


async def export_jsonl(request: Request) -> Response:
    return await _export(request, "jsonl", "application/jsonl", _JsonLines())


async def _export(request: Request, suffix: str, media_type: str, lines: _Lines) -> Response:
    """Exports all orders in portions, or a single portion of `limit` orders."""
    ctx = context(request)
    with_codes = asks_for_codes(request)
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="orders.{suffix}"'}
    if "limit" in request.query_params:
        page, next_ = await orders_page(request, ctx, page_size(request, PORTION))
        headers |= {} if next_ is None else {NEXT_HEADER: next_}
        return Response(lines.written(await _exported(ctx, page, with_codes)), 200, headers, media_type)
    wanted, after = await orders_wanted(request, ctx), cursor_in(request, ctx)
    first = await ctx.search.page(wanted, after, PORTION)  # before the status is sent: now it can still be an error
    operator = acting()  # who is no longer noted while the portions are streamed

    async def portions() -> AsyncIterator[bytes]:
        page = first
        while True:
            with acting_as(operator):
                exported = await _exported(ctx, page, with_codes)
            yield lines.written(exported)
            if len(page) < PORTION:
                return
            page = await ctx.search.page(wanted, page[-1].number, PORTION)

    return StreamingResponse(portions(), 200, headers, media_type)


async def _exported(ctx: Context, page: Sequence[Order], with_codes: bool) -> list[schemas.ExportedOrder]:
    await know_items(ctx, page)
    views = [recorded(order) for order in page]
    shown = (
        await buyer_orders.views(ctx, views, to_operator=True)
        if with_codes
        else [buyer_orders.view(ctx, each, to_operator=True) for each in views]
    )
    exported = [buyer_orders.with_buyer(each, order.user) for each, order in zip(shown, page, strict=True)]
    paid = await ctx.search.payment_ids([order.number for order in page])
    for each, order in zip(exported, page, strict=True):
        each.payment_ids = list(paid.get(order.number, ()))
    return exported
