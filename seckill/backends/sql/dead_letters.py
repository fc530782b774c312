"""Entries that could not be written: kept, tried again, given up."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Insert, String, and_, bindparam, func, insert, literal, null, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.end_orders import RELEASE
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.record_orders import note_more
from seckill.backends.sql.tables import dead_letters, items, order_events, orders, outbox, rounds, sales
from seckill.domain.admission import Admission
from seckill.domain.dead_letter import Letter, LetterState
from seckill.domain.event import EventType
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.ports.queue_entry import salvage
from seckill.ports.record import acting
from seckill.ports.transport import Delivery

_CAUSE = "given up"


def to_letter(row: AnyRow) -> Letter:
    return Letter(
        id=row.id,
        lane=row.lane,
        entry_id=row.entry_id,
        number=None if row.order_id is None else OrderNumber.from_int(row.order_id),
        payload=row.payload,
        reason=row.reason,
        history=msgspec.json.decode(row.history, type=list[dict[str, Any]]),
        state=LetterState(row.state),
        attempts=row.attempts,
        created_ms=row.created_ms,
        next_ms=row.next_ms,
    )


async def now_of(connection: AsyncConnection, database: Database) -> int:
    return int((await connection.execute(select(database.now_ms))).scalar_one())


async def set_aside(
    connection: AsyncConnection, database: Database, delivery: Delivery, reason: str, retry_after_s: float
) -> None:
    known = await connection.execute(
        select(dead_letters.c.id).where(
            dead_letters.c.lane == delivery.lane, dead_letters.c.entry_id == delivery.entry_id
        )
    )
    if known.first() is not None:
        return
    now_ms = await now_of(connection, database)
    admission = delivery.admission or salvage(delivery.lane, delivery.payload)
    await connection.execute(
        insert(dead_letters).values(
            lane=delivery.lane,
            entry_id=delivery.entry_id,
            order_id=None if admission is None else int(admission.number),
            round_id=None if admission is None else admission.round_id,
            quantity=None if admission is None else admission.quantity,
            item_id=None if admission is None else admission.item or None,
            user_id=None if admission is None or "\0" in admission.user else admission.user,
            reason=reason,
            history=_history([], now_ms, reason),
            payload=delivery.payload.decode(errors="replace").replace("\0", "\ufffd"),  # PostgreSQL keeps no NUL
            state=LetterState.RETRYING,
            attempts=1,
            next_ms=now_ms + int(retry_after_s * 1000),
            created_ms=now_ms,
        )
    )


def _history(earlier: Sequence[Mapping[str, object]], now_ms: int, reason: str) -> str:
    return msgspec.json.encode([*earlier, {"at_ms": now_ms, "reason": reason}]).decode()


def select_due(database: Database) -> AnySelect:
    return (
        select(dead_letters)
        .where(dead_letters.c.next_ms <= database.now_ms)
        .order_by(dead_letters.c.next_ms)
        .limit(bindparam("count"))
    )


def select_of_buyer(user: str) -> AnySelect:
    """Selects the buyer's letters that will be tried again."""
    return select(dead_letters).where(dead_letters.c.user_id == user, dead_letters.c.next_ms.is_not(None))


async def change(
    connection: AsyncConnection, database: Database, letter: Letter, *, reason: str | None, **values: Any
) -> bool:
    """Changes the letter only if no one has tried it since: two keepers may be handling the same one."""
    if reason is not None:
        now_ms = await now_of(connection, database)
        values |= {"reason": reason, "history": _history(letter.history, now_ms, reason)}
        values["attempts"] = letter.attempts + 1
    changed = await connection.execute(
        update(dead_letters)
        .where(
            dead_letters.c.id == letter.id,
            dead_letters.c.state == letter.state,
            dead_letters.c.attempts == letter.attempts,
        )
        .values(**values)
    )
    return changed.rowcount == 1


async def close(connection: AsyncConnection, database: Database, letter: Letter, state: LetterState) -> bool:
    closed = await change(connection, database, letter, reason=None, state=state, next_ms=None)
    if closed and acting() is not None:
        found = await connection.execute(select(dead_letters.c.round_id).where(dead_letters.c.id == letter.id))
        of_round = select(rounds.c.sale_id).where(rounds.c.id == found.scalar_one())
        what = "letter.discarded" if state is LetterState.DISCARDED else "letter.replayed"
        sale_id = await connection.scalar(of_round)
        await note(
            connection,
            database,
            what,
            letter.id,
            sale_id=sale_id,
            before={"state": letter.state},
            after={"state": state},
        )
    return closed


