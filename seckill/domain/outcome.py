from enum import StrEnum


class Outcome(StrEnum):
    """Every answer to a claim. The order below is the order of precedence: the first that applies wins.

    The values are what buyers see as `code` and what `admit.lua` returns, so there is no table to keep in step.
    """

    UNAUTHENTICATED = "unauthenticated"
    UNKNOWN_SALE = "unknown_sale"
    INVALID = "invalid"
    RATE_LIMITED = "rate_limited"
    NOT_READY = "not_ready"
    REPEATED = "repeated"  # known request id: the first answer again
    KEY_REUSED = "key_reused"
    COOLING_DOWN = "cooling_down"  # the buyer let an order lapse a moment ago
    LIMIT_REACHED = "limit_reached"
    NOT_STARTED = "not_started"
    ENDED = "ended"
    PAUSED = "paused"
    OVERLOADED = "overloaded"
    SOLD_OUT = "sold_out"
    ADMITTED = "admitted"
    # Not a decision but the lack of one: the gate did not answer in time, so the claim may or may not have been
    # admitted.
    UNKNOWN = "unknown"
