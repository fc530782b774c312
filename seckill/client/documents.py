"""What the API answers with. `seckill/web/schemas.py` describes the same for servers; a test compares the two."""

from datetime import datetime

import msgspec

from seckill.domain.order import OrderState
from seckill.domain.sale import SaleState


class Sale(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    units: int
    limit_per_buyer: int
    price_cents: int  # of one unit, in minor units of the currency
    currency: str
    begins_at: datetime
    ends_at: datetime
    pay_within_s: int
    cool_down_s: int
    lanes: int
    state: SaleState
    round: str
    repeat: str | None
    timezone: str
    next_rounds: list[datetime]
    server_time: datetime


class Sales(msgspec.Struct, frozen=True, kw_only=True):
    sales: list[Sale]
    server_time: datetime
    older: str | None = None  # give it as `before` to see those that were over earlier


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What a round has of its own, under the names that the sale has them."""

    round: str
    units: int
    limit_per_buyer: int
    cool_down_s: int
    begins_at: datetime
    ends_at: datetime
    state: SaleState


class Rounds(msgspec.Struct, frozen=True, kw_only=True):
    rounds: list[Round]


class Custody(msgspec.Struct, frozen=True, kw_only=True):
    """total = available + queued + unpaid + paid + returning + dead."""

    round: str
    total: int
    available: int
    queued: int
    unpaid: int
    paid: int
    returning: int
    dead: int
    sold: int
    next_return_at: datetime | None
    orders: int
    lapsed: int


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """A unit is reserved, and the order is being written."""

    order_id: str
    state: OrderState
    sale_id: str
    round: str
    quantity: int


class Order(msgspec.Struct, frozen=True, kw_only=True):
    order_id: str
    sale_id: str
    round: str
    quantity: int
    state: OrderState
    price_cents: int  # of the whole order
    currency: str
    created_at: datetime
    pay_before: datetime | None = None
    paid_at: datetime | None = None
    closed_at: datetime | None = None
    replaced_by: str | None = None  # paid when it was over: the order that was paid with that money instead


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    orders: list[Order]
    next: str | None  # give it as `cursor` to see older ones


class Try(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    reason: str


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    order_id: str | None
    state: str
    reason: str
    attempts: int
    created_at: datetime
    history: list[Try]
    payload: str


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    dead: list[DeadLetter]


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    says: str
    round: str | None
    sale_id: str | None
    order_id: str | None
    order_number: str | None
    user: str | None


class AuditResult(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    says: str
    verdict: str
    checked: str
    found: int
    findings: list[AuditFinding]
    reasons: list[str]


class AuditUnits(msgspec.Struct, frozen=True, kw_only=True):
    round: str
    sale_id: str
    total: int
    available: int
    queued: int
    live: int
    returning: int


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    verdict: str  # holds | broken | unknown
    at: datetime
    orders_compared_at: datetime | None
    took_ms: int
    invariants: list[AuditResult]
    units: list[AuditUnits]
