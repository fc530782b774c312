"""Webhooks: where events are sent to."""

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.webhook import DeliveryState
from seckill.domain.webhook import Webhook as Known
from seckill.domain.webhook_target import BadTarget, read_target
from seckill.errors import NotPossible
from seckill.ports.webhook import WebhookChange, WebhookStatus
from seckill.ports.webhook import WebhookDelivery as KnownDelivery
from seckill.web.context import Context, context
from seckill.web.problems import HttpProblem, invalid, no_such
from seckill.web.requests.parameters import id_in_path, page_size, row_id, wait_s
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import rfc3339, rfc3339_or_none
from seckill.web.webhooks.event_feed import known_types
from seckill.web.webhooks.webhook_schemas import (
    MissedEvents,
    NewWebhook,
    NewWebhookSecret,
    Webhook,
    WebhookDeliveries,
    WebhookDelivery,
    WebhookPatch,
    Webhooks,
)

_new = msgspec.json.Decoder(NewWebhook)
_patch = msgspec.json.Decoder(WebhookPatch)
_rotation = msgspec.json.Decoder(NewWebhookSecret)


async def create_webhook(request: Request) -> Response:
    ctx = context(request)
    wish = decode(await read_body(request.receive), _new)
    _check_url(ctx, wish.url)
    types = _checked_types(wish.types)
    sale_id = await _sale(ctx, wish.sale_id)
    description = _checked_description(wish.description)
    try:
        made = await ctx.webhooks.create(
            wish.url, types=types, sale_id=sale_id, description=description, enabled=wish.enabled
        )
    except NotPossible as error:
        raise HttpProblem(409, "too_many_webhooks", str(error)) from None
    return json_response(await _shown(ctx, made.id, secret_of=made), 201)


async def list_webhooks(request: Request) -> Response:
    ctx = context(request)
    return json_response(Webhooks([_view(ctx, status) for status in await ctx.webhooks.all()]))


async def show_webhook(request: Request) -> Response:
    ctx = context(request)
    return json_response(await _shown(ctx, _webhook_id(request)))


async def change_webhook(request: Request) -> Response:
    ctx = context(request)
    webhook_id = _webhook_id(request)
    wish = decode(await read_body(request.receive), _patch)
    if wish.url is not UNSET:
        _check_url(ctx, wish.url)
    change = WebhookChange(
        url=None if wish.url is UNSET else wish.url,
        types=None if wish.types is UNSET else _checked_types(wish.types),
        sale_id=None if wish.sale_id is UNSET else await _sale(ctx, wish.sale_id),
        all_sales=wish.sale_id is None,
        description=None if wish.description is UNSET else _checked_description(wish.description),
        enabled=None if wish.enabled is UNSET else wish.enabled,
    )
    if await ctx.webhooks.change(webhook_id, change) is None:
        raise _no_webhook(webhook_id)
    return json_response(await _shown(ctx, webhook_id))


async def delete_webhook(request: Request) -> Response:
    ctx = context(request)
    webhook_id = _webhook_id(request)
    if not await ctx.webhooks.delete(webhook_id):
        raise _no_webhook(webhook_id)
    return Response(status_code=204)


async def rotate_webhook(request: Request) -> Response:
    ctx = context(request)
    webhook_id = _webhook_id(request)
    wish = decode(await read_body(request.receive), _rotation)
    rotated = await ctx.webhooks.rotate(webhook_id, wish.overlap_hours * 3600)
    if rotated is None:
        raise _no_webhook(webhook_id)
    return json_response(await _shown(ctx, webhook_id, secret_of=rotated))


async def test_webhook(request: Request) -> Response:
    ctx = context(request)
    webhook_id = _webhook_id(request)
    sent = await ctx.webhook_tests.send(webhook_id, wait_s(request))
    return _told(sent, _no_webhook(webhook_id))


