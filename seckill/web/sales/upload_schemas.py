"""What answers operators who upload codes and pictures."""

import msgspec
from msgspec import UNSET, UnsetType


class ItemCodes(msgspec.Struct, kw_only=True):
    item_id: str
    title: str
    free: int  # that are for this item alone
    needed: int  # units of it that may still be paid for


class VoucherCounts(msgspec.Struct, kw_only=True):
    """codes = free + given + redeemed + void."""

    codes: int
    free: int
    given: int  # and not redeemed
    redeemed: int
    void: int  # of orders that were refunded
    missing: int  # until every unit of the rounds that are on or to come can have one
    items: list[ItemCodes] | UnsetType = UNSET  # of a sale that has items


class VouchersAdded(VoucherCounts, kw_only=True):
    added: int  # with this upload


class UploadedImage(msgspec.Struct, kw_only=True):
    url: str  # to be given to `images` of a sale; under this address it is shown, for ever the same
    width: int
    height: int
