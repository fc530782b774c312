"""The message that is sent: the event as the API shows it, and the headers that prove its origin."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec

from seckill import __version__
from seckill.domain.webhook import TEST_EVENT, Webhook
from seckill.domain.webhook_signature import sign
from seckill.ports.feed import FeedEvent

BODY_BYTES_MAX = 64 * 1024
# If a message would be too long, parts of `data` longer than this are left out.
PART_BYTES_MAX = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDocument:
    """An event with the field names of the API."""

    type: str
    at: str
    data: dict[str, object]


# Public ids and times are written in the API's way, which the engine does not know.
Describe = Callable[[FeedEvent], Awaitable[EventDocument]]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookMessage:
    id: str
    body: bytes
    type: str = ""
    at_ms: int = 0  # when it happened
    trace: str = ""  # the trace of the order that it is about

    def headers(self, webhook: Webhook, now_s: int) -> Sequence[tuple[str, str]]:
        return (
            ("Content-Type", "application/json"),
            ("User-Agent", f"seckill/{__version__}"),
            ("webhook-id", self.id),
            ("webhook-timestamp", str(now_s)),
            ("webhook-signature", sign(webhook.secrets, self.id, now_s, self.body)),
        )


def message_of(event_id: str, document: EventDocument) -> WebhookMessage:
    body = _written(document.type, document.at, document.data)
    if len(body) > BODY_BYTES_MAX:
        parts = {name: value for name, value in document.data.items() if _size(value) <= PART_BYTES_MAX}
        body = _written(document.type, document.at, parts | {"truncated": True})
    return WebhookMessage(id=event_id, body=body)


def message_of_test(event_id: str, webhook: Webhook, now_s: float) -> WebhookMessage:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))
    data: dict[str, object] = {"webhook_id": str(webhook.id)}
    return message_of(event_id, EventDocument(type=TEST_EVENT, at=at, data=data))


def subject_of(event: FeedEvent) -> str:
    """Deliveries of one subject are made in order. A subject is an order, an entry of a line, or a sale with its
    rounds."""
    if "entry_number" in event.facts:
        return f"entry {event.facts['entry_number']}"
    number = int(event.order.number) if event.order is not None else event.facts.get("order_number")
    return f"sale {event.sale_id}" if number is None else f"order {number}"


def _written(type_: str, timestamp: str, data: dict[str, object]) -> bytes:
    return msgspec.json.encode({"type": type_, "timestamp": timestamp, "data": data})


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))
