"""What a sale sells that comes in several kinds, such as sizes or colours. Pure.

Each item has units and a price of its own. The limit counts over all of them, and a claim names one."""

from dataclasses import dataclass
from typing import NamedTuple

ITEMS_MAX = 50
# The item of a claim, of an order, in a sale that has none.
NO_ITEM = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDraft:
    """As the merchant announces it."""

    title: str
    units: int
    price_cents: int
    external_id: str | None = None  # the shop's own; no two of a sale have the same
    image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """`units`: what every round of its sale begins with."""

    id: int
    title: str
    units: int
    price_cents: int
    external_id: str | None = None
    image: str | None = None


class ItemUnits(NamedTuple):
    """How much of an item a round has."""

    id: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """What an operator wants changed; None leaves it as it is, "" takes it away."""

    id: int
    add_units: int = 0
    title: str | None = None
    external_id: str | None = None
    image: str | None = None
