"""A shop's webhooks: where events are sent, and the states of a delivery. Pure."""

from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum

from seckill.domain.event import EventType, matching

DESCRIPTION_LENGTH_MAX = 200
WEBHOOKS_MAX = 50
TYPES_MAX = 50
TEST_EVENT = "webhook.test"


class DeliveryState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"  # given up; only an operator sends it again


class DeliveryTrouble(StrEnum):
    """Why the endpoint did not answer. There are no more details, so that a person who may name addresses learns
    nothing about the servers behind them."""

    NO_ANSWER = "no_answer"
    NOT_ALLOWED = "not_allowed"  # the name stands for an address that webhooks do not go to
    EVENT_GONE = "event_gone"  # the feed does not have it any more


class DisabledBy(StrEnum):
    OPERATOR = "operator"
    FAILING = "failing"  # nothing was delivered for days
    GONE = "gone"  # it has answered 410, which means this


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
    retry_ms: int | None  # not tried again before this time
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
