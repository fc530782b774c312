"""Copies a sale as the model for another: everything that an operator decided, and nothing that happened in it."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from seckill.domain import sale as domain
from seckill.domain.recurrence import DAILY, Recurrence
from seckill.web.schemas import NewItem, NewSale, Sale, rfc3339, to_ms

# The differences: all fields of a new sale are optional here, and null leaves one out.
SaleCopy = msgspec.defstruct(
    "SaleCopy",
    [
        (each.name, each.type | None | UnsetType, msgspec.field(default=UNSET, name=each.encode_name))
        for each in msgspec.structs.fields(NewSale)
    ],
    forbid_unknown_fields=True,
    kw_only=True,
)

_FIELDS = [each.encode_name for each in msgspec.structs.fields(NewSale)]
_ITEM_FIELDS = [each.encode_name for each in msgspec.structs.fields(NewItem)]
# If there are items, these follow from them.
_OF_ITEMS = ("items", "units", "price_cents")


def copied(
    sale: domain.Sale, shown: Sale, changes: dict[str, Any], begins_at: datetime | None, now_ms: int
) -> dict[str, Any]:
    """Returns the new sale as it might be announced, with `changes`; `begins_at` is theirs. `shown`: the sale as
    operators see it, with the same names. The copy is a draft and has no external id, since that must be unique."""
    known = msgspec.to_builtins(shown)
    new = {name: known[name] for name in _FIELDS if name in known}
    new |= {"published": False, "external_id": None}
    if items := new.pop("items", ()):
        new |= {"units": None, "price_cents": None}
        new["items"] = [{name: item[name] for name in _ITEM_FIELDS} for item in items]
    if "items" in changes:
        new |= dict.fromkeys(_OF_ITEMS)
    new |= _window(sale, begins_at, now_ms)
    return {name: value for name, value in (new | changes).items() if value is not None}


def _window(sale: domain.Sale, begins_at: datetime | None, now_ms: int) -> dict[str, str]:
    """Returns a window as long as the sale's. Without a wish it begins when the sale does or, if that is past, at the
    same time of day in the sale's zone on the first day on which that is still to come. A repeating sale begins with
    its next round."""
    again = sale.recurrence or _every_day(sale)
    begins_ms = next(again.after(now_ms), again.begins_ms) if begins_at is None else to_ms(begins_at)
    return {"begins_at": rfc3339(begins_ms), "ends_at": rfc3339(begins_ms + again.window_ms)}


def _every_day(sale: domain.Sale) -> Recurrence:
    begins_ms, ends_ms = sale.round.begins_ms, sale.round.ends_ms
    return Recurrence(repeat=DAILY, timezone=sale.timezone, begins_ms=begins_ms, window_ms=ends_ms - begins_ms)