async def list_deliveries(request: Request) -> Response:
    ctx = context(request)
    webhook_id = _webhook_id(request)
    count = page_size(request)
    before = None
    if (after := request.query_params.get("after")) is not None:
        before = row_id(after)
        if before is None:
            raise invalid("after", "is not one that this list gave")
    state = request.query_params.get("state")
    if state is not None and state not in set(DeliveryState):
        raise invalid("state", f"must be one of {', '.join(DeliveryState)}")
    if await ctx.webhooks.find(webhook_id) is None:
        raise _no_webhook(webhook_id)
    found = await ctx.webhooks.deliveries(webhook_id, None if state is None else DeliveryState(state), before, count)
    older = str(found[-1].id) if len(found) == count else None
    return json_response(WebhookDeliveries([_delivery(each) for each in found], older))


async def redeliver(request: Request) -> Response:
    ctx = context(request)
    webhook_id, delivery_id = _webhook_id(request), id_in_path(request, "delivery_id", "delivery")
    again = await ctx.webhooks.send_again(webhook_id, delivery_id, wait_s(request))
    return _told(again, no_such("delivery", f"{delivery_id} to webhook {webhook_id}"))


def _webhook_id(request: Request) -> int:
    return id_in_path(request, "webhook_id", "webhook")


def _no_webhook(webhook_id: int) -> HttpProblem:
    return no_such("webhook", str(webhook_id))


def _check_url(ctx: Context, url: str) -> None:
    try:
        read_target(url, private=ctx.settings.webhook_private == "on")
    except BadTarget as error:
        raise invalid("url", str(error)) from None


def _checked_types(types: list[str] | None) -> tuple[str, ...]:
    for place, name in enumerate(types or ()):
        known_types(f"types[{place}]", name)
    return tuple(dict.fromkeys(types or ()))


def _checked_description(text: str) -> str:
    text = text.strip()
    if not text.isprintable():
        raise invalid("description", "must be one line of text")
    return text


async def _sale(ctx: Context, public_id: str | None) -> int | None:
    if public_id is None:
        return None
    sale = await ctx.sale_cache.find_any(public_id)
    if sale is None:
        raise invalid("sale_id", "there is no such sale")
    return sale.id


async def _shown(ctx: Context, webhook_id: int, *, secret_of: Known | None = None) -> Webhook:
    status = await ctx.webhooks.find(webhook_id)
    if status is None:
        raise _no_webhook(webhook_id)
    shown = _view(ctx, status)
    if secret_of is not None:
        shown.secret = secret_of.secrets[0]
    return shown


def _view(ctx: Context, status: WebhookStatus) -> Webhook:
    webhook = status.webhook
    return Webhook(
        id=str(webhook.id),
        url=webhook.url,
        types=list(webhook.types) or None,
        sale_id=None if webhook.sale_id is None else ctx.sale_ids.encode(webhook.sale_id),
        description=webhook.description,
        enabled=webhook.enabled,
        disabled_by=webhook.disabled_by,
        created_at=rfc3339(webhook.created_ms),
        delivered_at=rfc3339_or_none(webhook.delivered_ms),
        failing_since=rfc3339_or_none(webhook.failing_ms),
        failures=webhook.failures,
        next_try_at=rfc3339_or_none(webhook.retry_ms),
        behind=status.behind,
        waiting=status.waiting,
        failed=status.failed,
        missed=_missed(webhook),
        overlap_until=rfc3339_or_none(webhook.overlap_until_ms),
    )


def _missed(webhook: Known) -> MissedEvents | None:
    if webhook.missed_ms is None or webhook.missed_after is None or webhook.missed_until is None:
        return None
    return MissedEvents(at=rfc3339(webhook.missed_ms), after=webhook.missed_after, until=webhook.missed_until)


def _told(delivery: KnownDelivery | None, missing: HttpProblem) -> Response:
    if delivery is None:
        raise missing
    return json_response(_delivery(delivery))


def _delivery(delivery: KnownDelivery) -> WebhookDelivery:
    last = delivery.last
    return WebhookDelivery(
        id=str(delivery.id),
        event_id=delivery.event_id,
        type=delivery.type,
        cursor=delivery.cursor,
        state=delivery.state,
        tries=delivery.tries,
        created_at=rfc3339(delivery.created_ms),
        tried_at=rfc3339_or_none(delivery.tried_ms),
        next_try_at=rfc3339_or_none(delivery.next_ms),
        status=None if last is None else last.status,
        trouble=None if last is None else last.trouble,
        took_ms=None if last is None else last.took_ms,
    )
