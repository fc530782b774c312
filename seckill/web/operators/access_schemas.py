"""What goes in and out over HTTP about operators, buyers' standing and the record."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seckill.domain.operator import NAME_MAX, Role

LIFETIME_S_MAX = 10 * 366 * 86_400
Reason = Annotated[str, Meta(min_length=1, max_length=255, description="In a line; it stays on the record.")]
BuyerId = Annotated[str, Meta(min_length=1, max_length=128, description="The `sub` of the buyer's tokens.")]


class NewOperatorKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="Whose it is; one may have several.")]
    role: Role
    expires_in_s: Annotated[int, Meta(ge=60, le=LIFETIME_S_MAX)] | None = None  # null: it does not expire


class OperatorKey(msgspec.Struct, kw_only=True):
    id: str
    name: str
    role: Role
    state: str  # active | expired | revoked
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    key: str | UnsetType = UNSET  # only in the answer that makes it


class OperatorKeys(msgspec.Struct):
    operators: list[OperatorKey]


class Me(msgspec.Struct, kw_only=True):
    name: str
    role: Role


class BuyerWish(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    buyer: BuyerId
    reason: Reason


class NewTokenEnd(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    reason: Reason
    before: Annotated[datetime, Meta(tz=True)] | None = None  # now, if left out


class NewBuyerTokenEnd(NewTokenEnd, forbid_unknown_fields=True, kw_only=True):
    buyer: BuyerId


class BuyerStanding(msgspec.Struct, kw_only=True):
    buyer: str
    blocked: bool
    blocked_at: str | None
    blocked_by: str | None
    reason: str | None
    tokens_ended_before: str | None  # those that were issued before are over


class BuyerStandings(msgspec.Struct):
    buyers: list[BuyerStanding]
    next: str | None = None


class TokensEnded(msgspec.Struct):
    tokens_ended_before: str


class RecordEntry(msgspec.Struct, kw_only=True):
    id: str
    at: str
    who: str
    what: str
    subject: str
    sale_id: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    why: str | None
    request_id: str


class Record(msgspec.Struct):
    entries: list[RecordEntry]
    next: str | None = None
