"""The ledger on any SQL database that has a module here."""

import secrets
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from sqlalchemy import ColumnElement, and_, case, delete, func, insert, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.disk_space import disk_space
from seckill.backends.sql import dead_letters as letters
from seckill.backends.sql import end_orders, recount, retire_rounds, sales
from seckill.backends.sql.access import SqlAccess
from seckill.backends.sql.alarm_book import SqlAlarmBook
from seckill.backends.sql.audience import SqlAudience
from seckill.backends.sql.buyer_data import SqlBuyerData
from seckill.backends.sql.checkouts import SqlCheckouts
from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.dead_letters import Burial
from seckill.backends.sql.end_orders import Endings, to_order
from seckill.backends.sql.feed import SqlFeed
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.figures import SqlFigures
from seckill.backends.sql.lines import SqlLines
from seckill.backends.sql.operator_record import SqlRecordBook
from seckill.backends.sql.order_actions import SqlOrderActions
from seckill.backends.sql.payments import SqlPayments
from seckill.backends.sql.pictures import SqlPictures
from seckill.backends.sql.record_orders import Recording
from seckill.backends.sql.retention import SqlRetention
from seckill.backends.sql.round_story import read_story
from seckill.backends.sql.tables import (
    CATALOGUE,
    ENTRY_FORM,
    ID_KEY,
    MOVED,
    MOVING,
    dead_letters,
    meta,
    orders,
    outbox,
    payments,
    rounds,
)
from seckill.backends.sql.takings import SqlTakings
from seckill.backends.sql.transactions import edge, reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.backends.sql.voucher_gifts import VoucherGifts
from seckill.backends.sql.vouchers import SqlVouchers
from seckill.backends.sql.webhooks import SqlWebhooks
from seckill.domain.admission import Admission, Holding
from seckill.domain.dead_letter import Letter, LetterState
from seckill.domain.event import EventType
from seckill.domain.item import NO_ITEM
from seckill.domain.order import Order, OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Announced, AnnounceKey, Counted, Round, Sale, SaleChange, SaleDraft
from seckill.domain.space import Space
from seckill.errors import LedgerRefused, StartError
from seckill.ports.ledger import Changed, OutboxItem, Recorded, Tally
from seckill.ports.payment import Capture
from seckill.ports.queue_entry import VERSION
from seckill.ports.story import RoundStory
from seckill.ports.transport import Delivery
from seckill.telemetry import CLOCK_OFFSET

PING_WITHIN_S = 2.0
# Generous, because other processes write too: on SQLite it may take seconds to get a turn.
PROBE_WITHIN_S = 10.0
NO_ROW = "nothing"

_ID_KEY_BYTES = 32
# This statement runs every second.
_TO_SYNC = select(rounds).where(
    rounds.c.retired_ms.is_(None), or_(rounds.c.opened_ms.is_(None), rounds.c.synced_revision < rounds.c.revision)
)
_OF_AUDIT = select(rounds).where(rounds.c.retired_ms.is_(None), rounds.c.audit_epoch == rounds.c.epoch)
_LANES_IN_USE = select(rounds.c.lane, rounds.c.lanes).where(rounds.c.retired_ms.is_(None)).distinct()


