"""Sales and their current rounds."""

from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.domain import Round, RoundStatus, Sale, SaleChange, SaleDraft
from seckill.errors import LedgerUnavailable
from seckill.ledgers.changes import Decision, decide
from seckill.ledgers.database import AnyRow, AnySelect, Database
from seckill.ledgers.tables import CATALOGUE, meta, rounds, sales

_OF_SALE = ("id", "title", "price_cents", "currency", "pay_within_s", "created_ms", "changed")
_OF_ROUND = (
    "id",
    "sale_id",
    "ordinal",
    "lane",
    "total",
    "limit_per_buyer",
    "begins_ms",
    "ends_ms",
    "epoch",
    "revision",
    "synced_revision",
    "opened_ms",
)


def select_sales() -> AnySelect:
    """Every sale with its current round, which has the highest ordinal; what changed last comes last."""
    others = rounds.alias("others")
    newest = select(func.max(others.c.ordinal)).where(others.c.sale_id == sales.c.id).scalar_subquery()
    return (
        select(*[sales.c[name].label(f"sales_{name}") for name in _OF_SALE], *rounds.c)
        .join(rounds, rounds.c.sale_id == sales.c.id)
        .where(rounds.c.ordinal == newest)
        .order_by(sales.c.changed)
    )


def to_sale(row: AnyRow) -> Sale:
    return Sale(round=to_round(row), **{name: getattr(row, f"sales_{name}") for name in _OF_SALE})


def to_round(row: AnyRow) -> Round:
    return Round(status=RoundStatus(row.status), **{name: getattr(row, name) for name in _OF_ROUND})


async def create_sale(connection: AsyncConnection, database: Database, draft: SaleDraft, lane: int) -> Sale:
    version = await _lock_catalogue(connection) + 1
    await _set_catalogue(connection, version)
    inserted = await connection.execute(
        insert(sales).values(
            title=draft.title,
            price_cents=draft.price_cents,
            currency=draft.currency,
            pay_within_s=draft.pay_within_s,
            created_ms=database.now_ms,
            changed=version,
        )
    )
    key: Any = inserted.inserted_primary_key
    sale_id: int = key[0]
    await connection.execute(
        insert(rounds).values(
            sale_id=sale_id,
            ordinal=1,
            lane=lane,
            total=draft.units,
            limit_per_buyer=draft.limit_per_buyer,
            begins_ms=draft.begins_ms,
            ends_ms=draft.ends_ms,
            status=RoundStatus.OPEN,
        )
    )
    created = await connection.execute(select_sales().where(sales.c.id == sale_id))
    return to_sale(created.one())


async def change_sale(connection: AsyncConnection, database: Database, sale_id: int, change: SaleChange) -> Sale | None:
    # Locked before the sale is read: nobody else decides about a sale until this is committed.
    version = await _lock_catalogue(connection) + 1
    wanted = select_sales().where(sales.c.id == sale_id)
    row = (await connection.execute(wanted.add_columns(database.now_ms.label("now_ms")))).one_or_none()
    if row is None:
        return None
    sale = to_sale(row)
    decision = decide(sale, change, row.now_ms)
    if not decision.sale and not decision.round:
        return sale
    await _set_catalogue(connection, version)
    await connection.execute(update(sales).where(sales.c.id == sale_id).values(changed=version, **decision.sale))
    if decision.round:
        await _change_round(connection, sale.round, decision)
    return to_sale((await connection.execute(wanted)).one())


async def _change_round(connection: AsyncConnection, before: Round, decision: Decision) -> None:
    changed = await connection.execute(
        update(rounds)
        .where(rounds.c.id == before.id, rounds.c.epoch == before.epoch, rounds.c.revision == before.revision)
        .values(revision=before.revision + 1, **decision.round)
    )
    if changed.rowcount != 1:
        raise LedgerUnavailable(f"Somebody else changed round {before.id} at the same time, try again.")


async def _lock_catalogue(connection: AsyncConnection) -> int:
    """The version of the catalogue, with its row locked until the commit (SQLite has one writer anyway).

    So versions become visible in the order of their numbers: whoever has seen version 7 has seen all before.
    Without the lock, 8 could be committed before 7, and who asks for what came after 8 would never see 7.
    """
    found = await connection.scalars(select(meta.c.value).where(meta.c.name == CATALOGUE).with_for_update())
    return int(found.one())


async def _set_catalogue(connection: AsyncConnection, version: int) -> None:
    await connection.execute(update(meta).where(meta.c.name == CATALOGUE).values(value=str(version)))
