"""Copies everything from one database to another, such as from the SQLite file of the first days to a server.

No one writes to the old one meanwhile: the copy holds its lock. Rows are copied in batches, table by table in the order
of their references, and read back at the end to check that each table has the same rows as before. Ids stay as they
are, and new ids come after the last ones that were ever given out.

The new database has a mark until everything is there, and no process starts on a database with this mark. An
interrupted move begins again and first removes what it had copied. When it is done, a mark in the old database keeps
processes from starting there: two ledgers for one gate would each know half of the orders.
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
from sqlalchemy import ColumnElement, Integer, Table, and_, delete, func, insert, inspect, literal, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql import access_tables, figure_tables, line_tables
from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.tables import ID_KEY, MOVED, MOVING, audience_parts, meta, metadata, pictures
from seckill.backends.sql.transactions import edge, reading, writing
from seckill.errors import StartError

MOVE_WITHIN_S = 24 * 3600.0
BATCH_ROWS = 1000
# Smaller batches for tables whose rows may have up to a megabyte.
BATCHES = {pictures.name: 5, audience_parts.name: 20}

_NUMBER_ON = {
    "postgresql": "SELECT setval(pg_get_serial_sequence('{table}', 'id'), {last})",
    "mysql": "ALTER TABLE {table} AUTO_INCREMENT = {next}",
}

# Told about progress: the table, how many of its rows are copied, and how many there are.
Tell = Callable[[str, int, int], None]


@dataclass(slots=True)
class _Contents:
    """A checksum of a table's rows, in whatever order they come."""

    rows: int = 0
    digest: int = 0

    def add(self, rows: Sequence[AnyRow]) -> None:
        self.rows += len(rows)
        for row in rows:
            of_row = hashlib.sha256(msgspec.json.encode(list(row))).digest()
            self.digest = (self.digest + int.from_bytes(of_row)) % (1 << 256)


def tables() -> list[Table]:
    """Returns the tables in the order of their references."""
    for each in (line_tables.line_entries, access_tables.operator_keys, figure_tables.figures):
        assert each.metadata is metadata  # otherwise some would be missing
    return list(metadata.sorted_tables)


async def move(
    source: Database, target: Database, tell: Tell, still_alone: Callable[[], Awaitable[None]]
) -> dict[str, int]:
    """Moves everything and returns how many rows each table has. Both databases must have the newest schema. Raises
    StartError if the target is not empty or if the rows that arrived differ. Also raises what `still_alone` raises: a
    role that was started meanwhile would go on with the old ledger."""
    async with edge(source, MOVE_WITHIN_S), source.writers.begin() as held:
        await _begin(held, target)
        copied = {}
        for table in tables():
            copied[table.name] = await _copy(held, target, table, tell)
        for table in tables():
            arrived = await _contents(target, table)
            if arrived != copied[table.name]:
                raise StartError(
                    f"{table.name} has not arrived as it was ({copied[table.name].rows} rows went, {arrived.rows} are "
                    "there): run the move again."
                )
        await _number_on(held, target)
        await still_alone()
        await held.execute(delete(meta).where(meta.c.name == MOVED))
        await held.execute(insert(meta).values(name=MOVED, value=target.writers.dialect.name))
    # After the commit: a move that dies in between can be run again.
    async with writing(target) as connection:
        await connection.execute(delete(meta).where(meta.c.name == MOVING))
    return {name: contents.rows for name, contents in copied.items()}


async def require_room(source: Database, target: Database) -> None:
    """Must be called before anything is changed in the target, whatever schema that has. Raises StartError if it is not
    empty."""
    async with reading(source) as connection:
        mark = await _mark(connection)
    await _marked(target, mark)


