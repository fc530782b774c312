"""What is sold, in the columns of a sale."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec

from seckill.domain.goods import NO_GOODS, Goods, GoodsChange

GOODS = tuple(field.name for field in fields(Goods))


def to_goods(columns: Mapping[str, Any]) -> Goods:
    """Reads the goods. Most sales say nothing about them, and share one object."""
    given = {name: value for name, value in columns.items() if value is not None}
    if not given:
        return NO_GOODS
    if "images" in given:
        given["images"] = tuple(msgspec.json.decode(given["images"], type=list[str]))
    return Goods(**given)


def goods_columns(goods: Goods) -> dict[str, Any]:
    return changed_columns({name: getattr(goods, name) for name in GOODS})


def changed_columns(change: GoodsChange) -> dict[str, Any]:
    return {name: _column(value) for name, value in change.items()}


def _column(value: object) -> object:
    if isinstance(value, tuple):
        return msgspec.json.encode(value).decode() if value else None
    return None if value == "" else value
