"""What goes in and out over HTTP about webhooks."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seckill.domain.goods import URL_LENGTH_MAX
from seckill.domain.webhook import DESCRIPTION_LENGTH_MAX, TYPES_MAX

WebhookUrl = Annotated[str, Meta(min_length=1, max_length=URL_LENGTH_MAX, description="https or http.")]
_TYPES = "Types of events as in the feed; `order.*` stands for all that begin with it."
WebhookTypes = Annotated[
    list[Annotated[str, Meta(max_length=64)]], Meta(min_length=1, max_length=TYPES_MAX, description=_TYPES)
]
WebhookDescription = Annotated[str, Meta(max_length=DESCRIPTION_LENGTH_MAX)]


class NewWebhook(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    url: WebhookUrl
    types: WebhookTypes | None = None  # all, if left out
    sale_id: str | None = None  # only of this sale
    description: WebhookDescription = ""
    enabled: bool = True


class WebhookPatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    url: WebhookUrl | UnsetType = UNSET
    types: WebhookTypes | UnsetType | None = UNSET  # null: all
    sale_id: str | UnsetType | None = UNSET  # null: of all sales
    description: WebhookDescription | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET  # true: what waits is tried at once


class NewWebhookSecret(msgspec.Struct, forbid_unknown_fields=True):
    # How long the secret before signs as well.
    overlap_hours: Annotated[int, Meta(ge=0, le=168)] = 24


class MissedEvents(msgspec.Struct, kw_only=True):
    """Events that were pruned from the feed before they were sent."""

    at: str  # when that was noticed
    after: int  # their cursors: after this one…
    until: int  # …up to this one


class Webhook(msgspec.Struct, kw_only=True):
    id: str
    url: str
    types: list[str] | None
    sale_id: str | None
    description: str
    enabled: bool
    disabled_by: str | None  # operator | failing | gone
    created_at: str
    delivered_at: str | None  # the last time
    failing_since: str | None
    failures: int  # since then
    next_try_at: str | None  # it is left alone until then
    behind: int  # events that it has not been asked about yet
    waiting: int  # deliveries that wait to be tried again
    failed: int  # deliveries that were given up, as long as they are kept
    missed: MissedEvents | None
    overlap_until: str | None  # until then the secret before signs as well
    secret: str | UnsetType = UNSET  # only when it is made


class Webhooks(msgspec.Struct):
    webhooks: list[Webhook]


class WebhookDelivery(msgspec.Struct, kw_only=True):
    id: str
    event_id: str  # the `webhook-id` that it is sent with
    type: str
    cursor: int | None  # of the event in the feed; None: a test
    state: str  # waiting | delivered | failed
    tries: int
    created_at: str
    tried_at: str | None
    next_try_at: str | None
    status: int | None  # what the endpoint has answered to the last try
    trouble: str | None  # why there was no answer: no_answer | not_allowed | event_gone
    took_ms: int | None


class WebhookDeliveries(msgspec.Struct):
    deliveries: list[WebhookDelivery]
    next: str | None  # give it as `after` to see earlier ones
