"""Sales and their rounds."""

from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, bindparam, func, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.tables import CATALOGUE, meta, rounds, sales
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import Round, RoundStatus, Sale, SaleChange, SaleDraft
from seckill.domain.sale_change import Decision, decide, may_go_on
from seckill.errors import LedgerUnavailable
from seckill.failpoints import reached

_OF_SALE = ("id", "title", "price_cents", "currency", "pay_within_s", "created_ms", "changed")
_OF_RECURRENCE = ("repeat", "timezone", "begins_ms", "window_ms")
_OF_ROUND = (
    "id",
    "sale_id",
    "ordinal",
    "lane",
    "lanes",
    "total",
    "limit_per_buyer",
    "cool_down_s",
    "scheduled_ms",
    "begins_ms",
    "ends_ms",
    "epoch",
    "revision",
    "synced_revision",
    "opened_ms",
    "retired_ms",
    "audit_epoch",
)


@cache  # asked for several times a second
def select_sales() -> AnySelect:
    """Every sale that has changed after that version (`after`), with each of its newest rounds, up to `newest` of them,
    in their order; the sale that changed last comes last."""
    changed = sales.c.changed > bindparam("after", type_=BigInteger)
    return _with_rounds().where(_is_among(bindparam("newest", type_=Integer)), changed)


