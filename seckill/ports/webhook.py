"""Webhooks: what the ledger stores about them, and the part that sends deliveries."""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from seckill.domain.webhook import DeliveryState, DeliveryTrouble, DisabledBy, Webhook
from seckill.domain.webhook_target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDraft:
    url: str
    types: tuple[str, ...]
    sale_id: int | None
    description: str
    enabled: bool
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChange:
    """A change of a webhook. None: the value stays."""

    url: str | None = None
    types: tuple[str, ...] | None = None
    sale_id: int | None = None
    all_sales: bool = False  # no longer only of one sale
    description: str | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookStatus:
    webhook: Webhook
    behind: int  # events of the feed that it has not been asked about yet
    waiting: int  # deliveries
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The result of one try."""

    status: int | None  # what the endpoint answered
    trouble: DeliveryTrouble | None = None  # or why it did not
    took_ms: int | None = None
    retry_after_s: float | None = None  # what it asked for

    @property
    def is_ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    """A delivery with a row: it waits, or is one of the last successful ones."""

    id: int
    event_id: str  # the same for all endpoints, and whenever it is sent again
    type: str
    cursor: int | None  # of the event in the feed; None: a test, which is in no feed
    subject: str  # deliveries of one subject, such as an order, are made in order
    state: DeliveryState
    by_hand: bool  # an operator wants it sent, even if others wait
    tries: int
    created_ms: int
    tried_ms: int | None
    next_ms: int | None
    last: Sent | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    event_id: str
    type: str
    cursor: int
    subject: str
    state: DeliveryState
    last: Sent | None  # None: not tried yet
    next_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedDelivery:
    """A delivery with a row that was tried once more."""

    event_id: str
    state: DeliveryState
    last: Sent
    next_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Events that were pruned from the feed before they were sent: those after this cursor, up to that one."""

    after: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a keeper notes about an endpoint that it has taken, in one transaction with the cursor."""

    cursor: int
    new: Sequence[NewDelivery] = ()
    tried: Sequence[TriedDelivery] = ()
    failures: int = 0
    rest_s: float | None = None  # None: it may be tried at once
    delivered: bool = False  # something was delivered
    recovered: bool = False  # it works again after failing: waiting deliveries become due
    missed: Missed | None = None
    is_gone: bool = False  # the endpoint has answered that it is gone
    give_up_s: float = 0.0
    leave: bool = False  # another keeper may take it


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    webhook: Webhook
    token: str  # only the keeper that has it may note anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    webhook: Webhook  # as it is now
    disabled: DisabledBy | None  # if the notes have disabled it
    given_up: int  # deliveries


class WebhookDeskLedger(Protocol):
    """For what operators do to webhooks."""

    async def create_webhook(self, draft: WebhookDraft, most: int) -> Webhook | None:
        """Creates a webhook, to which events are sent from now on. Returns None if there are as many as there may
        be."""

    async def list_webhooks(self, webhook_id: int | None = None) -> list[WebhookStatus]:
        """All of them, or one."""

    async def change_webhook(self, webhook_id: int, change: WebhookChange) -> Webhook | None:
        """If the webhook is enabled again, or gets another address, it is tried at once, including waiting
        deliveries."""

    async def rotate_secret(self, webhook_id: int, secret: str, overlap_s: float) -> Webhook | None:
        """Sets a new secret. The old one goes on signing as well for `overlap_s`."""

    async def delete_webhook(self, webhook_id: int) -> bool: ...

    async def deliveries(
        self, webhook_id: int, state: DeliveryState | None, before: int | None, count: int
    ) -> list[WebhookDelivery]:
        """The newest first."""

    async def delivery(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None: ...

    async def send_again(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None:
        """Sends a delivery again as soon as possible. A waiting one keeps its place behind those before it."""


class WebhookTestLedger(Protocol):
    async def send_test(self, webhook_id: int, event_id: str) -> WebhookDelivery | None: ...

    async def delivery(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None: ...


class DispatchLedger(Protocol):
    """For sending. While a keeper has a lease on an endpoint, no other keeper works on it."""

    async def take_webhooks(self, count: int, lease_s: float) -> list[Lease]:
        """Takes webhooks that have something to do and that no other keeper has."""

    async def due_deliveries(self, webhook_id: int, count: int) -> list[WebhookDelivery]:
        """Returns deliveries that are due, of each subject only the first; those by hand are due at once."""

    async def webhook(self, webhook_id: int) -> Webhook | None:
        """As it is now."""

    async def held_subjects(self, webhook_id: int, subjects: Collection[str]) -> Set[str]:
        """Returns those of these subjects that have a waiting delivery, behind which others have to wait."""

    async def waiting_deliveries(self, webhook_id: int) -> int: ...

    async def note_deliveries(self, lease: Lease, progress: Progress, lease_s: float) -> Noted | None:
        """Notes everything or nothing. Returns None if nothing was noted, because the lease is over or the webhook is
        gone."""

    async def prune_deliveries(self, kept_ms: int, count: int) -> int:
        """Deletes older deliveries that do not wait."""

    async def webhook_lag(self) -> "WebhookLag": ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookLag:
    """How far enabled endpoints are behind, taken together."""

    age_ms: int  # the age of the oldest event that has not been sent to one of them
    waiting: int  # deliveries
    failing: int  # endpoints


class WebhookLedger(WebhookDeskLedger, WebhookTestLedger, DispatchLedger, Protocol):
    """Everything that the ledger stores about webhooks."""


class WebhookSender(Protocol):
    async def send(self, target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> Sent:
        """Tries once, bounded in time. Never raises because of what the other side does."""