async def _marked(target: Database, mark: str) -> bool:
    """Returns True if the target has a part of this ledger, from an interrupted move, and False if it is empty.
    Otherwise raises StartError."""
    async with reading(target) as connection:
        there = set(await connection.run_sync(lambda sync: inspect(sync).get_table_names()))
        marked = None
        if meta.name in there:
            marked = await connection.scalar(select(meta.c.value).where(meta.c.name == MOVING))
        for table in tables():
            if table is meta or table.name not in there:
                continue
            found = (await connection.execute(select(literal(1)).select_from(table).limit(1))).first()
            if marked is None and found is not None:
                raise StartError(f"The target has rows in {table.name}: name an empty database.")
    if marked not in (None, mark):
        raise StartError("The target has a part of another ledger, whose move was interrupted: name an empty database.")
    return marked is not None


async def _begin(held: AsyncConnection, target: Database) -> None:
    mark = await _mark(held)
    if not await _marked(target, mark):
        async with writing(target) as connection:
            await connection.execute(insert(meta).values(name=MOVING, value=mark))
    for table in reversed(tables()):
        await _clear(target, table)


async def _mark(held: AsyncConnection) -> str:
    """Returns a mark by which this ledger is recognised."""
    key = await held.scalar(select(meta.c.value).where(meta.c.name == ID_KEY))
    return hashlib.blake2b(str(key).encode(), digest_size=16).hexdigest()


async def _clear(target: Database, table: Table) -> None:
    """Deletes the rows that an interrupted move has left and, in `meta`, those of the new schema."""
    key = list(table.primary_key)
    stays = table.c.name == MOVING if table is meta else literal(1) == literal(0)
    while True:
        async with writing(target) as connection:
            found = (await connection.execute(select(*key).where(~stays).limit(BATCH_ROWS))).all()
            if not found:
                return
            these = key[0].in_([row[0] for row in found])
            if len(key) > 1:
                these = tuple_(*key).in_([tuple(row) for row in found])
            await connection.execute(delete(table).where(these))


async def _copy(held: AsyncConnection, target: Database, table: Table, tell: Tell) -> _Contents:
    total = await held.scalar(select(func.count()).select_from(table)) or 0
    contents = _Contents()
    async for batch in _batches(held, table):
        async with writing(target) as connection:
            await connection.execute(insert(table), [dict(row._mapping) for row in batch])
        contents.add(batch)
        tell(table.name, contents.rows, total)
    return contents


async def _contents(database: Database, table: Table) -> _Contents:
    contents = _Contents()
    async with _reading_for_long(database) as connection:
        async for batch in _batches(connection, table):
            contents.add(batch)
    return contents


@asynccontextmanager
async def _reading_for_long(database: Database) -> AsyncIterator[AsyncConnection]:
    async with edge(database, MOVE_WITHIN_S), database.readers.connect() as connection:
        yield connection


async def _batches(connection: AsyncConnection, table: Table) -> AsyncIterator[Sequence[AnyRow]]:
    key = list(table.primary_key)
    wanted = select(table).order_by(*key).limit(BATCHES.get(table.name, BATCH_ROWS))
    if table is meta:  # the marks only concern one of the two
        wanted = wanted.where(meta.c.name.not_in([MOVED, MOVING]))
    batch = (await connection.execute(wanted)).all()
    while batch:
        yield batch
        last = batch[-1]._mapping
        batch = (await connection.execute(wanted.where(_after(key, [last[column] for column in key])))).all()


def _after(key: Sequence[ColumnElement[object]], last: Sequence[object]) -> ColumnElement[bool]:
    if len(key) == 1:
        return key[0] > last[0]
    first, second = key
    return (first > last[0]) | and_(first == last[0], second > last[1])


async def _number_on(held: AsyncConnection, target: Database) -> None:
    """Makes the target count on from the last ids, even if their rows are gone: some are known outside, and no id may
    mean two things."""
    noted = {row.name: row.seq for row in await held.execute(text("SELECT name, seq FROM sqlite_sequence"))}
    for table in tables():
        column = table.autoincrement_column
        if column is None or not isinstance(column.type, Integer):
            continue
        greatest = await held.scalar(select(func.max(column))) or 0
        last = max(greatest, noted.get(table.name, 0))
        if last:
            async with writing(target) as connection:
                statement = _NUMBER_ON[connection.dialect.name].format(table=table.name, last=last, next=last + 1)
                await connection.execute(text(statement))
