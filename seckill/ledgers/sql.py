"""The ledger on any SQL database that has a module here."""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from sqlalchemy import and_, func, insert, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.domain import Admission, Counted, Holding, Order, OrderState, Round, Sale, SaleChange, SaleDraft
from seckill.ledgers import catalogue, endings, letters, recounting, retiring
from seckill.ledgers.database import AnyRow, AnySelect, Database
from seckill.ledgers.edge import edge, reading, writing
from seckill.ledgers.endings import Endings, to_order
from seckill.ledgers.letters import Burial
from seckill.ledgers.payments import SqlPayments
from seckill.ledgers.recording import Recording
from seckill.ledgers.tables import CATALOGUE, ID_KEY, dead_letters, meta, orders, outbox, payments, rounds
from seckill.ledgers.tasks import to_the_end
from seckill.letters import Letter, LetterState
from seckill.numbers import OrderNumber
from seckill.payment_ports import Capture
from seckill.ports import Changed, Delivery, OutboxItem, Recorded, Tally

PING_WITHIN_S = 2.0

_ID_KEY_BYTES = 32
# Asked for every second.
_TO_SYNC = select(rounds).where(
    rounds.c.retired_ms.is_(None), or_(rounds.c.opened_ms.is_(None), rounds.c.synced_revision < rounds.c.revision)
)
_LANES_IN_USE = select(rounds.c.lane, rounds.c.lanes).where(rounds.c.retired_ms.is_(None)).distinct()


