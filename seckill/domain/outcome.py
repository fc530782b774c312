"""Every answer to a claim, and one row for each refusal with everything that other modules need to know about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto


class Outcome(StrEnum):
    """Every answer to a claim. The order below is the order of precedence: the first that applies wins.

    The values are what buyers see as `code` and what `admit.lua` returns, so there is no table to keep in step.
    """

    # an enum's own hash is written in Python, and each claim's outcome is looked up several times
    __hash__ = str.__hash__

    UNAUTHENTICATED = "unauthenticated"
    UNKNOWN_SALE = "unknown_sale"
    BLOCKED = "blocked"  # an operator has decided that this buyer buys nothing
    NOT_INVITED = "not_invited"  # the buyer is not of the sale's audience
    PASS_REQUIRED = "pass_required"  # noqa: S105 (not a password)
    PERSON_UNKNOWN = "person_unknown"  # the token does not name the person by whom the limit counts
    INVALID = "invalid"
    RATE_LIMITED = "rate_limited"
    NOT_READY = "not_ready"
    REPEATED = "repeated"  # known request id: the first answer again
    KEY_REUSED = "key_reused"
    COOLING_DOWN = "cooling_down"  # the buyer let an order lapse a moment ago
    LIMIT_REACHED = "limit_reached"
    JOIN_THE_LINE = "join_the_line"  # the units of a round that is not over belong to those in its line
    NOT_STARTED = "not_started"
    ENDED = "ended"
    PAUSED = "paused"
    OVERLOADED = "overloaded"
    SOLD_OUT = "sold_out"
    ADMITTED = "admitted"
    # Not a decision but the lack of one: the gate did not answer in time, so the claim may or may not have been
    # admitted.
    UNKNOWN = "unknown"


class RefusalKind(Enum):
    """The kind of a refusal, by which clients can treat refusals that they do not know by name."""

    NO_IDENTITY = auto()
    NO_SUCH_THING = auto()
    NOT_ALLOWED = auto()
    NOT_VALID = auto()
    TOO_SOON = auto()  # for this buyer: waiting helps
    CONFLICT = auto()  # with the state of the sale, or with what the buyer has
    GONE = auto()  # for good
    TROUBLE = auto()  # ours: the same claim may be tried again at once


@dataclass(frozen=True, slots=True)
class ClaimRefusal:
    kind: RefusalKind
    sentence: str  # for people
    of_round: bool = False  # only true of the round that was asked: the claim may be meant for the next one


REFUSALS: Mapping[Outcome, ClaimRefusal] = {
    Outcome.UNAUTHENTICATED: ClaimRefusal(RefusalKind.NO_IDENTITY, "Sign in first."),
    Outcome.UNKNOWN_SALE: ClaimRefusal(RefusalKind.NO_SUCH_THING, "There is no such sale."),
    Outcome.BLOCKED: ClaimRefusal(RefusalKind.NOT_ALLOWED, "You may not buy here; please ask the shop why."),
    Outcome.NOT_INVITED: ClaimRefusal(RefusalKind.NOT_ALLOWED, "This sale is for others; you are not invited to it."),
    Outcome.PASS_REQUIRED: ClaimRefusal(
        RefusalKind.NOT_ALLOWED, "This sale needs a pass: ask for one, and send it as the header Seckill-Pass."
    ),
    Outcome.PERSON_UNKNOWN: ClaimRefusal(
        RefusalKind.NOT_ALLOWED, "Your token does not say whom the limit of this sale counts by."
    ),
    Outcome.INVALID: ClaimRefusal(RefusalKind.NOT_VALID, "The request is not valid."),
    Outcome.RATE_LIMITED: ClaimRefusal(RefusalKind.TOO_SOON, "Too many requests, please slow down."),
    Outcome.NOT_READY: ClaimRefusal(
        RefusalKind.TROUBLE, "The sale is not ready to answer. Nothing was bought; please try again."
    ),
    Outcome.KEY_REUSED: ClaimRefusal(
        RefusalKind.NOT_VALID, "This Idempotency-Key was used for another request; use a new one."
    ),
    Outcome.COOLING_DOWN: ClaimRefusal(
        RefusalKind.TOO_SOON,
        "You have let an order of this sale lapse; please wait before you buy again.",
        of_round=True,
    ),
    Outcome.LIMIT_REACHED: ClaimRefusal(
        RefusalKind.CONFLICT, "You have reached the limit per buyer for this sale.", of_round=True
    ),
    Outcome.JOIN_THE_LINE: ClaimRefusal(
        RefusalKind.CONFLICT, "Units of this sale go to those in its line: join it.", of_round=True
    ),
    Outcome.NOT_STARTED: ClaimRefusal(RefusalKind.CONFLICT, "The sale has not started yet."),
    Outcome.ENDED: ClaimRefusal(RefusalKind.GONE, "The sale is over.", of_round=True),
    Outcome.PAUSED: ClaimRefusal(RefusalKind.CONFLICT, "The sale is paused; please try again later.", of_round=True),
    Outcome.OVERLOADED: ClaimRefusal(
        RefusalKind.TROUBLE, "Too many orders are waiting. Nothing was bought; please try again."
    ),
    Outcome.SOLD_OUT: ClaimRefusal(RefusalKind.CONFLICT, "Sold out.", of_round=True),
    Outcome.UNKNOWN: ClaimRefusal(
        RefusalKind.TROUBLE, "The result is unclear. Repeat with the same Idempotency-Key to learn it."
    ),
}
