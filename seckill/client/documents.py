"""The API's answers. `seckill/web/schemas.py` describes the same for servers; a test compares the two."""

from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from seckill.domain.door import PassKind
from seckill.domain.order import OrderState
from seckill.domain.sale import Confirm, SaleState
from seckill.domain.voucher import VoucherState


class Item(msgspec.Struct, frozen=True, kw_only=True):
    item_id: str  # what a claim names
    title: str
    units: int
    price_cents: int
    image: str | None
    sold_out: bool  # for now: a unit may come back
    external_id: str | UnsetType | None = UNSET  # for operators only


class EarlyAccess(msgspec.Struct, frozen=True):
    groups: list[str]
    minutes: int


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    groups: list[str]
    early: list[EarlyAccess]
    list_: bool = msgspec.field(name="list")


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
    confirm: Confirm
    state: SaleState
    round: str
    repeat: str | None
    timezone: str
    next_rounds: list[datetime]
    server_time: datetime
    images: list[str]
    list_price_cents: int | None
    pass_: PassKind = msgspec.field(name="pass")
    order: Literal["press", "arrival", "draw"]  # how buyers get units
    waiting_list: bool
    lined: bool  # units now go to buyers in the line
    vouchers: bool  # it gives a code with each unit
    left_percent: int | None = None  # how much of the round is left, in steps; None: it is not on
    items: list[Item] | UnsetType = UNSET  # left out where there are none; `price_cents` is the lowest of theirs
    # Left out of the list of all sales, unless an operator asks.
    description: str | UnsetType = UNSET
    terms_url: str | UnsetType | None = UNSET
    delivery: str | UnsetType = UNSET
    return_url: str | UnsetType | None = UNSET
    audience: Audience | UnsetType | None = UNSET  # None: every buyer
    limit_by: str | UnsetType = UNSET
    # For operators only.
    limit_group: str | UnsetType | None = UNSET
    pass_work: int | UnsetType = UNSET
    serve_per_s: int | UnsetType | None = UNSET  # as the sale was announced with it
    beacon: bool | UnsetType = UNSET  # its draw waits for a public value
    list_buyers: int | UnsetType = UNSET
    published: bool | UnsetType = UNSET
    external_id: str | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    waits_for_codes: bool | UnsetType = UNSET  # it has too few for this round, which is paused until it has enough


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    pass_: str = msgspec.field(name="pass")
    expires_at: datetime


class PassAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A pass, or the challenge before it: `kind` is `work` or `check`."""

    pass_: str | None = msgspec.field(default=None, name="pass")
    expires_at: datetime | None = None
    kind: str | None = None
    challenge: str = ""
    salt: str = ""
    signature: str = ""
    maxnumber: int = 0
    ticket: str = ""
    site_key: str = ""


class Sales(msgspec.Struct, frozen=True, kw_only=True):
    sales: list[Sale]
    server_time: datetime
    older: str | None = None  # give it as `before` to see those that ended earlier


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a round, under the same names as in a sale."""

    round: str
    units: int
    limit_per_buyer: int
    cool_down_s: int
    begins_at: datetime
    ends_at: datetime
    state: SaleState


class Rounds(msgspec.Struct, frozen=True, kw_only=True):
    rounds: list[Round]


class UnitCounts(msgspec.Struct, frozen=True, kw_only=True):
    """total = available + queued + unpaid + paid + kept + returning + dead; sold = unpaid + paid + kept."""

    total: int
    available: int
    queued: int
    unpaid: int
    paid: int
    kept: int  # units of refunded orders that did not go back on sale
    returning: int
    dead: int
    sold: int
    next_return_at: datetime | None
    orders: int
    lapsed: int


class ItemCustody(UnitCounts, frozen=True, kw_only=True):
    item_id: str
    title: str


class Custody(UnitCounts, frozen=True, kw_only=True):
    round: str
    items: list[ItemCustody] | UnsetType = UNSET  # left out where there are none; together they are the round's


class UploadedImage(msgspec.Struct, frozen=True, kw_only=True):
    url: str  # give it to `images` of a sale; the picture at this address never changes
    width: int
    height: int


class ItemCodes(msgspec.Struct, frozen=True, kw_only=True):
    item_id: str
    title: str
    free: int  # codes for this item alone
    needed: int  # units of it that may still be paid for


class VoucherCounts(msgspec.Struct, frozen=True, kw_only=True):
    """codes = free + given + redeemed + void."""

    codes: int
    free: int
    given: int  # and not redeemed
    redeemed: int
    void: int  # codes of refunded orders
    missing: int  # codes that are still needed for every unit of current and coming rounds
    items: tuple[ItemCodes, ...] = ()  # only in a sale that has items


class VouchersAdded(VoucherCounts, frozen=True, kw_only=True):
    added: int  # with this upload


