"""One buyer's data, as JSON."""

from typing import Any

import msgspec


class OneBuyer(msgspec.Struct, forbid_unknown_fields=True):
    """`buyer`: the `sub` of their tokens."""

    buyer: str


class ErasedBuyer(msgspec.Struct, kw_only=True):
    """How many of each name a pseudonym now. `lists`: audiences that they are no longer part of."""

    orders: int
    entries: int
    letters: int
    events: int
    lists: int


class BuyerFile(msgspec.Struct, kw_only=True):
    """Everything that is held about a buyer. Times are RFC 3339, amounts in minor units."""

    buyer: str
    made_at: str
    orders: list[dict[str, Any]]  # with their history, payments, refunds, codes and what operators did to them
    queued: list[dict[str, Any]]  # orders that are accepted and not written yet
    entries: list[dict[str, Any]]  # in lines
    set_aside: list[dict[str, Any]]  # orders that could not be written
    lists: list[str]  # the sales whose audience names them
