"""Settings about how long to wait for buyers and orders, and how much may wait."""

from dataclasses import dataclass, field

from seckill.settings import kinds
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class OrderSettings:
    pay_within_s: int = field(
        default=900,
        metadata=about(kinds.whole(1, 2_592_000), "Time to pay for an order when the sale does not say.", "seconds"),
    )
    cool_down_s: int = field(
        default=5,
        metadata=about(
            kinds.whole(0, 3_600),
            "How long a buyer who cancelled an order, or did not pay for it in time, waits before buying again, when "
            "the sale does not say; twice as long with each such order of a round, up to an hour; 0: not at all.",
            "seconds",
        ),
    )
    lapse_alarm_share: float = field(
        default=0.5,
        metadata=about(
            kinds.decimal(0, 1),
            "Share of a round's orders, cancelled or not paid in time, at which there is an alarm; 0: never.",
        ),
    )
    lapse_alarm_orders: int = field(
        default=20,
        metadata=about(
            kinds.whole(1, 1_000_000_000), "Orders that a round must have before that share counts.", "orders"
        ),
    )
    confirm_within_s: float = field(
        default=5.0,
        metadata=about(
            kinds.decimal(0.1, 30),
            "How long a claim waits to be written at most, in a sale whose `confirm` is `ledger`; then it is answered "
            "`unknown`, to be repeated with the same key.",
            "seconds",
        ),
    )
    retry_delays_s: tuple[float, ...] = field(
        default=(5.0, 10.0, 30.0),
        metadata=about(
            kinds.delays, "Waits before a failed order is tried again; then it is a dead letter.", "seconds"
        ),
    )
    claim_idle_s: float = field(
        default=5.0,
        metadata=about(kinds.decimal(0.1, 3600), "Silence after which a worker's entries go to another.", "seconds"),
    )
    backlog_max: int = field(
        default=100_000,
        metadata=about(
            kinds.whole(1, 100_000_000),
            "Orders waiting in a lane at which more claims are refused as `overloaded`.",
            "orders",
        ),
    )
    pace_after_s: float = field(
        default=1.0,
        metadata=about(
            kinds.decimal(0, 3600),
            "In a sale with more units than a lane may have waiting: once this much of the ledger's work waits, claims "
            "are let in no faster than orders are written; 0: they never wait for that.",
            "seconds",
        ),
    )
