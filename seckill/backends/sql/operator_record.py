"""The record. It is written in the transaction that makes the change, so neither exists without the other."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.access_tables import operator_record
from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.ports.record import Facts, RecordEntry, RecordFilter, acting

_r = operator_record.c
WHY_MAX = 255


async def note(
    connection: AsyncConnection,
    database: Database,
    what: str,
    subject: object,
    *,
    sale_id: int | None = None,
    before: Facts | None = None,
    after: Facts | None = None,
    why: str | None = None,
) -> None:
    """Notes what a known operator does; without one, notes nothing. Facts that are the same before and after are left
    out: a reader wants to know what has changed."""
    actor = acting()
    if actor is None:
        return
    if before is not None and after is not None:
        before, after = _differing(before, after)
    reason = why or actor.why
    await connection.execute(
        insert(operator_record)
        .values(
            at_ms=database.now_ms,
            who=actor.name,
            what=what,
            subject=str(subject),
            sale_id=sale_id,
            before=_json(before),
            after=_json(after),
            why=None if reason is None else reason[:WHY_MAX],
            request_id=actor.request_id,
        )
        .inline()
    )


class SqlRecordBook:
    """Implements `seckill.ports.record.RecordBook`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database

    @to_the_end
    async def note(self, what: str, subject: str, *, after: Facts | None = None) -> None:
        async with writing(self._database) as connection:
            await note(connection, self._database, what, subject, after=after)

    @to_the_end
    async def entries(self, wanted: RecordFilter, before: int | None, count: int) -> Sequence[RecordEntry]:
        these = select(operator_record).order_by(_r.id.desc()).limit(count)
        if before is not None:
            these = these.where(_r.id < before)
        if wanted.who is not None:
            these = these.where(_r.who == wanted.who)
        if wanted.what is not None and wanted.what.endswith(".*"):
            these = these.where(_r.what.startswith(wanted.what[:-1], autoescape=True))
        elif wanted.what is not None:
            these = these.where(_r.what == wanted.what)
        if wanted.sale_id is not None:
            these = these.where(_r.sale_id == wanted.sale_id)
        if wanted.since_ms is not None:
            these = these.where(_r.at_ms >= wanted.since_ms)
        if wanted.until_ms is not None:
            these = these.where(_r.at_ms < wanted.until_ms)
        async with reading(self._database) as connection:
            return [_to_entry(row) for row in await connection.execute(these)]


def _differing(before: Facts, after: Facts) -> tuple[Facts, Facts]:
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before[name] for name in names if name in before}, {
        name: after[name] for name in names if name in after
    }


def _to_entry(row: AnyRow) -> RecordEntry:
    return RecordEntry(
        id=row.id,
        at_ms=row.at_ms,
        who=row.who,
        what=row.what,
        subject=row.subject,
        sale_id=row.sale_id,
        before=None if row.before is None else msgspec.json.decode(row.before),
        after=None if row.after is None else msgspec.json.decode(row.after),
        why=row.why,
        request_id=row.request_id,
    )


def _json(facts: Facts | None) -> str | None:
    return None if facts is None else msgspec.json.encode(facts).decode()
