"""Exports and erases everything about one buyer."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, Table, and_, case, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.audience import listed, strike
from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.line_tables import STATES, line_entries, lines
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.sales import lock_catalogue, to_rounds
from seckill.backends.sql.tables import (
    dead_letters,
    feed,
    order_actions,
    order_events,
    orders,
    payments,
    refunds,
    rounds,
    vouchers,
)
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.audience_list import digest_of
from seckill.domain.dead_letter import LetterState
from seckill.domain.event import EventType
from seckill.domain.line import EntryState
from seckill.domain.sale import Round
from seckill.ports.buyer_data import BuyerRows, DataRow, Erasure, Hindrance, HindranceKind
from seckill.ports.queue_entry import salvage, write_entry

# The events whose facts name the buyer. Events of orders and entries are read from the rows of those.
_NAMING = [type_ for type_ in EventType if type_.family in ("payment", "refund", "voucher")]
ROWS_AT_ONCE = 500
_IN_LINE = (STATES[EntryState.WAITING], STATES[EntryState.CALLED])


class SqlBuyerData:
    """Implements `seckill.ports.buyer_data.BuyerDataLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database

    @to_the_end
    async def rounds_in_gate(self) -> list[Round]:
        async with reading(self._database) as connection:
            found = (await connection.execute(select(rounds).where(rounds.c.opened_ms.is_not(None)))).all()
            return await to_rounds(connection, found)

    @to_the_end
    async def rows_of(self, user: str) -> BuyerRows:
        mine = select(orders.c.id).where(orders.c.user_id == user)
        paid = select(payments.c.id).where(payments.c.order_id.in_(mine))
        async with reading(self._database) as connection:

            async def of(table: Table, where: ColumnElement[bool], key: str = "id") -> Sequence[DataRow]:
                found = await connection.execute(select(table).where(where).order_by(table.c[key]))
                return [dict(row) for row in found.mappings()]

            codes = await of(vouchers, vouchers.c.order_id.in_(mine))
            return BuyerRows(
                orders=await of(orders, orders.c.user_id == user),
                order_events=await of(order_events, order_events.c.order_id.in_(mine)),
                payments=await of(payments, payments.c.order_id.in_(mine)),
                refunds=await of(refunds, refunds.c.payment_id.in_(paid)),
                order_actions=await of(order_actions, order_actions.c.order_id.in_(mine)),
                # A code that the buyer has not seen can still go to another one, so it is left out.
                vouchers=[{**row, "code": row["code"] if row["shown_ms"] is not None else None} for row in codes],
                entries=await of(line_entries, line_entries.c.user_id == user),
                letters=await of(dead_letters, dead_letters.c.user_id == user),
                lists=await listed(connection, digest_of(user)),
            )

    @to_the_end
    async def erase(self, user: str, pseudonym: str) -> Erasure | list[Hindrance]:
        async with writing(self._database) as connection:
            await lock_catalogue(connection)  # before anything else, as in every transaction that needs it
            # Any other transaction that writes about one of these orders locks it first, so everything it wrote is read
            # below. What the buyer does from now on is not found here and keeps the name.
            found = await _locked(connection, orders, user)
            entries = await _locked(connection, line_entries, user)
            letters = await _locked(connection, dead_letters, user)
            hindrances = await _hindrances(connection, user)
            if hindrances:
                return hindrances
            events = await _erase_events(connection, user, pseudonym, {row.round_id for row in found})
            person = case((orders.c.person.is_not(None), pseudonym))
            await _change_each(connection, orders, found, user_id=pseudonym, metadata=None, person=person)
            forgotten = {"metadata": None, "groups_told": None, "person": None}
            await _change_each(connection, line_entries, entries, user_id=pseudonym, **forgotten)
            await _erase_letters(connection, letters, pseudonym)
            await note(connection, self._database, "buyer.erased", pseudonym)
            return Erasure(
                orders=len(found),
                entries=len(entries),
                letters=len(letters),
                events=events,
                lists=len(await strike(connection, digest_of(user))),
            )


async def _locked(connection: AsyncConnection, table: Table, user: str) -> Sequence[AnyRow]:
    mine = select(table).where(table.c.user_id == user).with_for_update()
    return (await connection.execute(mine)).all()


async def _change_each(connection: AsyncConnection, table: Table, rows: Sequence[AnyRow], **values: object) -> None:
    for first in range(0, len(rows), ROWS_AT_ONCE):
        ids = [row.id for row in rows[first : first + ROWS_AT_ONCE]]
        await connection.execute(update(table).where(table.c.id.in_(ids)).values(**values))


async def _hindrances(connection: AsyncConnection, user: str) -> list[Hindrance]:
    """Returns what stands against erasing. The gate's records also do: it forgets a round when all its orders have been
    final for a day."""
    remembered = or_(rounds.c.retired_ms.is_(None), rounds.c.opened_ms.is_not(None))
    mine = orders.c.user_id == user
    open_letter = dead_letters.c.state.in_([LetterState.RETRYING, LetterState.DEAD])
    undecided = select(orders.c.sale_id, orders.c.id).join(payments, payments.c.order_id == orders.c.id)
    # The list of a draw is read by names, in portions: a name that changes meanwhile would be read twice or never.
    # Buyers who have left since the list was closed are still on it, and while places are being given, another keeper
    # may be reading it, or the next one after a crash.
    on_list = or_(line_entries.c.place.is_(None), line_entries.c.place > 0)
    in_draw = and_(lines.c.seed.is_not(None), lines.c.drawn_ms.is_(None), on_list)
    queries: list[tuple[HindranceKind, AnySelect]] = [
        (
            HindranceKind.ROUND,
            _of(orders.c.sale_id, orders.c.id).join(rounds, rounds.c.id == orders.c.round_id).where(mine, remembered),
        ),
        (
            HindranceKind.SET_ASIDE,
            _of(rounds.c.sale_id, dead_letters.c.order_id)
            .select_from(dead_letters)
            .outerjoin(rounds, rounds.c.id == dead_letters.c.round_id)
            .where(dead_letters.c.user_id == user, open_letter),
        ),
        (
            HindranceKind.LINE,
            _of(rounds.c.sale_id, line_entries.c.order_id)
            .select_from(line_entries)
            .join(rounds, rounds.c.id == line_entries.c.round_id)
            .outerjoin(lines, lines.c.round_id == line_entries.c.round_id)
            .where(line_entries.c.user_id == user, or_(line_entries.c.state.in_(_IN_LINE), in_draw), remembered),
        ),
        (HindranceKind.MONEY, undecided.where(mine, payments.c.next_ms.is_not(None))),
        (
            HindranceKind.MONEY,
            undecided.join(refunds, refunds.c.payment_id == payments.c.id).where(mine, refunds.c.next_ms.is_not(None)),
        ),
    ]
    found = []
    for kind, query in queries:
        found += [Hindrance(kind, sale_id, order) for sale_id, order in await connection.execute(query)]
    return found


def _of(sale_id: ColumnElement[Any], order: ColumnElement[Any]) -> Select[tuple[Any, Any]]:
    return select(sale_id, order)


async def _erase_events(connection: AsyncConnection, user: str, pseudonym: str, of_rounds: set[int]) -> int:
    if not of_rounds:
        return 0
    name = msgspec.json.encode(user).decode()
    wanted = select(feed.c.id, feed.c.facts).where(
        feed.c.round_id.in_(sorted(of_rounds)), feed.c.type.in_(_NAMING), feed.c.facts.contains(name, autoescape=True)
    )
    erased = 0
    for row in (await connection.execute(wanted)).all():
        facts = msgspec.json.decode(row.facts)
        if facts.get("buyer") == user:
            text = msgspec.json.encode({**facts, "buyer": pseudonym}).decode()
            await connection.execute(update(feed).where(feed.c.id == row.id).values(facts=text))
            erased += 1
    return erased


async def _erase_letters(connection: AsyncConnection, letters: Sequence[AnyRow], pseudonym: str) -> None:
    for row in letters:
        payload = _without_person(row, pseudonym)
        this = update(dead_letters).where(dead_letters.c.id == row.id)
        await connection.execute(this.values(user_id=pseudonym, payload=payload))


def _without_person(row: AnyRow, pseudonym: str) -> str:
    entry = salvage(row.lane, row.payload.encode())
    if entry is None:
        return ""
    person = pseudonym if entry.person else ""
    return write_entry(msgspec.structs.replace(entry, user=pseudonym, person=person, metadata="")).decode()
