"""Sales and their rounds."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, and_, bindparam, func, insert, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.door_column import changed_door, door_column, to_door
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.goods import GOODS, changed_columns, goods_columns, to_goods
from seckill.backends.sql.items import change_items, deal_items, insert_items, read_items, read_units
from seckill.backends.sql.limit_groups import lane_in_group, read_siblings, require_group
from seckill.backends.sql.line_rows import insert_line, lock_line
from seckill.backends.sql.line_tables import lines
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.record_facts import sale_facts
from seckill.backends.sql.tables import CATALOGUE, meta, rounds, sale_keys, sales
from seckill.backends.sql.voucher_cover import cover, spare
from seckill.domain.door import Door
from seckill.domain.event import EventType
from seckill.domain.item import Item, ItemUnits
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import Announced, AnnounceKey, Confirm, Round, RoundStatus, Sale, SaleChange, SaleDraft
from seckill.domain.sale_change import Decision, decide, may_be_published, may_go_on
from seckill.errors import CodesMissing, ExternalIdTaken, LedgerUnavailable, NotPossible
from seckill.failpoints import reached

_OF_SALE = (
    "id",
    "title",
    "price_cents",
    "currency",
    "pay_within_s",
    "created_ms",
    "changed",
    "list_version",
    "list_buyers",
    "limit_by",
    "timezone",
)
_OF_RECURRENCE = ("repeat", "begins_ms", "window_ms")
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
    "early_s",
    "limit_group",
)
_OF_STATUS = {
    RoundStatus.OPEN: EventType.SALE_RESUMED,
    RoundStatus.PAUSED: EventType.SALE_PAUSED,
    RoundStatus.CLOSED: EventType.SALE_CLOSED,
}
# Columns of a decision that the event `sale.changed` leaves out or shows under another name.
_NOT_TOLD = {"status", "audit_epoch", "early_s"}
_PUBLIC_NAMES = {"total": "units", "begins_ms": "begins_at", "ends_ms": "ends_at"}


@cache  # used several times a second
def select_sales() -> AnySelect:
    """Selects every sale that has changed after the version `after`, with each of its newest rounds, up to `newest` of
    them and in order. The sale that changed last comes last."""
    changed = sales.c.changed > bindparam("after", type_=BigInteger)
    return _with_rounds().where(_is_among(bindparam("newest", type_=Integer)), changed)


def _is_among(newest: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a round is among this many newest rounds of its sale."""
    others = rounds.alias("others")
    last = select(func.max(others.c.ordinal)).where(others.c.sale_id == sales.c.id).scalar_subquery()
    return rounds.c.ordinal > last - newest


def select_sale(sale_id: int, round_id: int | None = None) -> AnySelect:
    """Selects the sale with that round, or with its newest one."""
    which = _is_among(literal(1)) if round_id is None else rounds.c.id == round_id
    return _with_rounds().where(sales.c.id == sale_id, which)


def select_rounds(sale_id: int, before: int | None, count: int) -> AnySelect:
    """Selects up to `count` of the sale's newest rounds, or of those made before the given one, newest first."""
    wanted = _with_rounds().where(sales.c.id == sale_id).order_by(None).order_by(rounds.c.ordinal.desc()).limit(count)
    if before is None:
        return wanted
    that = rounds.alias("that")
    return wanted.where(
        rounds.c.ordinal
        < select(that.c.ordinal).where(that.c.id == before, that.c.sale_id == sale_id).scalar_subquery()
    )


def select_rounds_between(sale_id: int, since_ms: int, until_ms: int, count: int) -> AnySelect:
    """Selects up to `count` of the sale's rounds that begin or end in this time, newest first."""
    begins = and_(rounds.c.begins_ms >= since_ms, rounds.c.begins_ms < until_ms)
    ends = and_(rounds.c.ends_ms >= since_ms, rounds.c.ends_ms < until_ms)
    wanted = _with_rounds().where(sales.c.id == sale_id, or_(begins, ends))
    return wanted.order_by(None).order_by(rounds.c.ordinal.desc()).limit(count)


def _with_rounds() -> AnySelect:
    of_sale = (*_OF_SALE, "confirm", "published", "door", "vouchers", *_OF_RECURRENCE, *GOODS)
    return (
        select(*[sales.c[name].label(f"sales_{name}") for name in of_sale], *rounds.c)
        .join(rounds, rounds.c.sale_id == sales.c.id)
        .order_by(sales.c.changed, rounds.c.ordinal)
    )


async def to_sales(connection: AsyncConnection, rows: Sequence[AnyRow]) -> list[Sale]:
    """Makes sales of the rows, with their items."""
    items, rounds_ = await read_items(connection, rows), await to_rounds(connection, rows)
    return [_to_sale(row, items.get(row.sale_id, ()), round_) for row, round_ in zip(rows, rounds_, strict=True)]


