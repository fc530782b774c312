"""Alarms that were raised."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Integer, String, Text, and_, bindparam, case, delete, literal, select, true, update

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.figure_tables import alarms
from seckill.backends.sql.tables import rounds
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.engine.alarms.repeats import QUIET_S, STALE_AFTER_S
from seckill.ports.alarm_book import AlarmFilter, KeptAlarm, RaisedAlarm

_a = alarms.c
# After this time, an alarm that does not last counts as a new one.
SAME_WITHIN_MS = int(1000 * QUIET_S)
STALE_AFTER_MS = int(1000 * STALE_AFTER_S)
WHAT_MAX = 255


class SqlAlarmBook:
    """Implements `seckill.ports.alarm_book.AlarmBook`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        new = select(
            bindparam("key", type_=String).label("dedup_key"),
            bindparam("words", type_=String).label("what"),
            bindparam("told", type_=Text).label("facts"),
            bindparam("sale", type_=BigInteger).label("sale_id"),
            bindparam("lasts", type_=Integer).label("lasting"),
            literal(0).label("open_slot"),
            database.now_ms.label("raised_ms"),
            database.now_ms.label("told_ms"),
            literal(1).label("times"),
        ).where(literal(True))  # without a WHERE, SQLite takes the ON of ON CONFLICT for a join's
        self._insert = database.insert_missing(alarms, ["dedup_key", "open_slot"], new, returning=["id"])
        self._is_on = and_(_a.lasting == 1, _a.open_slot.is_not(None), _a.told_ms >= database.now_ms - STALE_AFTER_MS)

    @to_the_end
    async def raised(self, alarm: RaisedAlarm) -> None:
        is_open = and_(_a.dedup_key == alarm.key, _a.open_slot.is_not(None))
        is_old = _a.told_ms < self._database.now_ms - (STALE_AFTER_MS if alarm.lasting else SAME_WITHIN_MS)
        again = update(alarms).where(is_open).values(told_ms=self._database.now_ms, times=_a.times + 1)
        async with writing(self._database) as connection:
            await connection.execute(update(alarms).where(is_open, is_old).values(open_slot=None))
            if (await connection.execute(again)).rowcount:
                return
            values = {
                "key": alarm.key,
                "words": alarm.what[:WHAT_MAX],
                "told": msgspec.json.encode(alarm.facts, enc_hook=str).decode(),
                "sale": await self._sale(connection, alarm.facts),
                "lasts": int(alarm.lasting),
            }
            if not await self._insert.run(connection, values):
                await connection.execute(again)  # another process was first

    async def _sale(self, connection: Any, facts: Mapping[str, Any]) -> int | None:
        round_id = facts.get("round")
        if not isinstance(round_id, int):
            return None
        found: int | None = await connection.scalar(select(rounds.c.sale_id).where(rounds.c.id == round_id))
        return found

    @to_the_end
    async def renew(self, keys: Sequence[str]) -> None:
        these = and_(_a.dedup_key.in_(list(keys)), _a.open_slot.is_not(None))
        async with writing(self._database) as connection:
            await connection.execute(update(alarms).where(these).values(told_ms=self._database.now_ms))

    @to_the_end
    async def resolved(self, key: str) -> None:
        these = and_(_a.dedup_key == key, _a.open_slot.is_not(None))
        async with writing(self._database) as connection:
            await connection.execute(
                update(alarms).where(these).values(open_slot=None, resolved_ms=self._database.now_ms)
            )

    @to_the_end
    async def alarms(self, wanted: AlarmFilter, count: int) -> list[KeptAlarm]:
        these = [self._is_on if wanted.on else true()]
        if wanted.sale_id is not None:
            these.append(_a.sale_id == wanted.sale_id)
        if wanted.since_ms is not None:
            these.append(_a.raised_ms >= wanted.since_ms)
        if wanted.until_ms is not None:
            these.append(_a.raised_ms < wanted.until_ms)
        is_on = case((self._is_on, 1), else_=0).label("is_on")
        found = select(alarms, is_on).where(*these).order_by(_a.raised_ms.desc(), _a.id.desc()).limit(count)
        async with reading(self._database) as connection:
            return [_to_alarm(row) for row in await connection.execute(found)]

    @to_the_end
    async def prune_alarms(self, kept_ms: int, count: int) -> int:
        old = select(_a.id).where(_a.told_ms < self._database.now_ms - kept_ms).order_by(_a.told_ms).limit(count)
        async with reading(self._database) as connection:
            found = list(await connection.scalars(old))
        if found:
            async with writing(self._database) as connection:
                await connection.execute(delete(alarms).where(_a.id.in_(found)))
        return len(found)


def _to_alarm(row: AnyRow) -> KeptAlarm:
    return KeptAlarm(
        id=row.id,
        what=row.what,
        facts=msgspec.json.decode(row.facts),
        sale_id=row.sale_id,
        raised_ms=row.raised_ms,
        told_ms=row.told_ms,
        times=row.times,
        lasting=bool(row.lasting),
        resolved_ms=row.resolved_ms,
        is_on=bool(row.is_on),
    )
