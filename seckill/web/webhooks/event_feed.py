"""The feed of everything that is committed, for shops that follow it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.event import EventType, matching
from seckill.domain.public_id import PublicIds
from seckill.engine.orders.buyer_orders import recorded
from seckill.engine.sale_cache import SaleCache
from seckill.engine.webhooks.message import EventDocument
from seckill.ports.feed import CursorGone, EventFilter, FeedEvent
from seckill.web import schemas
from seckill.web.connections.waiting_seats import gone
from seckill.web.context import context
from seckill.web.orders import buyer_orders
from seckill.web.problems import HttpProblem, invalid
from seckill.web.requests.parameters import known_sale, page_size, row_id, wait_s
from seckill.web.responses import json_response
from seckill.web.sales.item_ids import ItemIds
from seckill.web.schemas import rfc3339

EVENTS_MAX = 1000
EVENTS_DEFAULT = 100
# Facts that are order numbers, and the names under which the API shows their public ids.
_ORDERS = {"order_number": "order_id", "pays_number": "pays"}


async def list_events(request: Request) -> Response:
    ctx = context(request)
    after = _after(request)
    wanted = EventFilter(types=_types(request), sale_id=await known_sale(ctx, request))
    count = page_size(request, EVENTS_MAX, EVENTS_DEFAULT)
    page = await ctx.events.read(after, wanted, count, wait_s(request), gone(request.receive))
    if isinstance(page, CursorGone):
        raise _gone(page)
    await _know_items(ctx, page.events)
    return json_response(schemas.Events([view(ctx, event) for event in page.events], page.next))


def _after(request: Request) -> int | None:
    text = request.query_params.get("after")
    if text is None:
        return None
    cursor = row_id(text)
    if cursor is None:
        raise invalid("after", "is not a cursor that this feed has given out")
    return cursor


def _types(request: Request) -> frozenset[EventType] | None:
    """`order.*` stands for all types that begin with `order.`."""
    given = request.query_params.getlist("types")
    if not given:
        return None
    found: set[EventType] = set()
    for name in ",".join(given).split(","):
        found |= known_types("types", name)
    return frozenset(found)


def known_types(field: str, name: str) -> frozenset[EventType]:
    these = matching(name)
    if not these:
        raise invalid(field, f"there is no type {name[:64]!r}; there are {', '.join(EventType)}")
    return these


def _gone(found: CursorGone) -> HttpProblem:
    return HttpProblem(
        410,
        "cursor_gone",
        f"The feed has the events after {found.oldest}, up to {found.newest}: what came before has been pruned, and "
        "what comes after has not happened, or not in this copy of the ledger. Read the present state with GET "
        f"/v1/admin/orders, then go on with after={found.oldest}, and expect to see some events again.",
        oldest=found.oldest,
        newest=found.newest,
    )


async def _know_items(ctx: buyer_orders.Names, events: Sequence[FeedEvent]) -> None:
    await ctx.sale_cache.know([event.sale_id for event in events if event.order is not None and event.order.item])


def view(ctx: buyer_orders.Names, event: FeedEvent) -> schemas.Event:
    return schemas.Event(
        cursor=event.cursor, id=event.id, type=event.type, at=rfc3339(event.at_ms), data=_data(ctx, event)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EventNames:
    """Implements `seckill.web.orders.buyer_orders.Names` where there is no API."""

    sale_ids: PublicIds
    order_ids: PublicIds
    entry_ids: PublicIds
    item_ids: ItemIds
    sale_cache: SaleCache


async def event_document(ctx: buyer_orders.Names, event: FeedEvent) -> EventDocument:
    """Makes the document of an event, which is the same in the feed and in webhooks."""
    await _know_items(ctx, [event])
    return EventDocument(type=event.type, at=rfc3339(event.at_ms), data=_data(ctx, event))


def _data(ctx: buyer_orders.Names, event: FeedEvent) -> dict[str, Any]:
    if event.order is not None:
        order: dict[str, Any] = msgspec.to_builtins(buyer_orders.view(ctx, recorded(event.order), to_operator=True))
        return order | {"buyer": event.order.user, "cause": event.cause}
    where = {"sale_id": ctx.sale_ids.encode(event.sale_id), "round": str(event.round_id)}
    return where | _facts(ctx, event.facts)


def _without_number(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "item"}


def _facts(ctx: buyer_orders.Names, facts: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, value in facts.items():
        if name in _ORDERS:
            told[_ORDERS[name]] = None if value is None else ctx.order_ids.encode(value)
        elif name == "entry_number":
            told["entry_id"] = ctx.entry_ids.encode(value)
        elif name.endswith("_ms"):
            told[f"{name.removesuffix('_ms')}_at"] = rfc3339(value)
        elif name == "items":
            told[name] = [{"item_id": ctx.item_ids.of(each["item"]), **_without_number(each)} for each in value]
        else:
            told[name] = value
    return told