async def to_sale(connection: AsyncConnection, row: AnyRow) -> Sale:
    return (await to_sales(connection, [row]))[0]


async def to_rounds(connection: AsyncConnection, rows: Sequence[AnyRow]) -> list[Round]:
    """Makes rounds of the rows, with their units of each item, and the rounds with which they share their limit."""
    units, siblings = await read_units(connection, rows), await read_siblings(connection, rows)
    return [_to_round(row, units.get(row.id, ()), siblings.get(row.id, ())) for row in rows]


async def to_round(connection: AsyncConnection, row: AnyRow) -> Round:
    return (await to_rounds(connection, [row]))[0]


def _to_sale(row: AnyRow, items: tuple[Item, ...], round_: Round) -> Sale:
    recurrence = None
    if row.sales_repeat is not None:
        again = {name: getattr(row, f"sales_{name}") for name in _OF_RECURRENCE}
        recurrence = Recurrence(timezone=row.sales_timezone, **again)
    facts = {name: getattr(row, f"sales_{name}") for name in _OF_SALE}
    goods = to_goods({name: getattr(row, f"sales_{name}") for name in GOODS})
    return Sale(
        round=round_,
        recurrence=recurrence,
        confirm=Confirm(row.sales_confirm),
        published=bool(row.sales_published),
        goods=goods,
        door=to_door(row.sales_door),
        vouchers=bool(row.sales_vouchers),
        items=items,
        **facts,
    )


def _to_round(row: AnyRow, units: tuple[ItemUnits, ...], siblings: tuple[int, ...]) -> Round:
    return Round(
        status=RoundStatus(row.status),
        items=units,
        siblings=siblings,
        published=bool(row.published),
        covered=bool(row.covered),
        lined=bool(row.lined),
        **{name: getattr(row, name) for name in _OF_ROUND},
    )


async def create_sale(
    connection: AsyncConnection, database: Database, entries: FeedEntries, draft: SaleDraft, lane: int
) -> Sale:
    version = await lock_catalogue(connection) + 1
    if draft.goods.external_id is not None:
        await _require_free(connection, database, draft.goods.external_id, 0)
    lane = await lane_in_group(connection, draft, lane)
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
            confirm=draft.confirm,
            begins_ms=draft.begins_ms if again is None else again.begins_ms,
            window_ms=draft.ends_ms - draft.begins_ms if again is None else again.window_ms,
            repeat=None if again is None else again.repeat,
            timezone=draft.timezone if again is None else again.timezone,
            created_ms=database.now_ms,
            changed=version,
            published=int(draft.published),
            door=door_column(draft.door),
            vouchers=int(draft.vouchers),
            limit_by=draft.limit_by,
            **goods_columns(draft.goods),
        )
    )
    key: Any = inserted.inserted_primary_key
    sale_id: int = key[0]
    await insert_items(connection, sale_id, draft.items)
    await insert_round(connection, sale_id, 1, draft.begins_ms, draft.ends_ms, lane, draft.door)
    if draft.limit_group is not None:  # such a sale has one round
        of_sale = update(rounds).where(rounds.c.sale_id == sale_id)
        await connection.execute(of_sale.values(limit_group=draft.limit_group))
    sale = await to_sale(connection, (await connection.execute(select_sale(sale_id))).one())
    await entries.sale(connection, EventType.SALE_CREATED, sale)
    await entries.round(connection, EventType.ROUND_CREATED, sale.round)
    await note(connection, database, EventType.SALE_CREATED, sale.id, sale_id=sale.id, after=sale_facts(sale))
    return sale


async def announce(
    connection: AsyncConnection, database: Database, entries: FeedEntries, draft: SaleDraft, lane: int, key: AnnounceKey
) -> Announced:
    # Locked before looking for the key: if two requests have the same key, the second sees the sale of the first.
    await lock_catalogue(connection)
    known = await announced(connection, key)
    if known is not None:
        return known
    sale = await create_sale(connection, database, entries, draft, lane)
    await connection.execute(
        insert(sale_keys).values(key_digest=key.key, body_digest=key.body, sale_id=sale.id, created_ms=database.now_ms)
    )
    return Announced(sale, new=True)


async def announced(connection: AsyncConnection, key: AnnounceKey) -> Announced | None:
    found = await connection.execute(select(sale_keys).where(sale_keys.c.key_digest == key.key))
    row = found.one_or_none()
    if row is None:
        return None
    if row.body_digest != key.body:
        return Announced(None, new=False)
    return Announced(await to_sale(connection, (await connection.execute(select_sale(row.sale_id))).one()), new=False)


