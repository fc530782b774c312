"""Voucher codes: their form, their states, and how many a sale needs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import OrderNumber

CODE_BYTES_MAX = 128
# How many codes one upload may have. More need another upload.
CODES_MAX = 1_000_000
# How many codes one order may get: a batch of orders takes its codes in one transaction, which must not last long.
CODES_PER_BUYER_MAX = 100


class VoucherState(StrEnum):
    FREE = "free"  # in the pool
    GIVEN = "given"  # a paid unit's
    REDEEMED = "redeemed"
    VOID = "void"  # its order was refunded; no one can use it any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Voucher:
    id: int
    sale_id: int
    code: str
    number: OrderNumber | None  # of the order that has it, or had it when it became void
    user: str | None
    given_ms: int | None
    shown_ms: int | None  # when its buyer or an operator first saw it with its order
    redeemed_ms: int | None
    void_ms: int | None

    @property
    def state(self) -> VoucherState:
        if self.void_ms is not None:
            return VoucherState.VOID
        if self.redeemed_ms is not None:
            return VoucherState.REDEEMED
        return VoucherState.FREE if self.number is None else VoucherState.GIVEN


# When a paid order is refunded and its units go on sale again, a code goes back into the pool for another buyer, as
# long as none of this has happened to it. Otherwise it becomes void, because anyone who has seen a code may use it. So
# does every code whose unit does not go on sale again.
USED_SINCE = ("shown_ms", "redeemed_ms")


class CodeCount(NamedTuple):
    free: int
    needed: int  # for units that may still be paid for


def spare_codes(by_item: Mapping[int, CodeCount]) -> int:
    """Returns how many codes are for any item and not needed. A negative number says how many are missing. An item
    takes its own codes first; those that it does not need are of no use to other items."""
    for_any = by_item.get(NO_ITEM, CodeCount(0, 0))
    own = [each.free - each.needed for item, each in by_item.items() if item != NO_ITEM]
    return for_any.free - for_any.needed + sum(min(0, left) for left in own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The codes of a sale, and how many are missing until each of its units can have one."""

    codes: int
    free: int
    given: int  # and not redeemed
    redeemed: int
    void: int
    missing: int
    by_item: Mapping[int, CodeCount] = field(default_factory=dict)  # in a sale with items: the codes for one item only


def fault_in(code: str) -> str | None:
    """Returns why the text cannot be a code, in words that follow its place, or None if it can."""
    if not code:
        return "is empty"
    if len(code.encode()) > CODE_BYTES_MAX:
        return f"has a code of more than {CODE_BYTES_MAX} bytes"
    if not code.isprintable():
        return "has a character that cannot be printed"
    if code != code.strip():
        return "has a space before or after the code"
    return None
