"""For receivers of webhooks: checks whether a webhook comes from us and is new, and reads it."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from seckill.client.errors import ClientError
from seckill.domain.webhook_signature import fits

# An intercepted message that is sent again is refused after this time.
TOLERANCE_S = 300.0


class WebhookNotGenuine(ClientError):
    """Answer such a request with 400 or 401, and do nothing of what it says."""


class ReceivedEvent(msgspec.Struct, frozen=True, kw_only=True):
    id: str  # the same if the event is sent again: ignore events that you have already dealt with
    type: str
    at: datetime
    data: dict[str, Any]


class _Body(msgspec.Struct):
    type: str
    timestamp: datetime
    data: dict[str, Any]


_body = msgspec.json.Decoder(_Body)


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now_s: float | None = None,
) -> ReceivedEvent:
    """Returns the event if it was signed with one of the secrets, not long ago. `body` is the request's body, byte for
    byte; `headers` are its headers, with names in any spelling. Raises WebhookNotGenuine, and ValueError for a
    malformed secret."""
    named = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp, signatures = (named[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    except KeyError as error:
        raise WebhookNotGenuine(f"The header {error.args[0]} is missing.") from None
    keys = (secrets,) if isinstance(secrets, str) else tuple(secrets)
    if not keys:
        raise ValueError("give at least one secret")
    if not fits(keys, message_id, timestamp, body, signatures):
        raise WebhookNotGenuine("The signature does not fit the body and any of the secrets.")
    sent_s = int(timestamp) if timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16 else None
    now_s = time.time() if now_s is None else now_s
    if sent_s is None or abs(now_s - sent_s) > tolerance_s:
        raise WebhookNotGenuine(f"It was signed more than {tolerance_s:g} s before or after now, by this clock.")
    try:
        told = _body.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WebhookNotGenuine("The body is none of ours.") from error
    return ReceivedEvent(id=message_id, type=told.type, at=told.timestamp, data=told.data)
