"""Webhooks: what the ledger keeps of them, and what sends a delivery."""

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
    """None: as it is."""

    url: str | None = None
    types: tuple[str, ...] | None = None
    sale_id: int | None = None
    all_sales: bool = False  # of no certain sale any more
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
    """What came of one try."""

    status: int | None  # what the endpoint answered
    trouble: DeliveryTrouble | None = None  # or why it did not
    took_ms: int | None = None
    retry_after_s: float | None = None  # what it asked for

    @property
    def is_ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDelivery:
    """An event on its way to an endpoint that has a row: it waits, or is one of the last."""

    id: int
    event_id: str  # the same for all endpoints, and whenever it is sent again
    type: str
    cursor: int | None  # of the event in the feed; None: a test, which is in no feed
    subject: str  # deliveries of one subject, such as an order, are made in their order
    state: DeliveryState
    by_hand: bool  # an operator wants it sent, whatever else waits
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
    """One that has a row was tried once more."""

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
    """What a keeper has to tell of an endpoint that it has taken; in one transaction with the cursor."""

    cursor: int
    new: Sequence[NewDelivery] = ()
    tried: Sequence[TriedDelivery] = ()
    failures: int = 0
    rest_s: float | None = None  # None: it need not be left alone
    delivered: bool = False  # something was
    recovered: bool = False  # after it had failed: what waits for it need not wait any longer
    missed: Missed | None = None
    is_gone: bool = False  # it has said so
    give_up_s: float = 0.0
    leave: bool = False  # another keeper may take it


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    webhook: Webhook
    token: str  # only who has it may note something


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    webhook: Webhook  # as it is now
    disabled: DisabledBy | None  # …by what was noted
    given_up: int  # deliveries


class WebhookDeskLedger(Protocol):
    """For what operators do to webhooks."""

    async def create_webhook(self, draft: WebhookDraft, most: int) -> Webhook | None:
        """Events are sent to it from now on. None: there are as many as there may be."""

    async def list_webhooks(self, webhook_id: int | None = None) -> list[WebhookStatus]:
        """All of them, or one."""

    async def change_webhook(self, webhook_id: int, change: WebhookChange) -> Webhook | None:
        """Enabled again, or with another address, it is asked at once, and what waited for it is tried anew."""

    async def rotate_secret(self, webhook_id: int, secret: str, overlap_s: float) -> Webhook | None:
        """The one before signs as well, for so long."""

    async def delete_webhook(self, webhook_id: int) -> bool: ...

    async def deliveries(
        self, webhook_id: int, state: DeliveryState | None, before: int | None, count: int
    ) -> list[WebhookDelivery]:
        """The newest first."""

    async def delivery(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None: ...

    async def send_again(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None:
        """As soon as possible. One that waits keeps its place behind what waits before it."""


class WebhookTestLedger(Protocol):
    async def send_test(self, webhook_id: int, event_id: str) -> WebhookDelivery | None: ...

    async def delivery(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None: ...


class DispatchLedger(Protocol):
    """For sending. What a keeper has taken, no other keeper works at until the lease is over."""

    async def take_webhooks(self, count: int, lease_s: float) -> list[Lease]:
        """Those for which there is something to do, and which no one else has taken."""

    async def due_deliveries(self, webhook_id: int, count: int) -> list[WebhookDelivery]:
        """Those that are to be tried now, and of each subject the first only; those by hand at once."""

    async def webhook(self, webhook_id: int) -> Webhook | None:
        """As it is now."""

    async def held_subjects(self, webhook_id: int, subjects: Collection[str]) -> Set[str]:
        """Of these, those of which a delivery waits: what follows has to wait behind it."""

    async def waiting_deliveries(self, webhook_id: int) -> int: ...

    async def note_deliveries(self, lease: Lease, progress: Progress, lease_s: float) -> Noted | None:
        """All of it or nothing. None: the lease is over, or the webhook is gone, and nothing was noted."""

    async def prune_deliveries(self, kept_ms: int, count: int) -> int:
        """Forgets what does not wait and is older."""

    async def webhook_lag(self) -> "WebhookLag": ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookLag:
    """Over all endpoints that are enabled."""

    age_ms: int  # of the oldest event that one of them has not been asked about
    waiting: int  # deliveries
    failing: int  # endpoints


class WebhookLedger(WebhookDeskLedger, WebhookTestLedger, DispatchLedger, Protocol):
    """All that the ledger keeps of webhooks."""


class WebhookSender(Protocol):
    async def send(self, target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> Sent:
        """One try, bounded in time. Never raises for what the other side does."""