def _is_among(newest: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a round is among that many of the newest of its sale."""
    others = rounds.alias("others")
    last = select(func.max(others.c.ordinal)).where(others.c.sale_id == sales.c.id).scalar_subquery()
    return rounds.c.ordinal > last - newest


def select_sale(sale_id: int, round_id: int | None = None) -> AnySelect:
    """The sale with that round, or with its newest."""
    which = _is_among(literal(1)) if round_id is None else rounds.c.id == round_id
    return _with_rounds().where(sales.c.id == sale_id, which)


def select_rounds(sale_id: int, before: int | None, count: int) -> AnySelect:
    """Up to `count` of its newest rounds, or of those that were made before that one; the newest first."""
    wanted = _with_rounds().where(sales.c.id == sale_id).order_by(None).order_by(rounds.c.ordinal.desc()).limit(count)
    if before is None:
        return wanted
    that = rounds.alias("that")
    return wanted.where(
        rounds.c.ordinal
        < select(that.c.ordinal).where(that.c.id == before, that.c.sale_id == sale_id).scalar_subquery()
    )


def _with_rounds() -> AnySelect:
    return (
        select(*[sales.c[name].label(f"sales_{name}") for name in (*_OF_SALE, *_OF_RECURRENCE)], *rounds.c)
        .join(rounds, rounds.c.sale_id == sales.c.id)
        .order_by(sales.c.changed, rounds.c.ordinal)
    )


def to_sale(row: AnyRow) -> Sale:
    recurrence = None
    if row.sales_repeat is not None:
        recurrence = Recurrence(**{name: getattr(row, f"sales_{name}") for name in _OF_RECURRENCE})
    facts = {name: getattr(row, f"sales_{name}") for name in _OF_SALE}
    return Sale(round=to_round(row), recurrence=recurrence, **facts)


def to_round(row: AnyRow) -> Round:
    return Round(status=RoundStatus(row.status), **{name: getattr(row, name) for name in _OF_ROUND})


async def create_sale(connection: AsyncConnection, database: Database, draft: SaleDraft, lane: int) -> Sale:
    version = await lock_catalogue(connection) + 1
    await _set_catalogue(connection, version)
    again = draft.recurrence
    inserted = await connection.execute(
        insert(sales).values(
            title=draft.title,
            price_cents=draft.price_cents,
            currency=draft.currency,
            pay_within_s=draft.pay_within_s,
            units=draft.units,
            limit_per_buyer=draft.limit_per_buyer,
            lanes=draft.lanes,
            cool_down_s=draft.cool_down_s,
            begins_ms=draft.begins_ms if again is None else again.begins_ms,
            window_ms=draft.ends_ms - draft.begins_ms if again is None else again.window_ms,
            repeat=None if again is None else again.repeat,
            timezone="UTC" if again is None else again.timezone,
            created_ms=database.now_ms,
            changed=version,
        )
    )
    key: Any = inserted.inserted_primary_key
    sale_id: int = key[0]
    await insert_round(connection, sale_id, 1, draft.begins_ms, draft.ends_ms, lane)
    created = await connection.execute(select_sale(sale_id))
    return to_sale(created.one())


async def insert_round(
    connection: AsyncConnection, sale_id: int, ordinal: int, begins_ms: int, ends_ms: int, lane: int
) -> None:
    """With the full stock, the limit, the cool-down and the lanes that the sale has now."""
    facts = select(
        sales.c.id,
        literal(ordinal).label("ordinal"),
        literal(lane).label("lane"),
        sales.c.lanes,
        sales.c.units.label("total"),
        sales.c.limit_per_buyer,
        sales.c.cool_down_s,
        literal(begins_ms, BigInteger).label("scheduled_ms"),
        literal(begins_ms, BigInteger).label("begins_ms"),
        literal(ends_ms, BigInteger).label("ends_ms"),
        literal(RoundStatus.OPEN).label("status"),
    ).where(sales.c.id == sale_id)
    columns = ["sale_id", *list(facts.selected_columns.keys())[1:]]
    await connection.execute(insert(rounds).from_select(columns, facts))


async def add_round(connection: AsyncConnection, after: Round, begins_ms: int, ends_ms: int, lane: int) -> Sale | None:
    # Locked before the rounds are read: each keeper that wants to add one sees what those before it have added.
    version = await lock_catalogue(connection) + 1
    newest = to_sale((await connection.execute(select_sale(after.sale_id))).one())
    if newest.round.id != after.id or not may_go_on(newest, begins_ms):
        return None
    await set_changed(connection, after.sale_id, version)
    await insert_round(connection, after.sale_id, after.ordinal + 1, begins_ms, ends_ms, lane)
    reached("ledger.add_round.inside")
    return to_sale((await connection.execute(select_sale(after.sale_id))).one())


async def change_sale(
    connection: AsyncConnection, database: Database, sale_id: int, change: SaleChange, round_id: int | None
) -> Sale | None:
    # Locked before the sale is read: no other process decides about a sale until this is committed.
    version = await lock_catalogue(connection) + 1
    wanted = select_sale(sale_id, round_id)
    row = (await connection.execute(wanted.add_columns(database.now_ms.label("now_ms")))).one_or_none()
    if row is None:
        return None
    sale = to_sale(row)
    around = await _neighbours(connection, sale.round)
    decision = decide(sale, change, row.now_ms, *around)
    if decision.is_nothing:
        return sale
    await set_changed(connection, sale_id, version, **decision.sale)
    if decision.round:
        await _change_round(connection, sale.round, decision)
    if decision.later:
        await connection.execute(
            update(rounds)
            .where(rounds.c.sale_id == sale_id, rounds.c.ordinal > sale.round.ordinal)
            .values(revision=rounds.c.revision + 1, **decision.later)
        )
    return to_sale((await connection.execute(wanted)).one())


async def _neighbours(connection: AsyncConnection, round_: Round) -> tuple[Round | None, Round | None]:
    beside = (round_.ordinal - 1, round_.ordinal + 1)
    found = await connection.execute(
        select(rounds).where(rounds.c.sale_id == round_.sale_id, rounds.c.ordinal.in_(beside))
    )
    by_ordinal = {row.ordinal: to_round(row) for row in found}
    return by_ordinal.get(beside[0]), by_ordinal.get(beside[1])


async def _change_round(connection: AsyncConnection, before: Round, decision: Decision) -> None:
    changed = await connection.execute(
        update(rounds)
        .where(rounds.c.id == before.id, rounds.c.epoch == before.epoch, rounds.c.revision == before.revision)
        .values(revision=before.revision + 1, **decision.round)
    )
    if changed.rowcount != 1:
        raise LedgerUnavailable(f"Somebody else changed round {before.id} at the same time, try again.")


async def lock_catalogue(connection: AsyncConnection) -> int:
    """The version of the catalogue, with its row locked until the commit (SQLite has one writer anyway).

    So versions become visible in the order of their numbers: a node that has seen version 7 has seen all before.
    Without the lock, 8 could be committed before 7, and a node that asks for what came after 8 would never see 7.
    """
    found = await connection.scalars(select(meta.c.value).where(meta.c.name == CATALOGUE).with_for_update())
    return int(found.one())


async def _set_catalogue(connection: AsyncConnection, version: int) -> None:
    await connection.execute(update(meta).where(meta.c.name == CATALOGUE).values(value=str(version)))


async def set_changed(connection: AsyncConnection, sale_id: int, version: int, **values: Any) -> None:
    """So that every node reads it again."""
    await _set_catalogue(connection, version)
    await connection.execute(update(sales).where(sales.c.id == sale_id).values(changed=version, **values))
