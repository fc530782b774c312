"""What operators do to webhooks."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Protocol

from seckill.domain.webhook import WEBHOOKS_MAX, DeliveryState, Webhook
from seckill.domain.webhook_signature import SECRET_BYTES, written_secret
from seckill.errors import NotPossible
from seckill.ports.webhook import (
    WebhookChange,
    WebhookDelivery,
    WebhookDeskLedger,
    WebhookDraft,
    WebhookStatus,
    WebhookTestLedger,
)

# How long a request that waits for a delivery leaves the ledger alone between two looks.
LOOK_EVERY_S = 0.2


def new_secret() -> str:
    return written_secret(secrets.token_bytes(SECRET_BYTES))


class WebhookDesk:
    def __init__(self, ledger: WebhookDeskLedger) -> None:
        self._ledger = ledger

    async def create(
        self, url: str, *, types: Sequence[str], sale_id: int | None, description: str, enabled: bool
    ) -> Webhook:
        """Raises NotPossible if there are too many."""
        draft = WebhookDraft(
            url=url,
            types=tuple(types),
            sale_id=sale_id,
            description=description,
            enabled=enabled,
            secret=new_secret(),
        )
        made = await self._ledger.create_webhook(draft, WEBHOOKS_MAX)
        if made is None:
            raise NotPossible(f"There are {WEBHOOKS_MAX} webhooks, and no more are possible: delete one first.")
        return made

    async def all(self) -> Sequence[WebhookStatus]:
        return await self._ledger.list_webhooks()

    async def find(self, webhook_id: int) -> WebhookStatus | None:
        found = await self._ledger.list_webhooks(webhook_id)
        return found[0] if found else None

    async def change(self, webhook_id: int, change: WebhookChange) -> Webhook | None:
        return await self._ledger.change_webhook(webhook_id, change)

    async def rotate(self, webhook_id: int, overlap_s: float) -> Webhook | None:
        """Gives the webhook a new secret. The old one goes on signing as well for `overlap_s`."""
        return await self._ledger.rotate_secret(webhook_id, new_secret(), overlap_s)

    async def delete(self, webhook_id: int) -> bool:
        return await self._ledger.delete_webhook(webhook_id)

    async def deliveries(
        self, webhook_id: int, state: DeliveryState | None, before: int | None, count: int
    ) -> Sequence[WebhookDelivery]:
        return await self._ledger.deliveries(webhook_id, state, before, count)

    async def send_again(self, webhook_id: int, delivery_id: int, wait_s: float) -> WebhookDelivery | None:
        again = await self._ledger.send_again(webhook_id, delivery_id)
        return again and await _outcome(self._ledger, webhook_id, again, wait_s)


class WebhookTests:
    """Test deliveries. The keeper sends them, like any delivery."""

    def __init__(self, ledger: WebhookTestLedger) -> None:
        self._ledger = ledger

    async def send(self, webhook_id: int, wait_s: float) -> WebhookDelivery | None:
        sent = await self._ledger.send_test(webhook_id, f"test_{secrets.token_hex(12)}")
        return sent and await _outcome(self._ledger, webhook_id, sent, wait_s)


class _DeliveryLookup(Protocol):
    async def delivery(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None: ...


async def _outcome(
    ledger: _DeliveryLookup, webhook_id: int, delivery: WebhookDelivery, wait_s: float
) -> WebhookDelivery | None:
    """Returns the delivery as soon as it was tried, or when the time is over."""
    give_up_s = time.monotonic() + wait_s
    tries = delivery.tries
    found: WebhookDelivery | None = delivery
    while found is not None and found.tries == tries and time.monotonic() < give_up_s:
        await asyncio.sleep(LOOK_EVERY_S)
        found = await ledger.delivery(webhook_id, delivery.id)
    return found
