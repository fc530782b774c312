"""Figures of rounds over time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields

import msgspec
from sqlalchemy import and_, delete, func, or_, select, update

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.figure_tables import figures
from seckill.backends.sql.tables import rounds
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.ports.figures import RoundReading, StockTurn

_f = figures.c
_NONE = "{}"
_NAMES = [each.name for each in fields(RoundReading)]


class SqlFigures:
    """Implements `seckill.ports.figures.FiguresLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        self._new = database.rows("new", {name: _f[name].type for name in _NAMES})
        # SQLite takes the ON of ON CONFLICT for a join's if there is no WHERE.
        source = select(self._new.table).where(self._new.table.c.at_s >= 0)
        self._note = database.insert_missing(figures, ["round_id", "at_s"], source, returning=["at_s"])

    @to_the_end
    async def note(self, readings: Sequence[RoundReading]) -> int:
        if not readings:
            return 0
        # Only one reading for each key: a statement cannot skip rows that it brings itself.
        first = {(each.round_id, each.at_s): each for each in reversed(readings)}
        async with writing(self._database) as connection:
            return len(await self._note.run(connection, self._new.bind([_values(each) for each in first.values()])))

    @to_the_end
    async def spare(self, round_id: int, since_s: int, until_s: int) -> None:
        these = and_(_f.round_id == round_id, _f.at_s.between(since_s, until_s), _f.fine == 1)
        async with writing(self._database) as connection:
            await connection.execute(update(figures).where(these).values(fine=0))

    @to_the_end
    async def read(
        self, sale_id: int, round_id: int | None, from_s: int, to_s: int, step_s: int, count: int
    ) -> list[RoundReading]:
        worst = ("backlog", "lag_ms", "p99_us")
        steps = (
            select(_f.round_id, func.max(_f.at_s).label("last_s"), *(func.max(_f[name]).label(name) for name in worst))
            .join(rounds, rounds.c.id == _f.round_id)
            .where(rounds.c.sale_id == sale_id, _f.at_s >= from_s, _f.at_s < to_s)
            .group_by(_f.round_id, _f.at_s - _f.at_s % step_s)
        )
        if round_id is not None:
            steps = steps.where(_f.round_id == round_id)
        step = steps.subquery()
        told = [step.c[name] if name in worst else _f[name] for name in _NAMES]
        last = and_(_f.round_id == step.c.round_id, _f.at_s == step.c.last_s)
        wanted = select(*told).join_from(step, figures, last).order_by(_f.at_s, _f.round_id).limit(count)
        async with reading(self._database) as connection:
            return [_to_reading(row) for row in await connection.execute(wanted)]

    @to_the_end
    async def newest(self, round_ids: Sequence[int], before_s: int | None = None) -> dict[int, RoundReading]:
        if not round_ids:
            return {}
        later = figures.alias("later")
        of_round = later.c.round_id == rounds.c.id
        in_time = of_round if before_s is None else and_(of_round, later.c.at_s < before_s)
        last = select(func.max(later.c.at_s)).where(in_time).scalar_subquery()
        wanted = select(*(_f[name] for name in _NAMES)).join(
            rounds, and_(_f.round_id == rounds.c.id, _f.at_s == last, rounds.c.id.in_(list(round_ids)))
        )
        async with reading(self._database) as connection:
            return {row.round_id: _to_reading(row) for row in await connection.execute(wanted)}

    @to_the_end
    async def turns(self, sale_id: int, from_s: int, to_s: int, count: int) -> list[StockTurn]:
        before = func.lag(_f.available).over(partition_by=_f.round_id, order_by=_f.at_s)
        seen = (
            select(_f.round_id, _f.at_s, _f.available, before.label("before"))
            .join(rounds, rounds.c.id == _f.round_id)
            .where(rounds.c.sale_id == sale_id, _f.at_s < to_s, _f.available.is_not(None))
            .subquery()
        )
        # The first known reading may already show nothing left: the units went before anyone looked.
        gone = and_(seen.c.available == 0, or_(seen.c.before > 0, seen.c.before.is_(None)))
        is_turn = or_(gone, and_(seen.c.available > 0, seen.c.before == 0))
        wanted = select(seen.c.round_id, seen.c.at_s, seen.c.available).where(is_turn, seen.c.at_s >= from_s)
        async with reading(self._database) as connection:
            found = await connection.execute(wanted.order_by(seen.c.at_s.desc()).limit(count))
            return [StockTurn(row.round_id, row.at_s, row.available) for row in found]

    @to_the_end
    async def refusals(self, round_id: int) -> Mapping[str, int]:
        these = and_(_f.round_id == round_id, _f.refused != _NONE)
        total: Counter[str] = Counter()
        before: Mapping[str, int] = {}
        async with reading(self._database) as connection:
            for text in await connection.scalars(select(_f.refused).where(these).order_by(_f.at_s)):
                counted = msgspec.json.decode(text, type=dict[str, int])
                for reason, many in counted.items():
                    total[reason] += max(0, many - before.get(reason, 0))
                before = counted
        return total

    @to_the_end
    async def prune_fine(self, kept_ms: int, count: int) -> int:
        return await self._prune(1, kept_ms, count)

    @to_the_end
    async def prune_all(self, kept_ms: int, count: int) -> int:
        return await self._prune(0, kept_ms, count)

    async def _prune(self, fine: int, kept_ms: int, count: int) -> int:
        """Deletes readings of one round at a time, oldest first."""
        old = and_(_f.fine == fine, _f.at_s < (self._database.now_ms - kept_ms) // 1000)
        async with reading(self._database) as connection:
            round_id = await connection.scalar(select(_f.round_id).where(old).order_by(_f.fine, _f.at_s).limit(1))
            if round_id is None:
                return 0
            these = and_(_f.round_id == round_id, old)
            found = list(await connection.scalars(select(_f.at_s).where(these).order_by(_f.at_s).limit(count)))
        if not found:  # another keeper was here a moment ago
            return count
        async with writing(self._database) as connection:
            this = and_(_f.round_id == round_id, _f.fine == fine, _f.at_s <= found[-1])
            await connection.execute(delete(figures).where(this))
        return count  # there may be more, of this round or of others


def _values(each: RoundReading) -> list[object]:
    values = {name: getattr(each, name) for name in _NAMES}
    refused = msgspec.json.encode(dict(each.refused)).decode()
    return list((values | {"fine": int(each.fine), "refused": refused}).values())


def _to_reading(row: AnyRow) -> RoundReading:
    values = dict(row._mapping)
    refused = msgspec.json.decode(row.refused, type=dict[str, int])
    return RoundReading(**(values | {"fine": bool(row.fine), "refused": refused}))
