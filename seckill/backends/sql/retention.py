"""Deletes rows that were kept long enough."""

from sqlalchemy import and_, delete, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import Database
from seckill.backends.sql.line_tables import line_entries, lines
from seckill.backends.sql.tables import PRUNING, dead_letters, meta, rounds
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.dead_letter import LetterState


class SqlRetention:
    """Implements `seckill.ports.retention.RetentionLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        self._forget_letters = delete(dead_letters).where(database.among(dead_letters.c.id, "ids"))
        self._forget_entries = delete(line_entries).where(database.among(line_entries.c.id, "ids"))

    @to_the_end
    async def prune_letters(self, kept_ms: int, count: int) -> int:
        # As long as the gate has a round, it may still be asked why one of its orders is not written.
        forgotten = and_(rounds.c.retired_ms.is_not(None), rounds.c.opened_ms.is_(None))
        wanted = (
            select(dead_letters.c.id)
            .outerjoin(rounds, rounds.c.id == dead_letters.c.round_id)
            .where(dead_letters.c.state.in_([LetterState.RECORDED, LetterState.DISCARDED]))
            .where(dead_letters.c.created_ms < self._database.now_ms - kept_ms, or_(rounds.c.id.is_(None), forgotten))
            .order_by(dead_letters.c.id)
            .limit(count)
        )
        async with reading(self._database) as connection:
            found = list(await connection.scalars(wanted))
        if found:
            async with writing(self._database) as connection:
                await connection.execute(self._forget_letters, {"ids": found})
        return len(found)

    @to_the_end
    async def prune_lines(self, kept_ms: int, count: int) -> int:
        old = and_(rounds.c.retired_ms < self._database.now_ms - kept_ms, rounds.c.opened_ms.is_(None))
        oldest = select(lines.c.round_id).join(rounds, rounds.c.id == lines.c.round_id).where(old).limit(1)
        async with reading(self._database) as connection:
            if await _pruned_now(connection) is None and (await connection.execute(oldest)).first() is None:
                return 0
        async with writing(self._database) as connection:
            round_id = await _pruned_now(connection)
            if round_id is None:
                round_id = await connection.scalar(oldest)
                if round_id is None:
                    return 0
                # The line goes first, with a note of it: entries without a line are no contradiction, but a line
                # without entries would be.
                await connection.execute(delete(lines).where(lines.c.round_id == round_id))
                await connection.execute(insert(meta).values(name=PRUNING, value=str(round_id)))
            of_round = select(line_entries.c.id).where(line_entries.c.round_id == round_id).limit(count)
            found = list(await connection.scalars(of_round))
            if found:
                await connection.execute(self._forget_entries, {"ids": found})
            else:
                await connection.execute(delete(meta).where(meta.c.name == PRUNING))
        return count


async def _pruned_now(connection: AsyncConnection) -> int | None:
    noted = await connection.scalar(select(meta.c.value).where(meta.c.name == PRUNING))
    return None if noted is None else int(noted)
