"""What goes out over HTTP when operators look back: charts, what came of a sale, what happened to it, and alarms."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class HistoryPoint(msgspec.Struct, kw_only=True):
    """How a round stood at the end of a step. Units and money are of all that there ever were by then."""

    at: str
    round: str
    available: int | None  # null: the gate did not have the round, or it was over
    accepted_units: int | None
    persisted_units: int
    refused: dict[str, int]  # claims since the point before, by reason
    backlog: int  # the most in the step, as `lag_ms` and `system_p99_ms` are
    lag_ms: int
    system_p99_ms: float | None  # of all claims of all sales, within which 99 of 100 were answered
    unpaid_units: int | None  # counted every 10 s, as those below are
    paid_units: int | None
    taken_cents: int | None
    waiting: int | None  # in the line


class History(msgspec.Struct, kw_only=True):
    sale_id: str
    from_: str = msgspec.field(name="from")
    to: str
    step_s: int
    currency: str
    points: list[HistoryPoint]


class Money(msgspec.Struct, kw_only=True):
    """In minor units of the currency."""

    currency: str
    taken_cents: int
    refunded_cents: int
    refunding_cents: int  # of what is refunded, what the provider has not made yet
    net_cents: int


class Conversion(msgspec.Struct, kw_only=True):
    """What the engine knows of the way from looking to paying. Pages are cached and seen without it, so nobody counts
    who looked."""

    viewers: int | None  # always null
    presses: int  # claims, of which a person may make several: orders, and what was refused
    refused: dict[str, int]  # as far as it was noted: a process that stops takes its last second with it
    orders: int
    paid_orders: int
    orders_per_press: float | None
    paid_per_order: float | None


class ItemSummary(msgspec.Struct, kw_only=True):
    item_id: str
    title: str
    units: int
    sold_units: int
    paid_units: int
    sell_through: float
    orders: int
    lapsed: int
    net_cents: int


class Summary(msgspec.Struct, kw_only=True):
    sale_id: str
    round: str
    units: int
    sold_units: int
    paid_units: int
    sell_through: float  # of its units, which share is sold now
    begins_at: str
    first_order_at: str | None
    sold_out_at: str | None  # when as many units had been given out as there are
    seconds_to_sell_out: float | None
    returned_units: int
    lapsed: int  # orders that were cancelled or not paid in time
    lapse_rate: float
    money: list[Money]  # by currency
    money_of_all_rounds: list[Money]
    conversion: Conversion
    items: list[ItemSummary] | UnsetType = UNSET  # left out where there are none


class TimelineEntry(msgspec.Struct, kw_only=True):
    at: str
    kind: str
    round: str | None
    who: str | None  # null: the clock, buyers, or the engine itself
    why: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    facts: dict[str, Any]


class Timeline(msgspec.Struct, kw_only=True):
    sale_id: str
    entries: list[TimelineEntry]


class AlarmView(msgspec.Struct, kw_only=True):
    id: str
    what: str
    sale_id: str | None
    on: bool  # it lasts
    raised_at: str
    told_at: str  # the last time
    times: int
    resolved_at: str | None
    facts: dict[str, Any]
    runbook: str | None = None  # the page and the row that say what to do


class Alarms(msgspec.Struct):
    alarms: list[AlarmView]


class SaleStanding(msgspec.Struct, kw_only=True):
    sale_id: str
    round: str
    units: int
    sold_units: int
    available: int | None  # null: it is not on
    paid_units: int | None  # null: not counted
    net_cents: int | None  # of the price, what is paid and not refunded
    currency: str
    alarms: int  # that last now


class Overview(msgspec.Struct, kw_only=True):
    server_time: str
    sales: list[SaleStanding]
    alarms: list[AlarmView]  # all that last now, also those that are about no sale
