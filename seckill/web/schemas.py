"""What goes in and out over HTTP. The OpenAPI document is made from these."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from seckill.audit.document import Audit
from seckill.domain.recurrence import REPEAT_LENGTH_MAX, ZONE_LENGTH_MAX
from seckill.domain.sale import COOL_DOWN_S_MAX, QUANTITY_MAX, UNITS_MAX

Title = Annotated[str, Meta(min_length=1, max_length=200)]
Units = Annotated[int, Meta(ge=1, le=UNITS_MAX)]
Limit = Annotated[int, Meta(ge=1, le=QUANTITY_MAX)]
CoolDown = Annotated[int, Meta(ge=0, le=COOL_DOWN_S_MAX)]
Instant = Annotated[datetime, Meta(tz=True)]
# The names say cents, whatever the currency has in their place.
_CENTS = "In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD."
Cents = Annotated[int, Meta(description=_CENTS)]
Currency = Annotated[str, Meta(description="The code of ISO 4217.", examples=["CNY"])]


class NewOrder(msgspec.Struct, forbid_unknown_fields=True):
    quantity: Annotated[int, Meta(ge=1, le=QUANTITY_MAX)] = 1


class OrderAccepted(msgspec.Struct):
    order_id: str
    state: str
    sale_id: str
    round: str
    quantity: int


class Order(msgspec.Struct, kw_only=True):
    order_id: str
    sale_id: str
    round: str
    quantity: int
    state: str
    price_cents: Cents
    currency: Currency
    created_at: str
    pay_before: str | None = None
    paid_at: str | None = None
    closed_at: str | None = None
    replaced_by: str | None = None  # paid when it was over: the order that was paid with that money instead


class Orders(msgspec.Struct):
    orders: list[Order]
    next: str | None  # give it as `cursor` to see older ones


class NewSale(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    title: Title
    units: Units
    begins_at: Instant
    ends_at: Instant
    limit_per_buyer: Limit = 1
    price_cents: Annotated[Cents, Meta(ge=0, le=1_000_000_000_000)] = 0
    currency: Annotated[Currency, Meta(pattern=r"^[A-Z]{3}$(?!\n)")] = "CNY"
    # "daily", or cron with five fields: minute hour day-of-month month day-of-week
    repeat: Annotated[str, Meta(min_length=1, max_length=REPEAT_LENGTH_MAX)] | None = None
    timezone: Annotated[str, Meta(max_length=ZONE_LENGTH_MAX)] = "UTC"
    pay_within_s: Annotated[int, Meta(ge=1, le=30 * 86400)] | None = None
    # How long a buyer who let an order lapse waits before buying again, twice as long each time; 0: not at all.
    cool_down_s: CoolDown | None = None
    lanes: Annotated[int, Meta(ge=1, le=256)] = 1  # up to SECKILL_LANES


class SalePatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    title: Title | None = None
    add_units: Annotated[int, Meta(ge=1, le=UNITS_MAX)] | None = None
    begins_at: Instant | None = None
    ends_at: Instant | None = None
    limit_per_buyer: Limit | None = None
    cool_down_s: CoolDown | None = None


class Sale(msgspec.Struct, kw_only=True):
    id: str
    title: str
    units: int
    limit_per_buyer: int
    price_cents: Cents
    currency: Currency
    begins_at: str
    ends_at: str
    pay_within_s: int
    cool_down_s: int
    lanes: int
    state: str
    round: str
    repeat: str | None
    timezone: str
    next_rounds: list[str]  # when the rounds after this one begin, the next five; empty if it does not repeat
    server_time: str


class Sales(msgspec.Struct):
    sales: list[Sale]  # all current and coming ones, and the last past ones
    server_time: str
    older: str | None = None  # give it as `before` to see those that were over earlier


class SaleRound(msgspec.Struct, kw_only=True):
    """What a round has of its own, under the names that the sale has them."""

    round: str
    units: int
    limit_per_buyer: int
    cool_down_s: int
    begins_at: str
    ends_at: str
    state: str


class SaleRounds(msgspec.Struct, kw_only=True):
    rounds: list[SaleRound]  # the newest first


class Repetition(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The first window of a sale, and how it comes again."""

    begins_at: Instant
    ends_at: Instant
    repeat: Annotated[str, Meta(min_length=1, max_length=REPEAT_LENGTH_MAX)]
    timezone: Annotated[str, Meta(max_length=ZONE_LENGTH_MAX)] = "UTC"