class SqlLedger:
    """Implements `seckill.ports.ledger.Ledger`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.tasks = Calls()
        self._entries = FeedEntries(database)
        gifts = VoucherGifts(database, self._entries)
        self._recording = Recording(database, self._entries, gifts)
        self._endings = Endings(database, self._entries, gifts)
        self.payments = SqlPayments(database, self._endings, self._entries, self.tasks)
        self.checkouts = SqlCheckouts(database, self.tasks)
        self.actions = SqlOrderActions(database, self._endings, self._entries, gifts, self.tasks)
        self.audience = SqlAudience(database, self.tasks)
        self.buyer_data = SqlBuyerData(database, self.tasks)
        self.retention = SqlRetention(database, self.tasks)
        self.figures = SqlFigures(database, self.tasks)
        self.alarm_book = SqlAlarmBook(database, self.tasks)
        self.takings = SqlTakings(database, self.tasks)
        self.lines = SqlLines(database, self._entries, self.tasks)
        self.vouchers = SqlVouchers(database, self._entries, self.tasks)
        self.pictures = SqlPictures(database, self.tasks)
        self.feed = SqlFeed(database, self.tasks)
        self.webhooks = SqlWebhooks(database, self.tasks)
        self.access = SqlAccess(database, self.tasks)
        self.book = SqlRecordBook(database, self.tasks)
        self._burial = Burial(database, self._entries)
        self._select_orders = select(orders).where(database.among(orders.c.id, "numbers"))
        # Statements that are used all the time are made once: making one takes longer than running it.
        self._select_outbox = end_orders.select_outbox()
        self._select_counted = recount.select_counted()
        self._select_waiting = retire_rounds.select_waiting()
        self._select_letters_due = letters.select_due(database)

    @to_the_end
    async def create_sale(self, draft: SaleDraft, lane: int) -> Sale:
        async with self._writing() as connection:
            return await sales.create_sale(connection, self.database, self._entries, draft, lane)

    @to_the_end
    async def announce(self, draft: SaleDraft, lane: int, key: AnnounceKey) -> Announced:
        async with self._writing() as connection:
            return await sales.announce(connection, self.database, self._entries, draft, lane, key)

    @to_the_end
    async def announced(self, key: AnnounceKey) -> Announced | None:
        async with self._reading() as connection:
            return await sales.announced(connection, key)

    @to_the_end
    async def change_sale(self, sale_id: int, change: SaleChange, round_id: int | None = None) -> Sale | None:
        async with self._writing() as connection:
            return await sales.change_sale(connection, self.database, self._entries, sale_id, change, round_id)

    @to_the_end
    async def add_round(self, after: Round, begins_ms: int, ends_ms: int, lane: int) -> Sale | None:
        async with self._writing() as connection:
            return await sales.add_round(connection, self.database, self._entries, after, begins_ms, ends_ms, lane)

    @to_the_end
    async def sale(self, sale_id: int, round_id: int | None = None) -> Sale | None:
        async with self._reading() as connection:
            found = await connection.execute(sales.select_sale(sale_id, round_id))
            row = found.one_or_none()
            return None if row is None else await sales.to_sale(connection, row)

    @to_the_end
    async def sales(self, changed_after: int = 0, rounds_max: int = 1) -> list[Sale]:
        async with self._reading() as connection:
            wanted = {"after": changed_after, "newest": rounds_max}
            found = await connection.execute(sales.select_sales(), wanted)
            return await sales.to_sales(connection, found.all())

    @to_the_end
    async def rounds_to_sync(self) -> list[Round]:
        found = await self._rounds(_TO_SYNC)
        # Sorted here, because for ORDER BY SQLite would read all rounds there ever were.
        return sorted(found, key=lambda round_: round_.id)

    @to_the_end
    async def rounds_of_audit(self) -> list[Round]:
        return await self._rounds(_OF_AUDIT)

    @to_the_end
    async def mark_opened(self, round_id: int, epoch: int, opened_ms: int) -> int | None:
        this = and_(rounds.c.id == round_id, rounds.c.epoch == epoch, rounds.c.retired_ms.is_(None))
        async with self._writing() as connection:
            opened = await connection.execute(
                update(rounds).where(this, rounds.c.opened_ms.is_(None)).values(opened_ms=opened_ms)
            )
            row = (await connection.execute(select(rounds).where(this))).one_or_none()
            if row is None:
                return None
            if opened.rowcount:
                await self._entries.round(connection, EventType.ROUND_OPENED, await sales.to_round(connection, row))
            return int(row.opened_ms)

    @to_the_end
    async def mark_synced(self, round_id: int, epoch: int, revision: int) -> None:
        async with self._writing() as connection:
            await connection.execute(
                update(rounds)
                # A slow keeper must not undo what a faster one has noted.
                .where(rounds.c.id == round_id, rounds.c.epoch == epoch, rounds.c.synced_revision < revision)
                .values(synced_revision=revision)
            )

    @to_the_end
    async def counted(self, round_ids: Sequence[int]) -> dict[int, Counted]:
        async with self._reading() as connection:
            found = await connection.execute(self._select_counted, {"rounds": list(round_ids)})
            return {row.id: recount.to_counted(row) for row in found}

    @to_the_end
    async def recount(self, round_id: int) -> bool:
        async with self._writing() as connection:
            return await recount.recount(connection, self._entries, round_id)

    @to_the_end
    async def next_epoch(self, known: Round, gate_epoch: int = 0) -> Round | None:
        this = and_(rounds.c.id == known.id, rounds.c.epoch == known.epoch, rounds.c.retired_ms.is_(None))
        if known.opened_ms is None:
            this = and_(this, rounds.c.opened_ms.is_(None))
        async with self._writing() as connection:
            changed = await connection.execute(
                update(rounds)
                .where(this)
                .values(epoch=max(known.epoch, gate_epoch) + 1, opened_ms=None, synced_revision=0)
            )
            if changed.rowcount != 1:
                return None
            found = await connection.execute(select(rounds).where(rounds.c.id == known.id))
            fenced = await sales.to_round(connection, found.one())
            await self._entries.round(connection, EventType.ROUND_FENCED, fenced)
            return fenced

    @to_the_end
    async def rounds_waiting(self, count: int) -> list[Round]:
        return await self._rounds(self._select_waiting, {"count": count})

    @to_the_end
    async def rounds_over(self, before_ms: int, count: int) -> list[Round]:
        return await self._rounds(retire_rounds.select_over(before_ms, count))

    @to_the_end
    async def rounds_to_forget(self, retired_before_ms: int, count: int) -> list[Round]:
        return await self._rounds(retire_rounds.select_to_forget(retired_before_ms, count))

    async def _rounds(self, wanted: AnySelect, parameters: dict[str, int] | None = None) -> list[Round]:
        async with self._reading() as connection:
            return await sales.to_rounds(connection, (await connection.execute(wanted, parameters)).all())

    @to_the_end
    async def retire(self, round_id: int, now_ms: int) -> bool:
        async with self._writing() as connection:
            return await retire_rounds.retire(connection, self._entries, round_id, now_ms)

    @to_the_end
    async def mark_forgotten(self, round_id: int) -> None:
        this = and_(rounds.c.id == round_id, rounds.c.retired_ms.is_not(None))
        async with self._writing() as connection:
            await connection.execute(update(rounds).where(this).values(opened_ms=None))

    @to_the_end
    async def holdings(self, round_id: int, after: str, count: int) -> dict[str, list[Holding]]:
        o = orders.c
        rest = and_(o.round_id == round_id, o.user_id > after)
        next_users = select(o.user_id).where(rest).order_by(o.user_id).limit(count).subquery()
        # A portion ends at a buyer, not at a row, so that all orders of a buyer are together. The index gives both
        # ends.
        last_user = select(func.max(next_users.c.user_id)).scalar_subquery()
        return await self._holdings(and_(rest, o.user_id <= last_user))

    @to_the_end
    async def holdings_of(self, round_id: int, users: Sequence[str]) -> dict[str, list[Holding]]:
        return await self._holdings(and_(orders.c.round_id == round_id, orders.c.user_id.in_(users)))

    @to_the_end
    async def voided(self, round_id: int) -> dict[str, list[Holding]]:
        epoch = select(rounds.c.epoch).where(rounds.c.id == round_id).scalar_subquery()
        return await self._holdings(and_(orders.c.round_id == round_id, end_orders.is_voided(epoch)))

    async def _holdings(self, these: ColumnElement[bool]) -> dict[str, list[Holding]]:
        o = orders.c
        lapsed_ms = case((end_orders.has_lapsed(), o.closed_ms), else_=0).label("lapsed_ms")
        wanted = select(o.id, o.user_id, o.quantity, o.slot, o.request_id, o.active_slot, o.item_id, o.person)
        found: dict[str, list[Holding]] = {}
        async with self._reading() as connection:
            for row in await connection.execute(wanted.add_columns(lapsed_ms).where(these).order_by(o.user_id, o.id)):
                found.setdefault(row.user_id, []).append(_to_holding(row))
        return found

    @to_the_end
    async def lanes_in_use(self) -> set[int]:
        async with self._reading() as connection:
            found = await connection.execute(_LANES_IN_USE)
            return {lane for row in found for lane in range(row.lane, row.lane + row.lanes)}

    @to_the_end
    async def record(self, admissions: Sequence[Admission]) -> Recorded:
        if not admissions:
            return Recorded(new=0, repeated=0, states={})
        try:
            return await self._record(admissions)
        except LedgerRefused as error:
            if error.__cause__ is None:  # we refused it ourselves
                raise
            # When two workers write the same order at the same instant, PostgreSQL may check the unique key of the
            # buyer's slot before that of the order. By now the other worker is done.
            return await self._record(admissions)

    async def _record(self, admissions: Sequence[Admission]) -> Recorded:
        async with self._writing() as connection:
            return await self._recording.run(connection, admissions)

    @to_the_end
    async def pay(self, number: OrderNumber, user: str, capture: Capture) -> Changed | None:
        async with self._writing() as connection:
            order = await self._own(connection, number, user)
            if order is None:
                return None
            done = await self._endings.pay(connection, int(number), f"paid:{capture.provider}")
            if done:
                await self._entries.payment(connection, EventType.PAYMENT_RECEIVED, order, capture, pays=number)
                await connection.execute(
                    insert(payments).values(
                        order_id=int(number),
                        provider=capture.provider,
                        provider_ref=capture.ref,
                        amount_cents=capture.amount_cents,
                        currency=capture.currency,
                        settles=int(number),
                        created_ms=self.database.now_ms,
                    )
                )
            return Changed(await self._again(connection, order), done)

    @to_the_end
    async def cancel(self, number: OrderNumber, user: str) -> Changed | None:
        async with self._writing() as connection:
            order = await self._own(connection, number, user)
            if order is None:
                return None
            ended = await self._endings.end(connection, [int(number)], OrderState.CANCELLED, "cancelled by the buyer")
            return Changed(await self._again(connection, order), bool(ended))

    async def _own(self, connection: AsyncConnection, number: OrderNumber, user: str) -> Order | None:
        found = await connection.execute(self._select_orders, {"numbers": [int(number)]})
        row = found.one_or_none()
        return to_order(row) if row is not None and row.user_id == user else None

    async def _again(self, connection: AsyncConnection, order: Order) -> Order:
        found = await connection.execute(self._select_orders, {"numbers": [int(order.number)]})
        return to_order(found.one())

    @to_the_end
    async def expire_due(self, count: int) -> list[OrderNumber]:
        # Looks without the writers' lock first, because usually there is nothing to do.
        async with self._reading() as connection:
            if (await connection.execute(self._endings.select_due, {"count": 1})).first() is None:
                return []
        async with self._writing() as connection:
            due = await self._endings.due(connection, count)
            if not due:
                return []
            ended = await self._endings.end(connection, due, OrderState.EXPIRED, "not paid in time")
            return [OrderNumber.from_int(row.id) for row in ended]

    @to_the_end
    async def set_aside(self, delivery: Delivery, reason: str, retry_after_s: float) -> None:
        async with self._writing() as connection:
            await letters.set_aside(connection, self.database, delivery, reason, retry_after_s)

    @to_the_end
    async def letters_due(self, count: int) -> list[Letter]:
        async with self._reading() as connection:
            found = await connection.execute(self._select_letters_due, {"count": count})
            return [letters.to_letter(row) for row in found]

    @to_the_end
    async def letters(self, state: LetterState, count: int) -> list[Letter]:
        wanted = select(dead_letters).where(dead_letters.c.state == state)
        async with self._reading() as connection:
            found = await connection.execute(wanted.order_by(dead_letters.c.id.desc()).limit(count))
            return [letters.to_letter(row) for row in found]

    @to_the_end
    async def letter(self, letter_id: int) -> Letter | None:
        async with self._reading() as connection:
            found = await connection.execute(select(dead_letters).where(dead_letters.c.id == letter_id))
            row = found.one_or_none()
        return None if row is None else letters.to_letter(row)

    @to_the_end
    async def letters_about(self, number: OrderNumber) -> list[Letter]:
        wanted = select(dead_letters).where(dead_letters.c.order_id == int(number)).order_by(dead_letters.c.id)
        async with self._reading() as connection:
            return [letters.to_letter(row) for row in await connection.execute(wanted)]

    @to_the_end
    async def letters_of(self, user: str) -> list[Letter]:
        async with self._reading() as connection:
            return [letters.to_letter(row) for row in await connection.execute(letters.select_of_buyer(user))]

    @to_the_end
    async def letters_in(self, round_id: int) -> list[Letter]:
        wanted = select(dead_letters).where(dead_letters.c.round_id == round_id, dead_letters.c.next_ms.is_not(None))
        async with self._reading() as connection:
            return [letters.to_letter(row) for row in await connection.execute(wanted)]

    @to_the_end
    async def put_off(self, letter: Letter, reason: str, retry_after_s: float) -> bool:
        async with self._writing() as connection:
            next_ms = self.database.now_ms + int(retry_after_s * 1000)
            return await letters.change(connection, self.database, letter, reason=reason, next_ms=next_ms)

    @to_the_end
    async def close_letter(self, letter: Letter, state: LetterState, admission: Admission | None = None) -> bool:
        async with self._writing() as connection:
            if admission is not None:
                await self._recording.run(connection, [admission])
            closed = await letters.close(connection, self.database, letter, state)
            if admission is not None and not closed:
                raise LedgerRefused("It has been decided by another process meanwhile.")  # this undoes the order, too
            return closed

    @to_the_end
    async def bury(self, letter: Letter, admission: Admission | None, reason: str) -> OrderState | None:
        async with self._writing() as connection:
            state = None if admission is None else await self._burial.run(connection, admission)
            # A worker has written it after all, so it is not lost.
            alive = state is not None and state is not OrderState.FAILED
            verdict = LetterState.RECORDED if alive else LetterState.DEAD
            await letters.change(connection, self.database, letter, reason=reason, state=verdict, next_ms=None)
            return state

    @to_the_end
    async def end_forgotten(self, numbers: Sequence[OrderNumber]) -> int:
        async with self._writing() as connection:
            wanted = [int(number) for number in numbers]
            return len(await self._endings.end(connection, wanted, OrderState.CANCELLED, "given back in the gate"))

    @to_the_end
    async def bury_forgotten(self, admissions: Sequence[Admission]) -> int:
        async with self._writing() as connection:
            states = [await self._burial.run(connection, admission) for admission in admissions]
            return states.count(OrderState.FAILED)

    @to_the_end
    async def outbox(self, count: int, without_rounds: Sequence[int] = ()) -> list[OutboxItem]:
        wanted = {"count": count, "without": list(without_rounds)}
        async with self._reading() as connection:
            return [end_orders.to_item(row) for row in await connection.execute(self._select_outbox, wanted)]

    @to_the_end
    async def outbox_done(self, ids: Sequence[int]) -> None:
        async with self._writing() as connection:
            await connection.execute(
                update(outbox)
                .where(self.database.among(outbox.c.id, "numbers"), outbox.c.done_ms.is_(None))
                .values(done_ms=self.database.now_ms),
                {"numbers": list(ids)},
            )

    @to_the_end
    async def tally(self, round_id: int) -> Tally | None:
        async with self._reading() as connection:
            row = (await connection.execute(end_orders.select_tally(round_id))).one_or_none()
            if row is None or not row.item_count:
                return None if row is None else end_orders.to_tally(row)
            of_items = await connection.execute(end_orders.select_tally_by_item(round_id))
            return end_orders.together({each.item_id: end_orders.to_tally(each) for each in of_items})

    @to_the_end
    async def story(self, round_id: int, steps: int) -> RoundStory:
        async with self._reading() as connection:
            return await read_story(connection, round_id, steps)

    async def order(self, number: OrderNumber) -> Order | None:
        found = await self.orders([number])
        return found[0] if found else None

    @to_the_end
    async def orders(self, numbers: Sequence[OrderNumber]) -> list[Order]:
        async with self._reading() as connection:
            found = await connection.execute(self._select_orders, {"numbers": [int(number) for number in numbers]})
            return [to_order(row) for row in found]

    @to_the_end
    async def orders_of(self, user: str, before: OrderNumber | None, count: int) -> list[Order]:
        """Returns a buyer's orders, newest first."""
        wanted = select(orders).where(orders.c.user_id == user).order_by(orders.c.id.desc()).limit(count)
        if before is not None:
            wanted = wanted.where(orders.c.id < int(before))
        async with self._reading() as connection:
            return [to_order(row) for row in await connection.execute(wanted)]

    @to_the_end
    async def id_key(self) -> bytes:
        key = await self._read_id_key()
        if key is None:
            made = select(literal(ID_KEY).label("name"), literal(secrets.token_hex(_ID_KEY_BYTES)).label("value"))
            async with self._writing() as connection:
                await self.database.insert_missing(meta, ["name"], made, returning=["name"]).run(connection, {})
            key = await self._read_id_key()
        return bytes.fromhex(str(key))

    async def _read_id_key(self) -> str | None:
        async with self._reading() as connection:
            wanted = select(meta.c.name, meta.c.value).where(meta.c.name.in_([ID_KEY, MOVED, MOVING]))
            found = {row.name: row.value for row in await connection.execute(wanted)}
        if MOVED in found:
            raise StartError(f"This ledger was moved to {found[MOVED]}: set SECKILL_DATABASE_URL to its new address.")
        if MOVING in found:
            raise StartError("This ledger is not complete: run the `seckill move` again that was interrupted.")
        return found.get(ID_KEY)

    @to_the_end
    async def entry_form(self) -> int:
        async with self._reading() as connection:
            form = await connection.scalar(select(meta.c.value).where(meta.c.name == ENTRY_FORM))
        return VERSION if form is None else int(form)

    @to_the_end
    async def set_entry_form(self, form: int) -> None:
        async with self._writing() as connection:
            await connection.execute(delete(meta).where(meta.c.name == ENTRY_FORM))
            await connection.execute(insert(meta).values(name=ENTRY_FORM, value=str(form)))

    @to_the_end
    async def ping(self) -> None:
        async with edge(self.database, PING_WITHIN_S), self.database.readers.connect() as connection:
            # Reads from a table: SQLite would answer `SELECT 1` without looking at the file.
            now_ms = await connection.scalar(select(self.database.now_ms).where(meta.c.name == CATALOGUE))
            if now_ms is not None:
                CLOCK_OFFSET.labels("ledger").set(int(now_ms) / 1000 - time.time())

    @to_the_end
    async def try_writing(self) -> None:
        """Updates a row that does not exist. So this only waits for the lock that all writers need, and a standby or a
        read-only server refuses it."""
        async with edge(self.database, PROBE_WITHIN_S), self.database.writers.begin() as connection:
            await connection.execute(update(meta).where(meta.c.name == NO_ROW).values(value=""))

    async def spaces(self) -> Sequence[Space]:
        folder = self.database.folder
        disk = None if folder is None else await disk_space(folder)
        return [] if disk is None else [disk]

    async def close(self) -> None:
        await self.tasks.close()
        await self.database.close()

    def _writing(self) -> AbstractAsyncContextManager[AsyncConnection]:
        return writing(self.database)

    def _reading(self) -> AbstractAsyncContextManager[AsyncConnection]:
        return reading(self.database)


def _to_holding(row: AnyRow) -> Holding:
    return Holding(
        number=OrderNumber.from_int(row.id),
        quantity=row.quantity,
        slot=row.slot,
        request_id=row.request_id,
        live=row.active_slot is not None,
        lapsed_ms=row.lapsed_ms or 0,
        item=row.item_id or NO_ITEM,
        person=row.person or "",
    )
