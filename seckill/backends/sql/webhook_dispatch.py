"""Webhooks in the ledger: which keeper sends to which endpoint, and what became of the deliveries."""

import secrets
from collections.abc import Collection, Sequence, Set
from typing import Any

from sqlalchemy import BigInteger, Integer, and_, case, cast, delete, exists, func, insert, null, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import Database
from seckill.backends.sql.dead_letters import now_of
from seckill.backends.sql.tables import FEED, feed, meta, webhook_deliveries, webhooks
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.backends.sql.webhook_rows import can_be_asked, is_due, sent_columns, to_delivery, to_webhook
from seckill.domain.webhook import DeliveryState, DisabledBy, Webhook
from seckill.domain.webhook_retries import reason_to_disable
from seckill.ports.webhook import Lease, NewDelivery, Noted, Progress, TriedDelivery, WebhookDelivery, WebhookLag

# How many of the last successful deliveries of each endpoint are kept for people to look at.
DELIVERED_KEPT = 100


class SqlDispatch:
    """Implements `seckill.ports.webhook.DispatchLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        now_ms = database.now_ms
        newest = select(cast(meta.c.value, _WHOLE)).where(meta.c.name == FEED).scalar_subquery()
        self._work = select(webhooks.c.id).where(
            or_(webhooks.c.lease_ms.is_(None), webhooks.c.lease_ms <= now_ms),
            or_(
                and_(can_be_asked(now_ms), webhooks.c.cursor < newest),
                exists(select(webhook_deliveries.c.id)).where(is_due(now_ms)),
            ),
        )
        self._due = (
            select(webhook_deliveries)
            .join(webhooks, webhooks.c.id == webhook_deliveries.c.webhook_id)
            .where(is_due(now_ms))
            .order_by(webhook_deliveries.c.by_hand.desc(), webhook_deliveries.c.next_ms, webhook_deliveries.c.id)
        )

    @to_the_end
    async def take_webhooks(self, count: int, lease_s: float) -> list[Lease]:
        # Looks without the writers' lock, since there is usually nothing to do.
        async with reading(self._database) as connection:
            found = list(await connection.scalars(self._work.limit(count)))
        if not found:
            return []
        async with writing(self._database) as connection:
            still = self._work.where(webhooks.c.id.in_(found)).with_for_update(skip_locked=True, of=webhooks)
            ids = list(await connection.scalars(still))
            now_ms = await now_of(connection, self._database)
            taken = []
            for webhook_id in ids:
                token = secrets.token_hex(16)
                await connection.execute(
                    update(webhooks)
                    .where(webhooks.c.id == webhook_id)
                    .values(lease=token, lease_ms=now_ms + int(lease_s * 1000))
                )
                taken.append(Lease(webhook=await self._webhook(connection, webhook_id), token=token))
            return taken

    @to_the_end
    async def due_deliveries(self, webhook_id: int, count: int) -> list[WebhookDelivery]:
        async with reading(self._database) as connection:
            found = await connection.execute(self._due.where(webhooks.c.id == webhook_id).limit(count))
            return [to_delivery(row) for row in found]

    @to_the_end
    async def webhook(self, webhook_id: int) -> Webhook | None:
        async with reading(self._database) as connection:
            found = await connection.execute(select(webhooks).where(webhooks.c.id == webhook_id))
            row = found.one_or_none()
            return None if row is None else to_webhook(row, await now_of(connection, self._database))

    @to_the_end
    async def held_subjects(self, webhook_id: int, subjects: Collection[str]) -> Set[str]:
        wanted = (
            select(webhook_deliveries.c.subject)
            .where(*_waiting_in_turn(webhook_id), webhook_deliveries.c.subject.in_(sorted(subjects)))
            .distinct()
        )
        async with reading(self._database) as connection:
            return frozenset(await connection.scalars(wanted))

    @to_the_end
    async def waiting_deliveries(self, webhook_id: int) -> int:
        wanted = select(func.count()).select_from(webhook_deliveries).where(*_waiting_in_turn(webhook_id))
        async with reading(self._database) as connection:
            return int(await connection.scalar(wanted) or 0)

    @to_the_end
    async def note_deliveries(self, lease: Lease, progress: Progress, lease_s: float) -> Noted | None:
        webhook_id = lease.webhook.id
        mine = and_(webhooks.c.id == webhook_id, webhooks.c.lease == lease.token)
        async with writing(self._database) as connection:
            # Comes first, with a lock: a keeper that no longer has the lease must not note anything.
            found = await connection.scalars(select(webhooks.c.url).where(mine).with_for_update())
            url = found.one_or_none()
            if url is None:
                return None
            now_ms = await now_of(connection, self._database)
            values = _columns(progress, lease_s, now_ms)
            if url == lease.webhook.url:  # the state of an old address says nothing about the new one
                values |= _health(progress, now_ms)
            await connection.execute(update(webhooks).where(mine).values(values))
            await self._insert_new(connection, webhook_id, progress.new, now_ms)
            for tried in progress.tried:
                await self._note_tried(connection, webhook_id, tried, now_ms)
            disabled = await self._disable(connection, webhook_id, progress, now_ms)
            given_up = 0
            if disabled is None and progress.tried:
                given_up = await self._give_up(connection, webhook_id, progress, now_ms)
            if progress.recovered:
                await self.wake(connection, webhook_id)
            await self._forget_delivered(connection, webhook_id, progress)
            return Noted(webhook=await self._webhook(connection, webhook_id), disabled=disabled, given_up=given_up)

    @to_the_end
    async def prune_deliveries(self, kept_ms: int, count: int) -> int:
        old = and_(
            webhook_deliveries.c.state.in_((DeliveryState.DELIVERED, DeliveryState.FAILED)),
            func.coalesce(webhook_deliveries.c.tried_ms, webhook_deliveries.c.created_ms)
            < self._database.now_ms - kept_ms,
        )
        async with reading(self._database) as connection:
            found = list(await connection.scalars(select(webhook_deliveries.c.id).where(old).limit(count)))
        if found:
            async with writing(self._database) as connection:
                await connection.execute(
                    delete(webhook_deliveries).where(
                        webhook_deliveries.c.id.in_(found), webhook_deliveries.c.state != DeliveryState.WAITING
                    )
                )
        return len(found)

    @to_the_end
    async def webhook_lag(self) -> WebhookLag:
        enabled = webhooks.c.enabled == 1
        least = select(func.min(webhooks.c.cursor)).where(enabled)
        waiting = (
            select(func.count())
            .select_from(webhook_deliveries.join(webhooks, webhooks.c.id == webhook_deliveries.c.webhook_id))
            .where(enabled, webhook_deliveries.c.state == DeliveryState.WAITING)
        )
        failing = select(func.count()).select_from(webhooks).where(enabled, webhooks.c.failing_ms.is_not(None))
        async with reading(self._database) as connection:
            cursor = await connection.scalar(least)
            age_ms = 0
            if cursor is not None:
                next_entry = select(feed.c.at_ms).where(feed.c.first_cursor > cursor).order_by(feed.c.first_cursor)
                at_ms = await connection.scalar(next_entry.limit(1))
                age_ms = 0 if at_ms is None else max(0, await now_of(connection, self._database) - at_ms)
            return WebhookLag(
                age_ms=age_ms,
                waiting=int(await connection.scalar(waiting) or 0),
                failing=int(await connection.scalar(failing) or 0),
            )

    async def wake(self, connection: AsyncConnection, webhook_id: int, *, anew: bool = False) -> None:
        """Makes waiting deliveries due at once. `anew`: they are tried for as long as if they had never failed."""
        values: dict[str, Any] = {"next_ms": self._database.now_ms}
        if anew:
            values["failing_ms"] = null()
        await connection.execute(update(webhook_deliveries).where(*_waiting_in_turn(webhook_id)).values(values))

    async def _insert_new(
        self, connection: AsyncConnection, webhook_id: int, new: Sequence[NewDelivery], now_ms: int
    ) -> None:
        rows = [_new_row(webhook_id, each, now_ms) for each in _worth_a_row(new)]
        if not rows:
            return
        # Only the keeper with the lease inserts. A row can only exist if the cursor was set back by hand.
        names = [row["event_id"] for row in rows]
        there = select(webhook_deliveries.c.event_id).where(
            webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.event_id.in_(names)
        )
        known = set(await connection.scalars(there))
        if missing := [row for row in rows if row["event_id"] not in known]:
            await connection.execute(insert(webhook_deliveries), missing)

    async def _note_tried(
        self, connection: AsyncConnection, webhook_id: int, tried: TriedDelivery, now_ms: int
    ) -> None:
        waits = tried.state is DeliveryState.WAITING
        await connection.execute(
            update(webhook_deliveries)
            .where(webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.event_id == tried.event_id)
            .values(
                state=tried.state,
                by_hand=0,
                tries=webhook_deliveries.c.tries + 1,
                failing_ms=null() if tried.last.is_ok else func.coalesce(webhook_deliveries.c.failing_ms, now_ms),
                next_ms=now_ms + int(tried.next_s * 1000) if waits else null(),
                **sent_columns(tried.last, now_ms),
            )
        )

    async def _disable(
        self, connection: AsyncConnection, webhook_id: int, progress: Progress, now_ms: int
    ) -> DisabledBy | None:
        reason = reason_to_disable(progress.failures, gone=progress.is_gone)
        if reason is None:
            return None
        since_ms = now_ms - int(progress.give_up_s * 1000)
        over = webhooks.c.enabled == 1
        if not progress.is_gone:
            over = and_(over, webhooks.c.failing_ms <= since_ms)
        disabled = await connection.execute(
            update(webhooks).where(webhooks.c.id == webhook_id, over).values(enabled=0, disabled_by=reason)
        )
        return reason if disabled.rowcount else None

    async def _give_up(self, connection: AsyncConnection, webhook_id: int, progress: Progress, now_ms: int) -> int:
        over = await connection.execute(
            update(webhook_deliveries)
            .where(
                *_waiting_in_turn(webhook_id),
                webhook_deliveries.c.event_id.in_([tried.event_id for tried in progress.tried]),
                webhook_deliveries.c.failing_ms <= now_ms - int(progress.give_up_s * 1000),
            )
            .values(state=DeliveryState.FAILED, next_ms=null())
        )
        return over.rowcount

    async def _forget_delivered(self, connection: AsyncConnection, webhook_id: int, progress: Progress) -> None:
        delivered = DeliveryState.DELIVERED
        states = [each.state for each in progress.new] + [each.state for each in progress.tried]
        if delivered not in states:
            return
        these = and_(webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.state == delivered)
        last = select(webhook_deliveries.c.id).where(these).order_by(webhook_deliveries.c.id.desc())
        # In two steps: MySQL cannot delete from a table by a subquery on the same table.
        first_too_many = await connection.scalar(last.offset(DELIVERED_KEPT).limit(1))
        if first_too_many is not None:
            await connection.execute(delete(webhook_deliveries).where(these, webhook_deliveries.c.id <= first_too_many))

    async def _webhook(self, connection: AsyncConnection, webhook_id: int) -> Webhook:
        row = (await connection.execute(select(webhooks).where(webhooks.c.id == webhook_id))).one()
        return to_webhook(row, await now_of(connection, self._database))


# MySQL casts to a type that it calls SIGNED.
_WHOLE = BigInteger().with_variant(Integer, "mysql", "mariadb")


def _waiting_in_turn(webhook_id: int) -> tuple[Any, ...]:
    return (
        webhook_deliveries.c.webhook_id == webhook_id,
        webhook_deliveries.c.state == DeliveryState.WAITING,
        webhook_deliveries.c.by_hand == 0,
    )


def _columns(progress: Progress, lease_s: float, now_ms: int) -> dict[str, Any]:
    values: dict[str, Any] = {
        # The cursor never goes back: events would be sent twice.
        "cursor": case((webhooks.c.cursor < progress.cursor, progress.cursor), else_=webhooks.c.cursor),
        "lease": null() if progress.leave else webhooks.c.lease,
        "lease_ms": null() if progress.leave else now_ms + int(lease_s * 1000),
    }
    if progress.delivered:
        values["delivered_ms"] = now_ms
    if progress.missed is not None:
        missed = progress.missed
        values |= {"missed_ms": now_ms, "missed_after": missed.after, "missed_until": missed.until}
    return values


def _health(progress: Progress, now_ms: int) -> dict[str, Any]:
    return {
        "failures": progress.failures,
        "failing_ms": func.coalesce(webhooks.c.failing_ms, now_ms) if progress.failures else null(),
        "retry_ms": null() if progress.rest_s is None else now_ms + int(progress.rest_s * 1000),
    }


def _worth_a_row(new: Sequence[NewDelivery]) -> list[NewDelivery]:
    """Returns all waiting deliveries, and as many of the successful ones as are kept."""
    delivered = [each for each in new if each.state is DeliveryState.DELIVERED][-DELIVERED_KEPT:]
    others = [each for each in new if each.state is not DeliveryState.DELIVERED]
    return sorted(others + delivered, key=lambda each: each.cursor)


def _new_row(webhook_id: int, new: NewDelivery, now_ms: int) -> dict[str, Any]:
    """Returns a row. All rows have the same columns, so that they can be inserted together."""
    sent = {"tried_ms": None, "status": None, "trouble": None, "took_ms": None}
    failed = new.last is not None and not new.last.is_ok
    return {
        "webhook_id": webhook_id,
        "event_id": new.event_id,
        "type": new.type,
        "cursor": new.cursor,
        "subject": new.subject,
        "state": new.state,
        "by_hand": 0,
        "tries": int(new.last is not None),
        "created_ms": now_ms,
        "failing_ms": now_ms if failed else None,
        "next_ms": now_ms + int(new.next_s * 1000) if new.state is DeliveryState.WAITING else None,
        **(sent if new.last is None else sent_columns(new.last, now_ms)),
    }