class Window(msgspec.Struct, kw_only=True):
    begins_at: str
    ends_at: str


class Windows(msgspec.Struct):
    windows: list[Window]


class Custody(msgspec.Struct, kw_only=True):
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
    next_return_at: str | None  # when the next unpaid order is over
    orders: int  # written so far; orders, not units
    lapsed: int  # of these, cancelled or not paid in time


class DeadLetter(msgspec.Struct, kw_only=True):
    id: str
    order_id: str | None  # None: the entry cannot even be read
    state: str
    reason: str
    attempts: int
    created_at: str
    history: list[dict[str, str]]
    payload: str


class DeadLetters(msgspec.Struct):
    dead: list[DeadLetter]


class PaymentNotice(msgspec.Struct, kw_only=True):
    """What a callback says, unless the shop has its own provider with its own messages."""

    payment_id: str
    order_id: str
    amount_cents: Cents
    currency: Currency


class Refund(msgspec.Struct, kw_only=True):
    id: str
    order_id: str
    provider: str
    payment_id: str
    amount_cents: Cents
    currency: Currency
    reason: str
    attempts: int
    created_at: str
    done_at: str | None


class Refunds(msgspec.Struct):
    refunds: list[Refund]


class LiveSale(msgspec.Struct, kw_only=True):
    """A sale that is on or about to be. Counts only grow; rates are their differences."""

    sale_id: str
    round: str
    available: int | None  # None while the gate does not have the round
    accepted_units: int | None
    persisted_units: int
    refused: dict[str, int]  # claims by the reason, over all processes that run now
    backlog: int  # entries in the sale's lane that no worker has settled yet
    lag_ms: int  # how long the oldest of them has waited


class Answers(msgspec.Struct, kw_only=True):
    """How long claims took to be answered lately, over all API processes."""

    within_s: int
    claims: int
    p50_ms: float | None
    p99_ms: float | None


class Node(msgspec.Struct, kw_only=True):
    id: str
    role: str
    host: str
    pid: int
    version: str
    state: str  # ok | silent
    started_at: str
    seen_at: str
    claims: int  # answered since its start
    recorded: int  # orders written since its start


class Live(msgspec.Struct, kw_only=True):
    server_time: str
    sales: list[LiveSale]
    answers: Answers
    nodes: list[Node]


class OrderEvent(msgspec.Struct, kw_only=True):
    at: str
    before: str | None
    state: str
    cause: str


class FoundPayment(msgspec.Struct, kw_only=True):
    """Money that was taken. It pays for an order, is refunded, or came late and `waits` for a decision."""

    payment_id: str
    provider: str
    amount_cents: Cents
    currency: Currency
    at: str
    order_id: str  # the order that it was meant for
    pays: str | None  # the order that is paid with it: another one, if it came late
    waits: bool
    refund: Refund | None


class FoundOrder(msgspec.Struct, kw_only=True):
    order: Order | None  # None: it was never written, see `letters`
    ordinal: int | None = None  # which of its sale's rounds it is of: 1 is the first; None: the sale does not repeat
    user: str | None
    events: list[OrderEvent]
    letters: list[DeadLetter]
    payments: list[FoundPayment]


class FoundOrders(msgspec.Struct):
    orders: list[FoundOrder]


class NewRepair(msgspec.Struct, forbid_unknown_fields=True):
    apply: bool = False  # only say what would be done


class Repaired(msgspec.Struct, kw_only=True):
    done: list[str]
    to_do: list[str]  # what `apply` would do
    for_people: list[str]  # what it leaves alone, with what an operator should do
    audit: Audit


class ServerTime(msgspec.Struct):
    server_time: str


class DemoBuyer(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=40)]


class SignedIn(msgspec.Struct):
    user: str  # who the buyer is from now on: the `sub` of the token
    token: str


class Problem(msgspec.Struct, kw_only=True):
    type: str
    title: str
    status: int
    code: str
    detail: str


def to_ms(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)


def rfc3339(ms: int) -> str:
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def rfc3339_or_none(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)
