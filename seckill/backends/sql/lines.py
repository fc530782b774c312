"""The lines in the ledger, each method one transaction."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, case, func, select, update

from seckill.backends.sql import line_draws, line_joining, line_serving
from seckill.backends.sql.database import Database
from seckill.backends.sql.end_orders import has_lapsed
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.line_joining import LineWriters
from seckill.backends.sql.line_rows import change_row, entries_of, lock_line, to_entry, to_line
from seckill.backends.sql.line_tables import STATES, line_entries, lines
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.record_facts import line_facts
from seckill.backends.sql.sales import lock_catalogue, select_sale, set_changed, to_sale
from seckill.backends.sql.tables import orders, rounds
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.event import EventType
from seckill.domain.line import EntryState, LineEntry, RoundLine
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Sale
from seckill.errors import NotPossible
from seckill.ports.line import Decided, Joining, NoEntry, Standing, WaitingLine

_e = line_entries.c


class SqlLines:
    """Implements `seckill.ports.line.LineLedger`."""

    def __init__(self, database: Database, entries: FeedEntries, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        self._use = LineWriters(database, entries)
        self._joins = line_joining.Joins(self._use)
        self._places = line_draws.Places(database)

    @to_the_end
    async def join(self, round_id: int, joinings: Sequence[Joining]) -> Sequence[Standing] | NoEntry:
        async with writing(self._database) as connection:
            return await self._joins.join(connection, round_id, joinings)

    @to_the_end
    async def leave(self, entry_id: int, user: str | None, reason: str | None = None) -> Standing | NoEntry:
        async with writing(self._database) as connection:
            return await line_joining.leave(connection, self._use, entry_id, user, reason)

    @to_the_end
    async def waiting_of(self, user: str) -> Sequence[int]:
        # Joined with the lines, because entries are found by their round first.
        mine = select(_e.id).join(lines, lines.c.round_id == _e.round_id)
        waiting = (lines.c.waiting > 0, _e.user_id == user, _e.state == STATES[EntryState.WAITING])
        async with reading(self._database) as connection:
            return list(await connection.scalars(mine.where(*waiting).order_by(_e.id)))

    @to_the_end
    async def standings(self, entry_ids: Sequence[int]) -> list[Standing]:
        async with reading(self._database) as connection:
            return await line_joining.read_standings(connection, entry_ids)

    @to_the_end
    async def standings_of(self, asked: Sequence[tuple[int, str]]) -> list[Standing]:
        async with reading(self._database) as connection:
            return await self._joins.standings_of(connection, asked)

    @to_the_end
    async def entries(self, entry_ids: Sequence[int]) -> list[LineEntry]:
        async with reading(self._database) as connection:
            found = await connection.execute(select(line_entries).where(_e.id.in_(entry_ids)))
            return [to_entry(row) for row in found]

    @to_the_end
    async def open_line(self, sale_id: int, round_id: int) -> Sale | None:
        async with writing(self._database) as connection:
            version = await lock_catalogue(connection) + 1
            row = await lock_line(connection, round_id)
            if row is None:
                return None
            this = update(rounds).where(rounds.c.id == round_id, rounds.c.lined == 0)
            opened = await connection.execute(this.values(lined=1, revision=rounds.c.revision + 1))
            if opened.rowcount:
                await set_changed(connection, sale_id, version)
                await self._use.entries.other(connection, EventType.LINE_OPENED, sale_id, round_id, {})
            return await to_sale(connection, (await connection.execute(select_sale(sale_id, round_id))).one())

    @to_the_end
    async def line(self, round_id: int) -> RoundLine | None:
        async with reading(self._database) as connection:
            row = (await connection.execute(select(lines).where(lines.c.round_id == round_id))).one_or_none()
            return None if row is None else to_line(row)

    @to_the_end
    async def decided(self, round_id: int) -> Decided:
        lapsed = func.sum(case((has_lapsed(), 1), else_=0))
        over = and_(orders.c.round_id == round_id, orders.c.expires_ms <= self._database.now_ms)
        async with reading(self._database) as connection:
            row = (
                await connection.execute(select(func.count().label("all"), lapsed.label("lapsed")).where(over))
            ).one()
        return Decided(row.all - int(row.lapsed or 0), int(row.lapsed or 0))

    @to_the_end
    async def served_up_to(self, line: RoundLine) -> int:
        async with reading(self._database) as connection:
            first = await line_joining.first_place(connection, line)
        return line.places if first is None else first - 1

    @to_the_end
    async def change_line(
        self, round_id: int, *, paused: bool | None, pace: int | None, beacon: str | None
    ) -> RoundLine | None:
        async with writing(self._database) as connection:
            row = await lock_line(connection, round_id)
            if row is None:
                return None
            before = line_facts(to_line(row))
            values: dict[str, int | str | None] = {} if paused is None else {"paused": int(paused)}
            if pace is not None:
                values["serve_per_s"] = pace or None
            if beacon is not None and beacon != row.beacon:
                _check_beacon(to_line(row))
                values["beacon"] = beacon
            if values:
                await change_row(connection, round_id, **values)
                facts = {name: bool(value) if name == "paused" else value for name, value in values.items()}
                await self._use.entries.other(connection, EventType.LINE_CHANGED, row.sale_id, round_id, facts)
            line = to_line((await connection.execute(select(lines).where(lines.c.round_id == round_id))).one())
            if values:
                await note(
                    connection,
                    self._database,
                    "line.changed",
                    round_id,
                    sale_id=row.sale_id,
                    before=before,
                    after=line_facts(line),
                )
            return line

    @to_the_end
    async def entries_by_place(
        self, round_id: int, after: int, count: int, state: EntryState | None = None
    ) -> list[LineEntry]:
        wanted = _shown_as(entries_of(round_id).where(_e.place > max(0, after)), state)
        async with reading(self._database) as connection:
            found = await connection.execute(wanted.order_by(_e.place).limit(count))
            return [to_entry(row) for row in found]

    @to_the_end
    async def undrawn(self, round_id: int, after: int, count: int, state: EntryState | None = None) -> list[LineEntry]:
        wanted = _shown_as(entries_of(round_id).where(_e.place.is_(None), _e.id > after), state)
        async with reading(self._database) as connection:
            found = await connection.execute(wanted.order_by(_e.place, _e.id).limit(count))
            return [to_entry(row) for row in found]

    @to_the_end
    async def entry_of(self, round_id: int, user: str) -> LineEntry | None:
        async with reading(self._database) as connection:
            row = (await connection.execute(entries_of(round_id).where(_e.user_id == user))).one_or_none()
            return None if row is None else to_entry(row)

    @to_the_end
    async def draws_due(self) -> list[RoundLine]:
        async with reading(self._database) as connection:
            return await line_draws.draws_due(connection, self._database)

    @to_the_end
    async def close_list(self, round_id: int) -> RoundLine | None:
        async with writing(self._database) as connection:
            return await line_draws.close_list(connection, self._use, round_id)

    @to_the_end
    async def listed(self, round_id: int, after: str, count: int) -> Sequence[tuple[str, int]]:
        async with reading(self._database) as connection:
            row = (await connection.execute(select(lines).where(lines.c.round_id == round_id))).one()
            return await line_draws.listed(connection, to_line(row), after, count)

    @to_the_end
    async def unplaced(self, round_id: int, after: int, count: int) -> Sequence[int] | None:
        async with reading(self._database) as connection:
            return await line_draws.unplaced(connection, round_id, after, count)

    @to_the_end
    async def placed(self, round_id: int, after: int, count: int) -> Sequence[int]:
        wanted = select(_e.id).where(_e.round_id == round_id, _e.place > after, _e.place <= after + count)
        async with reading(self._database) as connection:
            return list(await connection.scalars(wanted.order_by(_e.place)))

    @to_the_end
    async def note_list(self, round_id: int, list_hash: str) -> None:
        async with writing(self._database) as connection:
            await line_draws.note_list(connection, self._use, round_id, list_hash)

    @to_the_end
    async def note_beacon(self, round_id: int, number: int, value: str) -> None:
        async with writing(self._database) as connection:
            await line_draws.note_beacon(connection, round_id, number, value)

    @to_the_end
    async def miss_beacon(self, round_id: int) -> bool:
        async with writing(self._database) as connection:
            return await line_draws.miss_beacon(connection, self._use, round_id)

    @to_the_end
    async def give_places(self, places: Sequence[tuple[int, int]]) -> None:
        async with writing(self._database) as connection:
            await self._places.give(connection, places)

    @to_the_end
    async def mark_drawn(self, round_id: int) -> None:
        async with writing(self._database) as connection:
            await line_draws.mark_drawn(connection, self._use, round_id)

    @to_the_end
    async def lines_waiting(self) -> list[WaitingLine]:
        async with reading(self._database) as connection:
            return await line_serving.lines_waiting(connection)

    @to_the_end
    async def call_next(
        self, round_id: int, token: str, lease_s: float, units: Mapping[int, int], count: int
    ) -> Sequence[LineEntry] | None:
        async with writing(self._database) as connection:
            return await line_serving.call_next(connection, self._use, round_id, token, lease_s, units, count)

    @to_the_end
    async def settle_called(
        self, round_id: int, token: str, called: Sequence[LineEntry], refused: Mapping[int, str]
    ) -> Sequence[LineEntry]:
        async with writing(self._database) as connection:
            return await line_serving.settle_called(connection, self._use, round_id, token, called, refused)

    @to_the_end
    async def buried(self, numbers: Collection[OrderNumber]) -> set[OrderNumber]:
        async with reading(self._database) as connection:
            return await line_serving.buried(connection, numbers)

    @to_the_end
    async def pass_over(self, round_id: int, reason: str, count: int, items: Collection[int] | None = None) -> int:
        async with writing(self._database) as connection:
            return await line_serving.pass_over(connection, self._use, round_id, reason, count, items)


def _shown_as(wanted: Any, state: EntryState | None) -> Any:
    """Selects only the entries that are shown to people in this state."""
    if state is None:
        return wanted
    return wanted.where(_e.state.in_([number for each, number in STATES.items() if each.shown is state]))


def _check_beacon(line: RoundLine) -> None:
    if not line.wants_beacon:
        raise NotPossible("This draw was announced without a beacon, so it cannot have one now.")
    if line.beacon_from is not None:
        raise NotPossible(
            "The beacon of this draw comes from the source that was announced with it, and nobody chooses."
        )
    if line.closed_ms is None or line.list_hash is None:
        raise NotPossible("The list is not closed yet: a beacon must be a value that nobody knew before.")
    if line.beacon is not None:
        raise NotPossible("This draw has its beacon already, and keeps it.")
