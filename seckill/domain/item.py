"""The items of a sale that comes in several kinds, such as sizes or colours. Pure.

Each item has its own units and price. The limit counts over all items, and a claim names one."""

from dataclasses import dataclass
from typing import NamedTuple

ITEMS_MAX = 50
# The item of a claim or an order in a sale without items.
NO_ITEM = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDraft:
    """An item as the merchant announces it."""

    title: str
    units: int
    price_cents: int
    external_id: str | None = None  # the shop's own; no two of a sale have the same
    image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """`units`: the units with which every round of its sale begins."""

    id: int
    title: str
    units: int
    price_cents: int
    external_id: str | None = None
    image: str | None = None


class ItemUnits(NamedTuple):
    """How many units of an item a round has."""

    id: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """A change by an operator; None leaves a value as it is, "" removes it."""

    id: int
    add_units: int = 0
    title: str | None = None
    external_id: str | None = None
    image: str | None = None
