"""Reads, when the faults are over, which events the ledger demands of feed and webhooks and which they have delivered,
as of the same moment."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from sqlalchemy import select

from seckill.audit.database import ReadOnlyDatabase
from seckill.backends.sql.tables import order_events, payments, refunds
from seckill.lab.chaos.evidence import Evidence, OrderRow
from seckill.lab.chaos.feed_watch import FeedWatch, payment, refund
from seckill.lab.chaos.webhook_receiver import WebhookReceiver

STEADY_WITHIN_S = 60.0


class EventBooks:
    def __init__(self, database_url: str, evidence: Evidence, clock: Callable[[], float]) -> None:
        self._database = ReadOnlyDatabase(database_url)
        self._evidence = evidence
        self._clock = clock

    async def close(self) -> None:
        await self._database.close()

    async def read(self, feed: FeedWatch, receiver: WebhookReceiver) -> None:
        began_s = self._clock()
        demanded = await self._demanded()
        while True:  # an unpaid order may expire in between
            await feed.read_to_end()
            before, demanded = demanded, await self._demanded()
            if before == demanded or self._clock() - began_s > STEADY_WITHIN_S:
                break
        self._evidence.books.demanded = demanded
        await receiver.until_taken({event.id for event in self._evidence.feed.followed})
        receiver.close()
        # Read last, so that it includes everything that may have arrived.
        await feed.read_again()

    async def _demanded(self) -> dict[str, tuple[str, ...]]:
        changes = select(order_events.c.order_id, order_events.c.from_state, order_events.c.to_state)
        found: dict[str, list[str]] = defaultdict(list)
        for row in await self._database.rows(changes.order_by(order_events.c.id)):
            found[_order_id(self._evidence.books.rows, row.order_id)] += _types(row.from_state, row.to_state)
        for row in await self._database.rows(select(payments.c.provider_ref)):
            found[payment(row.provider_ref)].append("payment.received")
        for row in await self._database.rows(select(refunds.c.id)):
            found[refund(row.id)].append("refund.requested")
        return {about: tuple(types) for about, types in found.items()}


def _order_id(rows: Mapping[int, OrderRow], number: int) -> str:
    return rows[number].order_id if number in rows else f"number {number}"


def _types(before: str | None, after: str) -> list[str]:
    """Repeats the rules here, independently of the code under test. A free order is created and paid at once."""
    if after == "unpaid":
        return ["order.created"]
    return ["order.created", "order.paid"] if (before, after) == ("queued", "paid") else [f"order.{after}"]
