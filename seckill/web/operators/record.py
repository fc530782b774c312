"""`GET /v1/admin/record`: who has changed what, when and why."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from seckill.ports.record import Facts, RecordFilter
from seckill.ports.record import RecordEntry as Known
from seckill.web.context import Context, context
from seckill.web.operators.access_schemas import Record, RecordEntry
from seckill.web.problems import invalid
from seckill.web.requests.parameters import instant, known_sale, page_size, row_id
from seckill.web.responses import json_response
from seckill.web.schemas import rfc3339, rfc3339_or_none

ENTRIES_MAX = 1000
_SALES = ("sale", "audience")  # entries about these concern a sale


async def show_record(request: Request) -> Response:
    ctx = context(request)
    query = request.query_params
    before = None
    if (after := query.get("after")) is not None and (before := row_id(after)) is None:
        raise invalid("after", "is not one that this list gave")
    wanted = RecordFilter(
        who=query.get("who"),
        what=query.get("what"),
        sale_id=await known_sale(ctx, request),
        since_ms=instant(request, "since"),
        until_ms=instant(request, "until"),
    )
    count = page_size(request, ENTRIES_MAX)
    found = await ctx.record.page(wanted, before, count + 1)
    page = found[:count]
    next_ = str(page[-1].id) if len(found) > count else None
    return json_response(Record([_view(ctx, each) for each in page], next_))


def _view(ctx: Context, entry: Known) -> RecordEntry:
    return RecordEntry(
        id=str(entry.id),
        at=rfc3339(entry.at_ms),
        who=entry.who,
        what=entry.what,
        subject=_subject(ctx, entry),
        sale_id=None if entry.sale_id is None else ctx.sale_ids.encode(entry.sale_id),
        before=facts_view(ctx, entry.before),
        after=facts_view(ctx, entry.after),
        why=entry.why,
        request_id=entry.request_id,
    )


def _subject(ctx: Context, entry: Known) -> str:
    """Names the subject as the rest of the API does."""
    kind = entry.what.partition(".")[0]
    if kind == "order":
        return ctx.order_ids.encode(int(entry.subject))
    if kind == "entry":
        return ctx.entry_ids.encode(int(entry.subject))
    return ctx.sale_ids.encode(int(entry.subject)) if kind in _SALES else entry.subject


def facts_view(ctx: Context, facts: Facts | None) -> dict[str, Any] | None:
    return None if facts is None else dict(_fact(ctx, name, value) for name, value in facts.items())


def _fact(ctx: Context, name: str, value: Any) -> tuple[str, Any]:
    """Shows the ledger's numbers and times as the API does."""
    if name == "order_number":
        return "order_id", ctx.order_ids.encode(int(value))
    if name == "sale":
        return "sale_id", None if value is None else ctx.sale_ids.encode(value)
    if name == "item":
        return "item_id", None if value is None else ctx.item_ids.of(value)
    if name == "items":
        return name, [facts_view(ctx, item) for item in value]
    if name.endswith("_ms"):
        return f"{name.removesuffix('_ms')}_at", rfc3339_or_none(value)
    if name == "before_s":
        return "before", None if value is None else rfc3339(1000 * value)
    return name, value
