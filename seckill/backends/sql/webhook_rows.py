"""Reads webhooks and deliveries from their rows."""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, and_, exists, not_, or_, select

from seckill.backends.sql.database import AnyRow
from seckill.backends.sql.tables import webhook_deliveries, webhooks
from seckill.domain.webhook import DeliveryState, DeliveryTrouble, DisabledBy, Webhook
from seckill.ports.webhook import Sent, WebhookDelivery, WebhookDraft

_TYPES = msgspec.json.Decoder(tuple[str, ...])


def to_webhook(row: AnyRow, now_ms: int) -> Webhook:
    overlap = row.old_secret is not None and row.old_secret_ms is not None and row.old_secret_ms > now_ms
    return Webhook(
        id=row.id,
        url=row.url,
        types=_TYPES.decode(row.types),
        sale_id=row.sale_id,
        description=row.description,
        enabled=bool(row.enabled),
        disabled_by=None if row.disabled_by is None else DisabledBy(row.disabled_by),
        secrets=(row.secret, row.old_secret) if overlap else (row.secret,),
        overlap_until_ms=row.old_secret_ms if overlap else None,
        cursor=row.cursor,
        created_ms=row.created_ms,
        delivered_ms=row.delivered_ms,
        failures=row.failures,
        failing_ms=row.failing_ms,
        retry_ms=row.retry_ms,
        missed_ms=row.missed_ms,
        missed_after=row.missed_after,
        missed_until=row.missed_until,
    )


def new_webhook(draft: WebhookDraft, cursor: int, now_ms: int) -> dict[str, Any]:
    return {
        "url": draft.url,
        "types": types_column(draft.types),
        "sale_id": draft.sale_id,
        "description": draft.description,
        "enabled": int(draft.enabled),
        "disabled_by": None if draft.enabled else DisabledBy.OPERATOR,
        "secret": draft.secret,
        "cursor": cursor,
        "created_ms": now_ms,
        "failures": 0,
    }


def types_column(types: tuple[str, ...]) -> str:
    return msgspec.json.encode(types).decode()


def to_delivery(row: AnyRow) -> WebhookDelivery:
    return WebhookDelivery(
        id=row.id,
        event_id=row.event_id,
        type=row.type,
        cursor=row.cursor,
        subject=row.subject,
        state=DeliveryState(row.state),
        by_hand=bool(row.by_hand),
        tries=row.tries,
        created_ms=row.created_ms,
        tried_ms=row.tried_ms,
        next_ms=row.next_ms,
        last=None if row.tried_ms is None else _last(row),
    )


def _last(row: AnyRow) -> Sent:
    trouble = None if row.trouble is None else DeliveryTrouble(row.trouble)
    return Sent(status=row.status, trouble=trouble, took_ms=row.took_ms)


def sent_columns(sent: Sent, now_ms: int) -> Mapping[str, Any]:
    return {"tried_ms": now_ms, "status": sent.status, "trouble": sent.trouble, "took_ms": sent.took_ms}


def is_due(now_ms: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a delivery waits, its time has come, and no other one of the same subject waits before it. A delivery by
    hand does not wait for others, and may go to an endpoint that is disabled or left alone."""
    that = webhook_deliveries.alias("that")
    earlier = exists(select(that.c.id)).where(
        that.c.webhook_id == webhook_deliveries.c.webhook_id,
        that.c.subject == webhook_deliveries.c.subject,
        that.c.state == DeliveryState.WAITING,
        that.c.by_hand == 0,
        that.c.cursor < webhook_deliveries.c.cursor,
    )
    in_turn = and_(webhook_deliveries.c.by_hand == 0, can_be_asked(now_ms), not_(earlier))
    return and_(
        webhook_deliveries.c.webhook_id == webhooks.c.id,
        webhook_deliveries.c.state == DeliveryState.WAITING,
        webhook_deliveries.c.next_ms <= now_ms,
        or_(webhook_deliveries.c.by_hand == 1, in_turn),
    )


def can_be_asked(now_ms: ColumnElement[int]) -> ColumnElement[bool]:
    return and_(webhooks.c.enabled == 1, or_(webhooks.c.retry_ms.is_(None), webhooks.c.retry_ms <= now_ms))
