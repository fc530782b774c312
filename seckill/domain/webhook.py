"""A shop's webhooks: where events are sent to, what becomes of a delivery, and how long it is tried. Pure."""

from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum

from seckill.domain.event import EventType, matching

DESCRIPTION_LENGTH_MAX = 200
WEBHOOKS_MAX = 50
TYPES_MAX = 50
TEST_EVENT = "webhook.test"

# One try, from asking what the name stands for to the end of the answer.
SEND_WITHIN_S = 15.0
# A delivery is tried again after this, doubled each time up to the maximum.
RETRY_S_MIN = 5.0
RETRY_S_MAX = 3600.0
# What was not delivered for so long is given up; an endpoint to which nothing was is disabled.
GIVE_UP_S = 3 * 86_400.0
# After so many failures with nothing in between, it is the endpoint that fails and not a delivery: it is left alone for
# a while, and then asked with one delivery at a time.
FAILURES_MAX = 5


class DeliveryState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"  # given up; only an operator sends it again


class DeliveryTrouble(StrEnum):
    """Why there was no answer of the endpoint. Not in more detail: who may name addresses learns nothing about what is
    behind them."""

    NO_ANSWER = "no_answer"
    NOT_ALLOWED = "not_allowed"  # the name stands for an address that webhooks do not go to
    EVENT_GONE = "event_gone"  # the feed does not have it any more


class DisabledBy(StrEnum):
    OPERATOR = "operator"
    FAILING = "failing"  # nothing was delivered for days
    GONE = "gone"  # it has answered 410, which says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    id: int
    url: str
    types: tuple[str, ...]  # as the operator has written them, such as `order.*`; empty: all
    sale_id: int | None  # None: of all sales
    description: str
    enabled: bool
    disabled_by: DisabledBy | None
    secrets: tuple[str, ...]  # the newest first; two while they overlap
    overlap_until_ms: int | None
    cursor: int  # everything up to here is delivered, given up, or waits as a delivery of its own
    created_ms: int
    delivered_ms: int | None  # the last time
    failures: int  # since then
    failing_ms: int | None  # the first of them
    retry_ms: int | None  # it is left alone until then
    # When events were pruned from the feed before they were sent: when that was noticed, and which.
    missed_ms: int | None
    missed_after: int | None
    missed_until: int | None

    @property
    def wanted(self) -> Set[EventType] | None:
        """None: all."""
        return frozenset(type_ for word in self.types for type_ in matching(word)) if self.types else None

    def sends_like(self, other: "Webhook") -> bool:
        """The same events to the same place with the same secrets."""
        mine = (self.url, self.types, self.sale_id, self.secrets, self.enabled)
        return mine == (other.url, other.types, other.sale_id, other.secrets, other.enabled)


def retry_after_s(tries: int, chance: float) -> float:
    """`chance`, from 0 to 1, spreads what failed together."""
    return min(RETRY_S_MIN * 2.0 ** min(tries - 1, 30), RETRY_S_MAX) * (0.75 + 0.5 * chance)


def rest_s(failures: int, chance: float) -> float:
    """How long an endpoint is left alone that has failed so often."""
    return retry_after_s(failures - FAILURES_MAX + 1, chance)
