"""What the record says about a sale, a webhook and a line: everything that operators decide, but no secret."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from seckill.domain.audience import EVERYBODY
from seckill.domain.door import Door, PassKind
from seckill.domain.item import Item
from seckill.domain.line import RoundLine
from seckill.domain.sale import Sale
from seckill.domain.webhook import Webhook


def sale_facts(sale: Sale) -> dict[str, Any]:
    round_ = sale.round
    facts = {
        "title": sale.title,
        "units": round_.total,
        "limit_per_buyer": round_.limit_per_buyer,
        "cool_down_s": round_.cool_down_s,
        "begins_ms": round_.begins_ms,
        "ends_ms": round_.ends_ms,
        "status": round_.status,
        "published": sale.published,
        "price_cents": sale.price_cents,
        "currency": sale.currency,
        "pay_within_s": sale.pay_within_s,
        "confirm": sale.confirm,
        "repeat": None if sale.recurrence is None else sale.recurrence.repeat,
        "timezone": sale.timezone,
        "limit_by": sale.limit_by,
        "limit_group": round_.limit_group,
        "vouchers": sale.vouchers,
        **msgspec.to_builtins(sale.goods),
        **_door_facts(sale.door),
    }
    if sale.items:
        units = dict(round_.items)
        facts["items"] = [_item_facts(item, units.get(item.id, item.units)) for item in sale.items]
    return facts


def _door_facts(door: Door) -> dict[str, Any]:
    """The facts of the door, under the names that users know."""
    return {
        "pass": door.pass_kind,
        "pass_work": None if door.pass_kind is PassKind.NONE else door.work,
        "audience": None if door.audience == EVERYBODY else msgspec.to_builtins(door.audience),
        **msgspec.to_builtins(door.line),
    }


def _item_facts(item: Item, units: int) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(item)
    return {"item": facts.pop("id"), **facts, "units": units}


def webhook_facts(webhook: Webhook) -> dict[str, Any]:
    """Only names the host of the address: the rest may be a secret between the two sides."""
    return {
        "host": urlsplit(webhook.url).hostname,
        "types": list(webhook.types),
        "sale": webhook.sale_id,
        "description": webhook.description,
        "enabled": webhook.enabled,
    }


def line_facts(line: RoundLine) -> dict[str, Any]:
    return {"paused": line.paused, "serve_per_s": line.serve_per_s, "beacon": line.beacon}