class Burial:
    """Writes the row with the state `failed`, and what follows from it."""

    def __init__(self, database: Database, entries: FeedEntries) -> None:
        self._database = database
        self._entries = entries
        self._insert = database.insert_missing(
            orders, ["id"], self._tombstone(), returning=("id", "round_id", "recorded_ms")
        )

    async def run(self, connection: AsyncConnection, admission: Admission) -> OrderState | None:
        placed = await self._insert.run(
            connection,
            {
                "number": int(admission.number),
                "of_round": admission.round_id,
                "of_user": admission.user,
                "units": admission.quantity,
                "in_slot": admission.slot,
                "request": admission.request_id,
                "of_epoch": admission.epoch,
                "at_ms": admission.admitted_ms,
                "of_item": admission.item,
            },
        )
        if not placed:
            return await _state_of(connection, admission)
        [row] = placed
        await note_more(connection, [admission])
        await connection.execute(_event(), {"order": row.id, "at_ms": row.recorded_ms})
        await connection.execute(_decided(), {"order": row.id, "of_round": row.round_id, "at_ms": row.recorded_ms})
        await self._entries.orders(connection, EventType.ORDER_FAILED, [row.id])
        return OrderState.FAILED

    def _tombstone(self) -> AnySelect:
        now_ms = self._database.now_ms
        price_cents = func.coalesce(items.c.price_cents, sales.c.price_cents)
        return (
            select(
                bindparam("number", type_=BigInteger).label("id"),
                rounds.c.id.label("round_id"),
                rounds.c.sale_id,
                bindparam("of_user", type_=String).label("user_id"),
                bindparam("units", type_=BigInteger).label("quantity"),
                literal(OrderState.FAILED).label("state"),
                null().label("active_slot"),
                bindparam("in_slot", type_=BigInteger).label("slot"),
                bindparam("request", type_=String).label("request_id"),
                bindparam("of_epoch", type_=BigInteger).label("epoch"),
                (price_cents * bindparam("units", type_=BigInteger)).label("price_cents"),
                sales.c.currency,
                bindparam("at_ms", type_=BigInteger).label("created_ms"),
                now_ms.label("recorded_ms"),
                now_ms.label("closed_ms"),
                items.c.id.label("item_id"),
            )
            .select_from(rounds)
            .join(sales, sales.c.id == rounds.c.sale_id)
            .outerjoin(items, and_(items.c.sale_id == sales.c.id, items.c.id == bindparam("of_item", type_=BigInteger)))
            .where(rounds.c.id == bindparam("of_round", type_=BigInteger))
            # Otherwise no gate has admitted the order, and it would be unknown whose unit it was.
            .where(or_(rounds.c.item_count == 0, items.c.id.is_not(None)))
        )


async def _state_of(connection: AsyncConnection, admission: Admission) -> OrderState | None:
    """Returns the order's state if another process has written it. None: the round is unknown, or the row is of another
    order."""
    found = await connection.execute(select(orders).where(orders.c.id == int(admission.number)))
    row = found.one_or_none()
    if row is None or (row.round_id, row.user_id) != (admission.round_id, admission.user):
        return None
    return OrderState(row.state)


def _event() -> Insert:
    return insert(order_events).values(
        order_id=bindparam("order", type_=BigInteger),
        from_state=OrderState.QUEUED,
        to_state=OrderState.FAILED,
        at_ms=bindparam("at_ms", type_=BigInteger),
        cause=_CAUSE,
    )


def _decided() -> Insert:
    source = select(
        literal(RELEASE).label("kind"),
        bindparam("order", type_=BigInteger).label("order_id"),
        rounds.c.id.label("round_id"),
        rounds.c.epoch,
        literal(OrderState.FAILED).label("payload"),
        bindparam("at_ms", type_=BigInteger).label("created_ms"),
    ).where(rounds.c.id == bindparam("of_round", type_=BigInteger))
    return insert(outbox).from_select(source.selected_columns.keys(), source)