async def _require_free(connection: AsyncConnection, database: Database, external_id: str, sale_id: int) -> None:
    """Requires that no current or future sale has the id. The catalogue is locked, so no other process uses it
    meanwhile."""
    has_ended = and_(sales.c.repeat.is_(None), rounds.c.ends_ms <= database.now_ms)
    is_over = or_(rounds.c.status == RoundStatus.CLOSED, has_ended)
    found = await connection.scalars(
        select(sales.c.id)
        .join(rounds, rounds.c.sale_id == sales.c.id)
        .where(sales.c.external_id == external_id, sales.c.id != sale_id, _is_among(literal(1)), ~is_over)
        .limit(1)
    )
    other = found.one_or_none()
    if other is not None:
        raise ExternalIdTaken(other)


async def insert_round(
    connection: AsyncConnection, sale_id: int, ordinal: int, begins_ms: int, ends_ms: int, lane: int, door: Door
) -> None:
    """Inserts a round with the full stock and with the sale's present limit, cool-down and lanes. The round is hidden
    if the sale is, is not covered yet if the sale gives codes, and gets a line if it may have one."""
    facts = select(
        sales.c.id,
        literal(ordinal).label("ordinal"),
        literal(lane).label("lane"),
        sales.c.lanes,
        sales.c.units.label("total"),
        sales.c.limit_per_buyer,
        sales.c.cool_down_s,
        sales.c.published,
        (1 - sales.c.vouchers).label("covered"),
        literal(begins_ms, BigInteger).label("scheduled_ms"),
        literal(begins_ms, BigInteger).label("begins_ms"),
        literal(ends_ms, BigInteger).label("ends_ms"),
        literal(RoundStatus.OPEN).label("status"),
        literal(door.audience.early_s_max).label("early_s"),
        literal(int(door.line.draws)).label("lined"),
    ).where(sales.c.id == sale_id)
    columns = ["sale_id", *list(facts.selected_columns.keys())[1:]]
    await connection.execute(insert(rounds).from_select(columns, facts))
    await deal_items(connection, sale_id, ordinal)
    if door.line.has_line:
        await insert_line(connection, sale_id, ordinal, door.line)


async def add_round(
    connection: AsyncConnection,
    database: Database,
    entries: FeedEntries,
    after: Round,
    begins_ms: int,
    ends_ms: int,
    lane: int,
) -> Sale | None:
    # Locked before the rounds are read, so that each keeper sees the rounds that others have added.
    version = await lock_catalogue(connection) + 1
    newest = await to_sale(connection, (await connection.execute(select_sale(after.sale_id))).one())
    if newest.round.id != after.id or not may_go_on(newest, begins_ms):
        return None
    await set_changed(connection, after.sale_id, version)
    await insert_round(connection, after.sale_id, after.ordinal + 1, begins_ms, ends_ms, lane, newest.door)
    if newest.vouchers:
        await cover_rounds(connection, database, entries, after.sale_id)
    added = await to_sale(connection, (await connection.execute(select_sale(after.sale_id))).one())
    await entries.round(connection, EventType.ROUND_CREATED, added.round)
    reached("ledger.add_round.inside")
    return added


async def cover_rounds(connection: AsyncConnection, database: Database, entries: FeedEntries, sale_id: int) -> int:
    """Lets rounds open for which there are enough codes by now. The catalogue is locked. Returns how many."""
    covered = await cover(connection, database, sale_id)
    found = await connection.execute(select(rounds).where(rounds.c.id.in_(covered)).order_by(rounds.c.id))
    for row in found.all():
        await entries.round(connection, EventType.ROUND_COVERED, await to_round(connection, row))
    return len(covered)


async def change_sale(
    connection: AsyncConnection,
    database: Database,
    entries: FeedEntries,
    sale_id: int,
    change: SaleChange,
    round_id: int | None,
) -> Sale | None:
    # Locked before the sale is read: no other process decides about a sale until this is committed.
    version = await lock_catalogue(connection) + 1
    wanted = select_sale(sale_id, round_id)
    row = (await connection.execute(wanted.add_columns(database.now_ms.label("now_ms")))).one_or_none()
    if row is None:
        return None
    sale = await to_sale(connection, row)
    around = await _neighbours(connection, sale.round)
    decision = decide(sale, change, row.now_ms, *around)
    if decision.is_nothing:
        return sale
    if "begins_ms" in decision.round and sale.door.line.draws:
        await _require_open_list(connection, sale)
    if decision.round.get("published"):
        await _require_draw(connection, sale, row.now_ms)
    if decision.round:
        await require_group(connection, sale.round.limit_group)
    external_id = decision.external_id(sale)
    # Also checked when only the window has changed: a sale that was over may be on again.
    if external_id is not None and (decision.goods or decision.round):
        await _require_free(connection, database, external_id, sale_id)
    columns = decision.sale | changed_columns(decision.goods) | changed_door(decision.door)
    await set_changed(connection, sale_id, version, **columns)
    if decision.round:
        await _change_round(connection, sale.round, decision)
    if decision.items or decision.item_totals:
        await change_items(connection, sale.round.id, decision.items, decision.item_totals)
    if decision.later:
        await connection.execute(
            update(rounds)
            .where(rounds.c.sale_id == sale_id, rounds.c.ordinal > sale.round.ordinal)
            .values(revision=rounds.c.revision + 1, **decision.later)
        )
    if sale.vouchers:
        await _require_codes(connection, database, sale, change, decision)
    after = await to_sale(connection, (await connection.execute(wanted)).one())
    await _tell(connection, entries, sale, after, decision)
    await _note(connection, database, sale, after)
    return after