class Voucher(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    code: str
    state: VoucherState
    sale_id: str
    order_id: str | None  # the order that has the code, or had it before it was void
    buyer: str | None
    given_at: datetime | None
    shown_at: datetime | None
    redeemed_at: datetime | None
    void_at: datetime | None


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """A unit is reserved. While its `state` is `queued`, the order is being written."""

    order_id: str
    state: OrderState
    sale_id: str
    round: str
    quantity: int
    item_id: str | UnsetType = UNSET  # only in a sale that has items


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
    replaced_by: str | None = None  # if it was paid after its end: the order that was paid with that money instead
    refunded_cents: int = 0  # of its price, so far; a paid order may be refunded in parts
    closed_by: str | None = None  # `operator`: the shop has cancelled or refunded it; else the buyer or the clock did
    metadata: dict[str, Any] | UnsetType = UNSET  # as it was claimed with; left out where there is none
    codes: list[str] | UnsetType = UNSET  # one for each unit that is paid; left out where the sale gives none
    # Only in a sale that has items.
    item_id: str | UnsetType = UNSET
    item_title: str | UnsetType = UNSET
    item_external_id: str | UnsetType | None = UNSET  # for operators only


class OrderToPay(Order, frozen=True, kw_only=True):
    """The answer of `pay`."""

    pay_url: str | None = None  # where the buyer has to go, if it is still unpaid
    pay_qr: str | None = None  # the same as a picture (data:…) to scan, if it is for an app


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    orders: list[Order]
    next: str | None  # give it as `cursor` to see older ones


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A buyer's place in the line of a sale, see docs/line.md."""

    entry_id: str
    sale_id: str
    round: str
    state: str  # waiting, served, left or passed_over
    quantity: int
    place: int | None  # None: the draw is not made yet
    ahead: int | None  # people who are served before; None: no place yet, or not waiting any more
    of: int  # people who wait
    units: int  # of the round, or of the item
    chance: float | None  # of getting a unit; None: not known
    joined_at: datetime
    receipt: str  # signed: keep it
    order_id: str | None = None  # once it is served
    reason: str | None = None  # why it was removed or passed over
    item_id: str | UnsetType = UNSET  # only in a sale that has items
    buyer: str | UnsetType = UNSET  # for operators only
    metadata: dict[str, Any] | UnsetType = UNSET  # as it was joined with; left out where there is none


class OwnEntries(msgspec.Struct, frozen=True, kw_only=True):
    entries: list[Entry]


class ExportedOrder(Order, frozen=True, kw_only=True):
    """An order as operators see it."""

    buyer: str = ""  # earlier versions do not say it when an order is cancelled or refunded
    payment_ids: list[str] = []  # in an export: the provider's numbers of the payments for it


class Event(msgspec.Struct, frozen=True, kw_only=True):
    cursor: int  # grows with every event: keep it, and follow on after it
    id: str  # the same if the event is delivered again
    type: str
    at: datetime
    data: dict[str, Any]


class Events(msgspec.Struct, frozen=True, kw_only=True):
    events: list[Event]
    next: int  # give it as `after` to read on


class MissedEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Events that were pruned from the feed before they were sent: those after a cursor, up to another."""

    at: datetime
    after: int
    until: int


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    url: str
    types: list[str] | None
    sale_id: str | None
    description: str
    enabled: bool
    disabled_by: str | None  # operator | failing | gone
    created_at: datetime
    delivered_at: datetime | None  # the last time
    failing_since: datetime | None
    failures: int
    next_try_at: datetime | None
    behind: int  # events that it has not been asked about yet
    waiting: int  # deliveries that wait to be tried again
    failed: int  # deliveries that were given up
    missed: MissedEvents | None
    overlap_until: datetime | None  # until then the secret before signs as well
    secret: str | UnsetType = UNSET  # only when it was just made


class Webhooks(msgspec.Struct, frozen=True, kw_only=True):
    webhooks: list[Webhook]


class WebhookDelivery(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    event_id: str  # the `webhook-id` that it is sent with
    type: str
    cursor: int | None
    state: str  # waiting | delivered | failed
    tries: int
    created_at: datetime
    tried_at: datetime | None
    next_try_at: datetime | None
    status: int | None
    trouble: str | None  # no_answer | not_allowed | event_gone
    took_ms: int | None


class WebhookDeliveries(msgspec.Struct, frozen=True, kw_only=True):
    deliveries: list[WebhookDelivery]
    next: str | None  # give it as `after` to see earlier ones


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


class ErasedBuyer(msgspec.Struct, frozen=True, kw_only=True):
    orders: int
    entries: int
    letters: int
    events: int
    lists: int


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    says: str
    round: str | None
    sale_id: str | None
    order_id: str | None
    order_number: str | None
    user: str | None  # the same as `buyer`
    buyer: str | None = None  # an earlier version of the API leaves it out


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
