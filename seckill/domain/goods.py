"""What a sale sells, as its page shows it and as its shop knows it. None of it decides who is admitted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

# The values that a field of `Goods` may get; None and "" remove it.
GoodsValue: TypeAlias = str | int | tuple[str, ...] | None
GoodsChange: TypeAlias = Mapping[str, GoodsValue]

EXTERNAL_ID_LENGTH_MAX = 128
METADATA_BYTES_MAX = 4096
DESCRIPTION_LENGTH_MAX = 10_000
DELIVERY_LENGTH_MAX = 500
URL_LENGTH_MAX = 2048
IMAGES_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Goods:
    external_id: str | None = None  # the shop's own; no two sales that are on or to come have the same
    metadata: str | None = None  # the shop's own, a JSON object as canonical text
    description: str = ""
    images: tuple[str, ...] = ()  # the first is the cover
    list_price_cents: int | None = None  # what one unit costs elsewhere
    terms_url: str | None = None
    delivery: str = ""
    return_url: str | None = None  # back to the shop

    def difference(self, change: GoodsChange) -> dict[str, GoodsValue]:
        """Returns the part of the change that is really different."""
        return {name: value for name, value in change.items() if getattr(self, name) != value}


NO_GOODS = Goods()