class SqlLedger:
    """Implements `seckill.ports.Ledger`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.tasks: set[asyncio.Task[Any]] = set()
        self._recording = Recording(database)
        self._endings = Endings(database)
        self.payments = SqlPayments(database, self._endings, self.tasks)
        self._burial = Burial(database)
        self._select_orders = select(orders).where(database.among(orders.c.id, "numbers"))
        # Made once, for they are asked for all the time: to make one takes longer than to run it.
        self._select_outbox = endings.select_outbox()
        self._select_counted = recounting.select_counted()
        self._select_waiting = retiring.select_waiting()
        self._select_letters_due = letters.select_due(database)

    @to_the_end
    async def create_sale(self, draft: SaleDraft, lane: int) -> Sale:
        async with self._writing() as connection:
            return await catalogue.create_sale(connection, self.database, draft, lane)

    @to_the_end
    async def change_sale(self, sale_id: int, change: SaleChange, round_id: int | None = None) -> Sale | None:
        async with self._writing() as connection:
            return await catalogue.change_sale(connection, self.database, sale_id, change, round_id)

    @to_the_end
    async def add_round(self, after: Round, begins_ms: int, ends_ms: int, lane: int) -> Sale | None:
        async with self._writing() as connection:
            return await catalogue.add_round(connection, after, begins_ms, ends_ms, lane)

    @to_the_end
    async def sale(self, sale_id: int, round_id: int | None = None) -> Sale | None:
        async with self._reading() as connection:
            found = await connection.execute(catalogue.select_sale(sale_id, round_id))
            row = found.one_or_none()
        return None if row is None else catalogue.to_sale(row)

    @to_the_end
    async def sales(self, changed_after: int = 0, rounds_max: int = 1) -> list[Sale]:
        async with self._reading() as connection:
            wanted = {"after": changed_after, "newest": rounds_max}
            return [catalogue.to_sale(row) for row in await connection.execute(catalogue.select_sales(), wanted)]

    @to_the_end
    async def rounds_to_sync(self) -> list[Round]:
        found = await self._rounds(_TO_SYNC)
        # Sorted here: for the sake of the order, SQLite would read all rounds there ever were.
        return sorted(found, key=lambda round_: round_.id)

    @to_the_end
    async def mark_opened(self, round_id: int, epoch: int, opened_ms: int) -> int | None:
        this = and_(rounds.c.id == round_id, rounds.c.epoch == epoch, rounds.c.retired_ms.is_(None))
        async with self._writing() as connection:
            await connection.execute(
                update(rounds).where(this, rounds.c.opened_ms.is_(None)).values(opened_ms=opened_ms)
            )
            found = await connection.scalars(select(rounds.c.opened_ms).where(this))
            return found.one_or_none()

    @to_the_end
    async def mark_synced(self, round_id: int, epoch: int, revision: int) -> None:
        async with self._writing() as connection:
            await connection.execute(
                update(rounds)
                # A slow keeper must not take back what a quicker one has noted.
                .where(rounds.c.id == round_id, rounds.c.epoch == epoch, rounds.c.synced_revision < revision)
                .values(synced_revision=revision)
            )

    @to_the_end
    async def counted(self, round_ids: Sequence[int]) -> dict[int, Counted]:
        async with self._reading() as connection:
            found = await connection.execute(self._select_counted, {"rounds": list(round_ids)})
            return {row.id: recounting.to_counted(row) for row in found}

    @to_the_end
    async def recount(self, round_id: int) -> bool:
        async with self._writing() as connection:
            return await recounting.recount(connection, round_id)

    @to_the_end
    async def next_epoch(self, round_id: int, epoch: int) -> Round | None:
        async with self._writing() as connection:
            changed = await connection.execute(
                update(rounds)
                .where(rounds.c.id == round_id, rounds.c.epoch == epoch, rounds.c.retired_ms.is_(None))
                .values(epoch=epoch + 1, opened_ms=None, synced_revision=0)
            )
            if changed.rowcount != 1:
                return None
            found = await connection.execute(select(rounds).where(rounds.c.id == round_id))
            return catalogue.to_round(found.one())

    @to_the_end
    async def rounds_waiting(self, count: int) -> list[Round]:
        return await self._rounds(self._select_waiting, {"count": count})

    @to_the_end
    async def rounds_over(self, before_ms: int, count: int) -> list[Round]:
        return await self._rounds(retiring.select_over(before_ms, count))

    @to_the_end
    async def rounds_to_forget(self, retired_before_ms: int, count: int) -> list[Round]:
        return await self._rounds(retiring.select_to_forget(retired_before_ms, count))

    async def _rounds(self, wanted: AnySelect, parameters: dict[str, int] | None = None) -> list[Round]:
        async with self._reading() as connection:
            return [catalogue.to_round(row) for row in await connection.execute(wanted, parameters)]

    @to_the_end
    async def retire(self, round_id: int, now_ms: int) -> bool:
        async with self._writing() as connection:
            return await retiring.retire(connection, round_id, now_ms)

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
        # Up to a buyer, not to a row: so all orders of each are together, and both ends are found in the index.
        last_user = select(func.max(next_users.c.user_id)).scalar_subquery()
        wanted = select(o.id, o.user_id, o.quantity, o.slot, o.request_id, o.active_slot)
        wanted = wanted.where(rest, o.user_id <= last_user).order_by(o.user_id, o.id)
        found: dict[str, list[Holding]] = {}
        async with self._reading() as connection:
            for row in await connection.execute(wanted):
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
        # Looks without the writers' lock: mostly there is nothing to do.
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
    async def put_off(self, letter: Letter, reason: str, retry_after_s: float) -> bool:
        async with self._writing() as connection:
            next_ms = self.database.now_ms + int(retry_after_s * 1000)
            return await letters.change(connection, self.database, letter, reason=reason, next_ms=next_ms)

    @to_the_end
    async def close_letter(self, letter: Letter, state: LetterState) -> bool:
        async with self._writing() as connection:
            return await letters.change(connection, self.database, letter, reason=None, state=state, next_ms=None)

    @to_the_end
    async def bury(self, letter: Letter, admission: Admission | None, reason: str) -> OrderState | None:
        async with self._writing() as connection:
            state = None if admission is None else await self._burial.run(connection, admission)
            # Written by somebody after all: then there is nothing to mourn.
            alive = state is not None and state is not OrderState.FAILED
            verdict = LetterState.RECORDED if alive else LetterState.DEAD
            await letters.change(connection, self.database, letter, reason=reason, state=verdict, next_ms=None)
            return state

    @to_the_end
    async def outbox(self, count: int, without_rounds: Sequence[int] = ()) -> list[OutboxItem]:
        wanted = {"count": count, "without": list(without_rounds)}
        async with self._reading() as connection:
            return [endings.to_item(row) for row in await connection.execute(self._select_outbox, wanted)]

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
            row = (await connection.execute(endings.select_tally(round_id))).one_or_none()
        return None if row is None else endings.to_tally(row)

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
        """Newest first."""
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
            found = await connection.scalars(select(meta.c.value).where(meta.c.name == ID_KEY))
            return found.one_or_none()

    @to_the_end
    async def ping(self) -> None:
        async with edge(self.database, PING_WITHIN_S), self.database.readers.connect() as connection:
            # From a table: SQLite would answer `SELECT 1` without a look at the file.
            await connection.execute(select(meta.c.value).where(meta.c.name == CATALOGUE))

    async def close(self) -> None:
        if self.tasks:
            await asyncio.wait(self.tasks)
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
    )
