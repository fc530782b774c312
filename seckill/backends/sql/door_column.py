"""The door of a sale in its column."""

from dataclasses import replace
from typing import Any

import msgspec

from seckill.domain.audience import EVERYBODY
from seckill.domain.door import OPEN_DOOR, Door

_door = msgspec.json.Decoder(Door)


def to_door(column: str | None) -> Door:
    """Reads the door. Most sales are open to everyone: they all share one object, which can be recognised by
    identity."""
    if column is None:
        return OPEN_DOOR
    door = _door.decode(column)
    return replace(door, audience=EVERYBODY) if door.audience == EVERYBODY else door


def door_column(door: Door) -> str | None:
    return None if door == OPEN_DOOR else msgspec.json.encode(door).decode()


def changed_door(door: Door | None) -> dict[str, Any]:
    return {} if door is None else {"door": door_column(door)}
