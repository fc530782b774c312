"""Webhooks in the ledger: what operators do to them."""

from typing import Any

from sqlalchemy import delete, func, insert, null, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.dead_letters import now_of
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.record_facts import webhook_facts
from seckill.backends.sql.tables import FEED, meta, webhook_deliveries, webhooks
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.backends.sql.webhook_dispatch import SqlDispatch
from seckill.backends.sql.webhook_rows import new_webhook, to_delivery, to_webhook, types_column
from seckill.domain.webhook import TEST_EVENT, DeliveryState, DisabledBy, Webhook
from seckill.ports.webhook import WebhookChange, WebhookDelivery, WebhookDraft, WebhookStatus

# The values that reset an endpoint's state when there is reason to try it again.
_WELL = {"failures": 0, "failing_ms": null(), "retry_ms": null()}


class SqlWebhooks(SqlDispatch):
    """Implements `seckill.ports.webhook.WebhookLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        super().__init__(database, tasks)

    @to_the_end
    async def create_webhook(self, draft: WebhookDraft, most: int) -> Webhook | None:
        async with writing(self._database) as connection:
            # Locked, so that two webhooks created at once cannot both take the last free place.
            newest = await _newest(connection, locked=True)
            if (await connection.scalar(select(func.count()).select_from(webhooks)) or 0) >= most:
                return None
            now_ms = await now_of(connection, self._database)
            made = await connection.execute(insert(webhooks).values(new_webhook(draft, newest, now_ms)))
            assert made.inserted_primary_key is not None
            webhook = await self._webhook(connection, made.inserted_primary_key[0])
            await self._note(connection, "webhook.created", webhook.id, after=webhook)
            return webhook

    @to_the_end
    async def list_webhooks(self, webhook_id: int | None = None) -> list[WebhookStatus]:
        wanted = select(webhooks).order_by(webhooks.c.id)
        counted = (
            select(webhook_deliveries.c.webhook_id, webhook_deliveries.c.state, func.count().label("deliveries"))
            .where(webhook_deliveries.c.state.in_((DeliveryState.WAITING, DeliveryState.FAILED)))
            .group_by(webhook_deliveries.c.webhook_id, webhook_deliveries.c.state)
        )
        if webhook_id is not None:
            wanted = wanted.where(webhooks.c.id == webhook_id)
            counted = counted.where(webhook_deliveries.c.webhook_id == webhook_id)
        async with reading(self._database) as connection:
            rows = (await connection.execute(wanted)).all()
            counts = {(row.webhook_id, row.state): row.deliveries for row in await connection.execute(counted)}
            newest = await _newest(connection)
            now_ms = await now_of(connection, self._database)
        return [
            WebhookStatus(
                webhook=to_webhook(row, now_ms),
                behind=max(0, newest - row.cursor),
                waiting=counts.get((row.id, DeliveryState.WAITING), 0),
                failed=counts.get((row.id, DeliveryState.FAILED), 0),
            )
            for row in rows
        ]

    @to_the_end
    async def change_webhook(self, webhook_id: int, change: WebhookChange) -> Webhook | None:
        values: dict[str, Any] = {}
        if change.url is not None:
            values |= {"url": change.url, **_WELL}
        if change.types is not None:
            values["types"] = types_column(change.types)
        if change.sale_id is not None or change.all_sales:
            values["sale_id"] = change.sale_id
        if change.description is not None:
            values["description"] = change.description
        if change.enabled is not None:
            values |= {"enabled": int(change.enabled), "disabled_by": null() if change.enabled else DisabledBy.OPERATOR}
        if change.enabled:
            values |= _WELL
        async with writing(self._database) as connection:
            known = await self._locked(connection, webhook_id)
            if known is None:
                return None
            before = await self._webhook(connection, webhook_id)
            if change.enabled is False and not known.enabled:
                values.pop("disabled_by")  # it is disabled already, and the reason still holds
            if values:
                await connection.execute(update(webhooks).where(webhooks.c.id == webhook_id).values(values))
            if change.enabled or change.url is not None:
                await self.wake(connection, webhook_id, anew=True)
            after = await self._webhook(connection, webhook_id)
            if values:
                await self._note(connection, "webhook.changed", webhook_id, before=before, after=after)
            return after

    @to_the_end
    async def rotate_secret(self, webhook_id: int, secret: str, overlap_s: float) -> Webhook | None:
        until_ms = self._database.now_ms + int(overlap_s * 1000)
        # Uses values read before: MySQL sets columns from left to right and would use the new values.
        async with writing(self._database) as connection:
            known = await self._locked(connection, webhook_id)
            if known is None:
                return None
            await connection.execute(
                update(webhooks)
                .where(webhooks.c.id == webhook_id)
                .values(secret=secret, old_secret=known.secret, old_secret_ms=until_ms)
            )
            await note(connection, self._database, "webhook.rotated", webhook_id, after={"overlap_s": overlap_s})
            return await self._webhook(connection, webhook_id)

    @to_the_end
    async def delete_webhook(self, webhook_id: int) -> bool:
        async with writing(self._database) as connection:
            if await self._locked(connection, webhook_id) is None:
                return False
            before = await self._webhook(connection, webhook_id)
            await self._note(connection, "webhook.deleted", webhook_id, before=before)
            await connection.execute(delete(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id))
            await connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id))
            return True

    @to_the_end
    async def deliveries(
        self, webhook_id: int, state: DeliveryState | None, before: int | None, count: int
    ) -> list[WebhookDelivery]:
        wanted = select(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id)
        if state is not None:
            wanted = wanted.where(webhook_deliveries.c.state == state)
        if before is not None:
            wanted = wanted.where(webhook_deliveries.c.id < before)
        async with reading(self._database) as connection:
            found = await connection.execute(wanted.order_by(webhook_deliveries.c.id.desc()).limit(count))
            return [to_delivery(row) for row in found]

    @to_the_end
    async def delivery(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None:
        async with reading(self._database) as connection:
            return await _delivery(connection, webhook_id, delivery_id)

    @to_the_end
    async def send_again(self, webhook_id: int, delivery_id: int) -> WebhookDelivery | None:
        this = (webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.id == delivery_id)
        now_ms = self._database.now_ms
        async with writing(self._database) as connection:
            # Locked, so that no keeper notes anything about it meanwhile.
            known = await self._locked(connection, webhook_id)
            if known is None:
                return None
            at_rest = webhook_deliveries.c.state != DeliveryState.WAITING
            again = await connection.execute(
                update(webhook_deliveries)
                .where(*this, at_rest)
                .values(state=DeliveryState.WAITING, by_hand=1, next_ms=now_ms)
            )
            if not again.rowcount:
                await connection.execute(update(webhook_deliveries).where(*this).values(next_ms=now_ms))
            delivery = await _delivery(connection, webhook_id, delivery_id)
            if delivery is not None:
                await self._note_delivery(connection, "webhook.redelivered", known, delivery_id)
            return delivery

    @to_the_end
    async def send_test(self, webhook_id: int, event_id: str) -> WebhookDelivery | None:
        async with writing(self._database) as connection:
            known = await self._locked(connection, webhook_id)
            if known is None:
                return None
            now_ms = await now_of(connection, self._database)
            made = await connection.execute(
                insert(webhook_deliveries).values(
                    webhook_id=webhook_id,
                    event_id=event_id,
                    type=TEST_EVENT,
                    subject="test",
                    state=DeliveryState.WAITING,
                    by_hand=1,
                    tries=0,
                    created_ms=now_ms,
                    next_ms=now_ms,
                )
            )
            assert made.inserted_primary_key is not None
            (delivery_id,) = made.inserted_primary_key
            await self._note_delivery(connection, "webhook.tested", known, delivery_id)
            return await _delivery(connection, webhook_id, delivery_id)

    async def _note(
        self,
        connection: AsyncConnection,
        what: str,
        webhook_id: int,
        *,
        before: Webhook | None = None,
        after: Webhook | None = None,
    ) -> None:
        facts = [None if it is None else webhook_facts(it) for it in (before, after)]
        sale_id = next((it.sale_id for it in (after, before) if it is not None), None)
        await note(connection, self._database, what, webhook_id, sale_id=sale_id, before=facts[0], after=facts[1])

    async def _note_delivery(self, connection: AsyncConnection, what: str, of: AnyRow, delivery_id: int) -> None:
        facts = {"delivery": str(delivery_id)}
        await note(connection, self._database, what, of.id, sale_id=of.sale_id, after=facts)

    async def _locked(self, connection: AsyncConnection, webhook_id: int) -> AnyRow | None:
        found = await connection.execute(select(webhooks).where(webhooks.c.id == webhook_id).with_for_update())
        return found.one_or_none()


async def _delivery(connection: AsyncConnection, webhook_id: int, delivery_id: int) -> WebhookDelivery | None:
    found = await connection.execute(
        select(webhook_deliveries).where(
            webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.id == delivery_id
        )
    )
    row = found.one_or_none()
    return None if row is None else to_delivery(row)


async def _newest(connection: AsyncConnection, *, locked: bool = False) -> int:
    """Returns the last cursor that the feed has given out."""
    wanted = select(meta.c.value).where(meta.c.name == FEED)
    return int((await connection.scalars(wanted.with_for_update() if locked else wanted)).one())