async def _require_open_list(connection: AsyncConnection, sale: Sale) -> None:
    """Locks the line until the commit. Whoever comes to close the list of the draw meanwhile then reads the new
    beginning."""
    line = await lock_line(connection, sale.round.id)
    if line is not None and line.closed_ms is not None:
        raise NotPossible("The sale has begun, so its beginning cannot change any more: pause or close it instead.")


async def _require_draw(connection: AsyncConnection, sale: Sale, now_ms: int) -> None:
    found = await connection.scalar(select(lines.c.places + lines.c.waiting).where(lines.c.round_id == sale.round.id))
    if not may_be_published(sale, found or 0, now_ms):
        raise NotPossible("Its draw is over and no one could join: duplicate it, and publish the copy in time.")


async def _require_codes(
    connection: AsyncConnection, database: Database, sale: Sale, change: SaleChange, decision: Decision
) -> None:
    """Requires enough codes for the sale as it is after this change, which has been made already."""
    adds_units = change.add_units > 0 or bool(decision.item_totals)
    needs_more = adds_units or (change.ends_ms is not None and sale.round.covered)
    opens = change.published is True and not sale.round.covered
    if needs_more or opens:
        missing = -await spare(connection, database, sale.id, also=rounds.c.id == sale.round.id)
        if missing > 0:
            raise CodesMissing(missing)


async def _tell(
    connection: AsyncConnection, entries: FeedEntries, before: Sale, after: Sale, decision: Decision
) -> None:
    names = {*decision.sale, *decision.round, *decision.goods} - _NOT_TOLD
    changed = sorted({_PUBLIC_NAMES.get(name, name) for name in names} | set(after.door.differs_in(before.door)))
    if decision.items or decision.item_totals:
        changed.append("items")
    if changed:
        await entries.sale(connection, EventType.SALE_CHANGED, after, changed)
    if after.round.status is not before.round.status:
        await entries.sale(connection, _OF_STATUS[after.round.status], after)


async def _note(connection: AsyncConnection, database: Database, before: Sale, after: Sale) -> None:
    moved = after.round.status is not before.round.status
    what = _OF_STATUS[after.round.status] if moved else EventType.SALE_CHANGED
    facts = sale_facts(before), sale_facts(after)
    await note(connection, database, what, after.id, sale_id=after.id, before=facts[0], after=facts[1])


async def _neighbours(connection: AsyncConnection, round_: Round) -> tuple[Round | None, Round | None]:
    beside = (round_.ordinal - 1, round_.ordinal + 1)
    found = await connection.execute(
        select(rounds).where(rounds.c.sale_id == round_.sale_id, rounds.c.ordinal.in_(beside))
    )
    by_ordinal = {round_.ordinal: round_ for round_ in await to_rounds(connection, found.all())}
    return by_ordinal.get(beside[0]), by_ordinal.get(beside[1])


async def _change_round(connection: AsyncConnection, before: Round, decision: Decision) -> None:
    changed = await connection.execute(
        update(rounds)
        .where(rounds.c.id == before.id, rounds.c.epoch == before.epoch, rounds.c.revision == before.revision)
        .values(revision=before.revision + 1, **decision.round)
    )
    if changed.rowcount != 1:
        raise LedgerUnavailable(f"Another process changed round {before.id} at the same time, try again.")


async def lock_catalogue(connection: AsyncConnection) -> int:
    """Returns the version of the catalogue, with its row locked until the commit (SQLite has one writer anyway).

    So versions become visible in order: a node that has seen version 7 has seen all before it. Without the lock, 8
    could be committed before 7, and a node that asks for what came after 8 would never see 7.
    """
    found = await connection.scalars(select(meta.c.value).where(meta.c.name == CATALOGUE).with_for_update())
    return int(found.one())


async def _set_catalogue(connection: AsyncConnection, version: int) -> None:
    await connection.execute(update(meta).where(meta.c.name == CATALOGUE).values(value=str(version)))


async def set_changed(connection: AsyncConnection, sale_id: int, version: int, **values: Any) -> None:
    """Gives the sale a new version, so that every node reads it again."""
    await _set_catalogue(connection, version)
    await connection.execute(update(sales).where(sales.c.id == sale_id).values(changed=version, **values))
