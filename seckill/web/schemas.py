"""What goes in and out over HTTP. The OpenAPI document is made from these."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seckill.audit.document import Audit
from seckill.domain.cool_down import COOL_DOWN_S_MAX
from seckill.domain.door import WORK_DEFAULT, PassKind
from seckill.domain.goods import (
    DELIVERY_LENGTH_MAX,
    DESCRIPTION_LENGTH_MAX,
    EXTERNAL_ID_LENGTH_MAX,
    IMAGES_MAX,
    URL_LENGTH_MAX,
)
from seckill.domain.item import ITEMS_MAX
from seckill.domain.line import LineOrder
from seckill.domain.recurrence import REPEAT_LENGTH_MAX, ZONE_LENGTH_MAX
from seckill.domain.sale import QUANTITY_MAX, UNITS_MAX, Confirm
from seckill.web.door.door_schemas import Audience, LimitBy, LimitGroup, PassNeeded, Work
from seckill.web.line.line_schemas import Ordering, ServePerS

Title = Annotated[str, Meta(min_length=1, max_length=200)]
Units = Annotated[int, Meta(ge=1, le=UNITS_MAX)]
Limit = Annotated[int, Meta(ge=1, le=QUANTITY_MAX)]
CoolDown = Annotated[int, Meta(ge=0, le=COOL_DOWN_S_MAX)]
Instant = Annotated[datetime, Meta(tz=True)]
# The names say cents, whatever the currency has in their place.
_CENTS = "In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD."
Cents = Annotated[int, Meta(description=_CENTS)]
# Why an operator does something to an order; goes on record.
Reason = Annotated[str, Meta(min_length=1, max_length=255)]
# As a pattern, so that a refusal can say which values there are.
Confirmation = Annotated[str, Meta(pattern=r"^(gate|ledger)$(?!\n)", extra_json_schema={"enum": list(Confirm)})]
Currency = Annotated[str, Meta(description="The code of ISO 4217.", examples=["CNY"])]
PRICE_CENTS_MAX = 1_000_000_000_000
Price = Annotated[Cents, Meta(ge=0, le=PRICE_CENTS_MAX)]
ListPrice = Annotated[Cents, Meta(ge=1, le=PRICE_CENTS_MAX)]
ExternalId = Annotated[str, Meta(min_length=1, max_length=EXTERNAL_ID_LENGTH_MAX)]
Metadata = Annotated[dict[str, Any], Meta(description="Any JSON object of at most 4 KB. It is kept and not read.")]
_MARKUP = (
    "Text. Empty lines part paragraphs; `## ` begins a heading and `- ` an item of a list; `**bold**`, `*italic*` and "
    "`[link](https://…)` are understood, HTML is not."
)
Description = Annotated[str, Meta(max_length=DESCRIPTION_LENGTH_MAX, description=_MARKUP)]
Delivery = Annotated[str, Meta(max_length=DELIVERY_LENGTH_MAX)]
Url = Annotated[str, Meta(max_length=URL_LENGTH_MAX)]
_PICTURES = (
    "Addresses of pictures, the cover first: https, of a host that SECKILL_IMAGE_HOSTS names, or what "
    "POST /v1/admin/images has answered with."
)
Images = Annotated[list[Url], Meta(max_length=IMAGES_MAX, description=_PICTURES)]
ItemId = Annotated[str, Meta(max_length=64)]


class NewOrder(msgspec.Struct, forbid_unknown_fields=True):
    quantity: Annotated[int, Meta(ge=1, le=QUANTITY_MAX)] = 1
    metadata: Metadata | None = None  # the shop's own, shown with the order once it is written
    item_id: ItemId | None = None  # which of the sale's items; only for a sale that has any, and then always


class OrderAccepted(msgspec.Struct):
    order_id: str
    state: str
    sale_id: str
    round: str
    quantity: int
    item_id: str | UnsetType = UNSET  # of a sale that has items


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
    refunded_cents: Cents = 0  # of its price, so far; a paid order may be refunded in parts
    closed_by: str | None = None  # `operator`: the shop has cancelled or refunded it; else the buyer or the clock did
    metadata: dict[str, Any] | UnsetType = UNSET  # as it was claimed with; left out where there is none
    # Of a sale that gives codes: one for each unit, once it is paid. Only where an order or a list of them is read.
    codes: list[str] | UnsetType = UNSET
    # Of a sale that has items.
    item_id: str | UnsetType = UNSET
    item_title: str | UnsetType = UNSET
    item_external_id: str | UnsetType | None = UNSET  # for operators only


class OrderToPay(Order, kw_only=True):
    """Left out if nothing is to be paid any more."""

    pay_url: str | UnsetType = UNSET  # where the buyer has to go
    pay_qr: str | UnsetType = UNSET  # the same as a picture to scan, if it is for an app


class Orders(msgspec.Struct):
    orders: list[Order]
    next: str | None  # give it as `cursor` to see older ones


class NewItem(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A size or a colour: units and a price of its own, and one limit for all of them."""

    title: Title
    units: Units
    price_cents: Price | UnsetType = UNSET  # the sale's, if left out
    external_id: ExternalId | None = None  # the shop's own: no two of a sale have the same
    image: Url | None = None  # https, of a host that SECKILL_IMAGE_HOSTS names


class NewSale(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    title: Title
    units: Units | UnsetType = UNSET  # of a sale with items: theirs together, and may be left out
    begins_at: Instant
    ends_at: Instant
    limit_per_buyer: Limit = 1
    # Nothing, if left out; of a sale with items: of those that have none of their own.
    price_cents: Price | UnsetType = UNSET
    items: Annotated[list[NewItem], Meta(max_length=ITEMS_MAX)] = []
    currency: Annotated[Currency, Meta(pattern=r"^[A-Z]{3}$")] = "CNY"
    # "daily", or cron with five fields: minute hour day-of-month month day-of-week
    repeat: Annotated[str, Meta(min_length=1, max_length=REPEAT_LENGTH_MAX)] | None = None
    timezone: Annotated[str, Meta(max_length=ZONE_LENGTH_MAX)] = "UTC"
    pay_within_s: Annotated[int, Meta(ge=1, le=30 * 86400)] | None = None
    # How long a buyer who let an order lapse waits before buying again, twice as long each time; 0: not at all.
    cool_down_s: CoolDown | None = None
    lanes: Annotated[int, Meta(ge=1, le=256)] = 1  # up to SECKILL_LANES
    # "ledger": no buyer is told yes before the order's row is committed.
    confirm: Confirmation = Confirm.GATE
    external_id: ExternalId | None = None  # the shop's own: no two sales that are on or to come have the same
    metadata: Metadata | None = None
    description: Description = ""
    images: Images = []
    list_price_cents: ListPrice | None = None  # what one unit costs otherwise
    terms_url: Url | None = None
    delivery: Delivery = ""
    return_url: Url | None = None  # where buyers go back to the shop
    published: bool = True  # false: a draft, of which buyers do not know
    pass_: PassNeeded = msgspec.field(default=PassKind.NONE, name="pass")
    pass_work: Work = WORK_DEFAULT
    audience: Audience | None = None  # everybody, if left out
    limit_by: LimitBy = "sub"
    limit_group: LimitGroup | None = None
    order: Ordering = LineOrder.PRESS
    waiting_list: bool = False  # of `press`: when it is sold out, what comes back goes to those who wait for it
    serve_per_s: ServePerS | None = None  # of a sale with a line; as fast as it goes, if left out
    beacon: bool = False  # the draw waits for a public value that an operator gives when the list is closed
    vouchers: bool = False  # a code with each unit: it opens when enough of them are uploaded


class ItemPatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    item_id: ItemId
    add_units: Annotated[int, Meta(ge=1, le=UNITS_MAX)] | None = None
    title: Title | None = None
    # Of these, null takes away what is there.
    external_id: ExternalId | UnsetType | None = UNSET
    image: Url | UnsetType | None = UNSET


class SalePatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    title: Title | None = None
    items: Annotated[list[ItemPatch], Meta(max_length=ITEMS_MAX)] | None = None  # those of them that are to change
    add_units: Annotated[int, Meta(ge=1, le=UNITS_MAX)] | None = None
    begins_at: Instant | None = None
    ends_at: Instant | None = None
    limit_per_buyer: Limit | None = None
    cool_down_s: CoolDown | None = None
    published: bool | None = None
    pass_: PassNeeded | None = msgspec.field(default=None, name="pass")
    pass_work: Work | None = None
    # Of these, null takes away what is there.
    external_id: ExternalId | UnsetType | None = UNSET
    metadata: Metadata | UnsetType | None = UNSET
    description: Description | UnsetType | None = UNSET
    images: Images | UnsetType | None = UNSET
    list_price_cents: ListPrice | UnsetType | None = UNSET
    terms_url: Url | UnsetType | None = UNSET
    delivery: Delivery | UnsetType | None = UNSET
    return_url: Url | UnsetType | None = UNSET
    audience: Audience | UnsetType | None = UNSET


class Item(msgspec.Struct, kw_only=True):
    item_id: str  # what a claim names
    title: str
    units: int
    price_cents: Cents
    image: str | None
    sold_out: bool  # for now: a unit may come back
    external_id: str | UnsetType | None = UNSET  # for operators only


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
    confirm: Confirmation
    state: str
    round: str
    repeat: str | None
    timezone: str
    next_rounds: list[str]  # when the rounds after this one begin, the next five; empty if it does not repeat
    server_time: str
    images: list[str]
    list_price_cents: Cents | None
    pass_: PassNeeded = msgspec.field(name="pass")
    order: Ordering
    waiting_list: bool
    lined: bool  # units now go to those in the line, and not to those who press
    vouchers: bool
    # How much of the round is left, in steps: 10, 25, 50, 75, 100, and 0 when it is sold out; null: not known, as it is
    # not on.
    left_percent: int | None
    items: list[Item] | UnsetType = UNSET  # left out where there are none; `price_cents` is the lowest of theirs
    # Not in the list of all sales, which every buyer asks for again and again.
    description: str | UnsetType = UNSET
    terms_url: str | UnsetType | None = UNSET
    delivery: str | UnsetType = UNSET
    return_url: str | UnsetType | None = UNSET
    audience: Audience | UnsetType | None = UNSET  # null: everybody
    limit_by: str | UnsetType = UNSET  # left out: `sub`
    # For operators only.
    limit_group: str | UnsetType | None = UNSET
    pass_work: int | UnsetType = UNSET
    serve_per_s: int | UnsetType | None = UNSET  # as the sale was announced with it
    beacon: bool | UnsetType = UNSET  # its draw waits for a public value
    list_buyers: int | UnsetType = UNSET  # how many are on its list
    published: bool | UnsetType = UNSET
    external_id: str | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    waits_for_codes: bool | UnsetType = UNSET  # it has too few for this round, which is paused until it has enough


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


class UnitCounts(msgspec.Struct, kw_only=True):
    """total = available + queued + unpaid + paid + kept + returning + dead; sold = unpaid + paid + kept."""

    total: int
    available: int
    queued: int
    unpaid: int
    paid: int
    kept: int  # of refunded orders, and not back on sale
    returning: int
    dead: int
    sold: int
    next_return_at: str | None  # when the next unpaid order is over
    orders: int  # written so far; orders, not units
    lapsed: int  # of these, cancelled or not paid in time


class ItemCustody(UnitCounts, kw_only=True):
    item_id: str
    title: str


class Custody(UnitCounts, kw_only=True):
    round: str
    items: list[ItemCustody] | UnsetType = UNSET  # left out where there are none; together they are the round's


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
    explanation: str | None = None  # the reason that an operator gave, who wanted it
    refused: str | None = None  # what the provider said when it said no for good; asked again once an hour


class Refunds(msgspec.Struct):
    refunds: list[Refund]


class LiveItem(msgspec.Struct, kw_only=True):
    item_id: str
    available: int


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
    items: list[LiveItem] | UnsetType = UNSET  # left out where there are none, or while the gate does not have them


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
    cpu_s: float  # time of processors used since its start
    memory_bytes: int  # that it has now; 0: not known there


class Live(msgspec.Struct, kw_only=True):
    server_time: str
    sales: list[LiveSale]
    answers: Answers
    nodes: list[Node]


class ServerLook(msgspec.Struct, kw_only=True):
    part: str  # gate | ledger | broker
    address: str  # without its password
    state: str  # ok | advice | mend | away
    says: str
    answered_ms: float | None  # until all questions were answered; null: it is away
    mend: list[str]  # promises do not hold until this is done
    advice: list[str]


class SettingValue(msgspec.Struct, kw_only=True):
    variable: str
    value: str  # a secret is ***
    default: str
    unit: str


class System(msgspec.Struct, kw_only=True):
    server_time: str
    version: str
    rehearsal: str  # on | off
    servers: list[ServerLook]
    settings: list[SettingValue]  # of the process that was asked


class OrderEvent(msgspec.Struct, kw_only=True):
    at: str
    before: str | None
    state: str
    cause: str


class FoundPayment(msgspec.Struct, kw_only=True):
    """Money that was taken. It pays for an order, came late and `waits` for a decision, or is refunded, as may also be
    what has paid for an order."""

    payment_id: str
    provider: str
    amount_cents: Cents
    currency: Currency
    at: str
    order_id: str  # the order that it was meant for
    pays: str | None  # the order that is paid with it: another one, if it came late
    waits: bool
    refund: Refund | None  # the last
    refunds: list[Refund]  # a payment may go back in parts


class OrderAction(msgspec.Struct, kw_only=True):
    """What an operator did, and why."""

    at: str
    action: str  # cancel | refund
    amount_cents: Cents | None  # of a refund; None: all that was left
    return_unit: bool
    reason: str


class Voucher(msgspec.Struct, kw_only=True):
    id: str
    code: str
    state: str  # free | given | redeemed | void
    sale_id: str
    order_id: str | None  # that has it, or had it before it was void
    buyer: str | None
    given_at: str | None
    shown_at: str | None  # when its buyer or an operator first read it
    redeemed_at: str | None
    void_at: str | None


class FoundOrder(msgspec.Struct, kw_only=True):
    order: Order | None  # None: it was never written, see `letters`
    ordinal: int | None = None  # which of its sale's rounds it is of: 1 is the first; None: the sale does not repeat
    user: str | None  # the same as `buyer`
    buyer: str | None
    events: list[OrderEvent]
    letters: list[DeadLetter]
    payments: list[FoundPayment]
    actions: list[OrderAction]
    vouchers: list[Voucher]


class FoundOrders(msgspec.Struct):
    orders: list[FoundOrder]
    next: str | None = None  # give it as `after` to see the next ones; None: there are no more


class ExportedOrder(Order, kw_only=True):
    """An order of any buyer, as operators read it."""

    buyer: str
    # In an export: the provider's numbers of the payments for it, to compare with the provider's list.
    payment_ids: list[str] | UnsetType = UNSET


class Event(msgspec.Struct, kw_only=True):
    cursor: int  # grows with every event
    id: str  # the same whenever the event is told again
    type: str
    at: str
    # Of an order: the order as it was then, with `buyer` and `cause`. Of a sale or round: what it was from then on.
    data: dict[str, Any]


class Events(msgspec.Struct):
    events: list[Event]
    next: int  # give it as `after` to read on; it grows also when nothing that was asked for has happened


class NewCancellation(msgspec.Struct, forbid_unknown_fields=True):
    reason: Reason


class NewRefund(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`return_unit`: the order's units go back on sale, with whichever refund says so first."""

    return_unit: bool
    reason: Reason
    amount_cents: Annotated[Cents, Meta(ge=1, le=10**15)] | None = None  # all that is left, if left out


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
