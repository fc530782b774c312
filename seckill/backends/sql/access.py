"""Operators' keys and buyers' standing. Every change gets the next version, under a lock, so versions become visible in
order, and a process that has seen one has seen all before it."""

from dataclasses import asdict, replace

from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.access_tables import ACCESS, buyer_standings, operator_keys
from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.dead_letters import now_of
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.tables import meta
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.operator import SIGNED_IN, Role
from seckill.domain.operator_key import OperatorKey
from seckill.ports.access import EVERYBODY, AccessChanges, BuyerStanding
from seckill.ports.record import Facts, acting

SESSIONS_KEPT_MS = 24 * 3600 * 1000  # after their end; longer than signing in takes

_keys, _buyers = operator_keys.c, buyer_standings.c
_VERSION = select(meta.c.value).where(meta.c.name == ACCESS)


class SqlAccess:
    """Implements `seckill.ports.access.AccessLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database

    @to_the_end
    async def changes(self, after: int) -> AccessChanges | None:
        async with reading(self._database) as connection:
            # Read before the rows: a change made meanwhile is read now and once more the next time.
            version = int((await connection.scalars(_VERSION)).one())
            if version <= after:
                return None
            keys = [_to_key(row) for row in await connection.execute(select(operator_keys))]
            changed = select(buyer_standings).where(_buyers.changed > after)
            return AccessChanges(version, keys, [_to_standing(row) for row in await connection.execute(changed)])

    @to_the_end
    async def add_key(self, key: OperatorKey, lifetime_s: float | None) -> OperatorKey:
        async with writing(self._database) as connection:
            await _next_version(connection)
            now_ms = await now_of(connection, self._database)
            expires_ms = None if lifetime_s is None else now_ms + int(lifetime_s * 1000)
            made = replace(key, created_ms=now_ms, expires_ms=expires_ms)
            await connection.execute(insert(operator_keys).values(asdict(made)))
            facts = {"name": made.name, "role": made.role, "expires_ms": made.expires_ms}
            await note(connection, self._database, "key.created", made.id, after=facts)
            return made

    @to_the_end
    async def add_session(self, key: OperatorKey, lifetime_s: float, facts: Facts) -> OperatorKey | None:
        async with writing(self._database) as connection:
            await _next_version(connection)  # takes the lock, so that no other process adds one
            now_ms = await now_of(connection, self._database)
            over = _keys.expires_ms < now_ms - SESSIONS_KEPT_MS
            await connection.execute(delete(operator_keys).where(_keys.created_by == SIGNED_IN, over))
            if (await connection.execute(select(_keys.id).where(_keys.id == key.id))).first() is not None:
                return None
            made = replace(key, created_ms=now_ms, expires_ms=now_ms + int(lifetime_s * 1000))
            await connection.execute(insert(operator_keys).values(asdict(made)))
            told = {"role": made.role, "expires_ms": made.expires_ms, **facts}
            await note(connection, self._database, "session.begun", made.id, after=told)
            return made

    @to_the_end
    async def keys(self) -> list[OperatorKey]:
        async with reading(self._database) as connection:
            found = await connection.execute(select(operator_keys).order_by(_keys.created_ms.desc(), _keys.id))
            return [_to_key(row) for row in found]

    @to_the_end
    async def revoke_key(self, key_id: str) -> OperatorKey | None:
        this = select(operator_keys).where(_keys.id == key_id)
        async with writing(self._database) as connection:
            await _next_version(connection)
            row = (await connection.execute(this)).one_or_none()
            if row is None or row.revoked_ms is not None:
                return None if row is None else _to_key(row)
            await connection.execute(
                update(operator_keys).where(_keys.id == key_id).values(revoked_ms=self._database.now_ms)
            )
            facts = {"name": row.name, "role": row.role}
            await note(connection, self._database, "key.revoked", key_id, before=facts)
            return _to_key((await connection.execute(this)).one())

    @to_the_end
    async def block(self, user: str, reason: str) -> BuyerStanding:
        async with writing(self._database) as connection:
            version = await _next_version(connection)
            known = await _standing(connection, user)
            if known.blocked_ms is not None:
                return known
            actor = acting()
            blocked = replace(
                known,
                blocked_ms=await now_of(connection, self._database),
                reason=reason,
                blocked_by=None if actor is None else actor.name,
            )
            await _put(connection, blocked, version)
            await note(connection, self._database, "buyer.blocked", user, why=reason)
            return blocked

    @to_the_end
    async def unblock(self, user: str, reason: str) -> BuyerStanding:
        async with writing(self._database) as connection:
            version = await _next_version(connection)
            known = await _standing(connection, user)
            if known.blocked_ms is None:
                return known
            free = replace(known, blocked_ms=None, reason=None, blocked_by=None)
            await _put(connection, free, version)
            before = {"reason": known.reason, "blocked_by": known.blocked_by}
            await note(connection, self._database, "buyer.unblocked", user, before=before, why=reason)
            return free

    @to_the_end
    async def end_tokens(self, user: str, before_s: int, reason: str) -> BuyerStanding:
        async with writing(self._database) as connection:
            version = await _next_version(connection)
            known = await _standing(connection, user)
            if (known.tokens_before_s or 0) >= before_s:
                return known
            ended = replace(known, tokens_before_s=before_s)
            await _put(connection, ended, version)
            facts = ({"before_s": known.tokens_before_s}, {"before_s": before_s})
            what = "tokens.ended" if user == EVERYBODY else "buyer.tokens_ended"
            await note(connection, self._database, what, user, before=facts[0], after=facts[1], why=reason)
            return ended

    @to_the_end
    async def standing(self, user: str) -> BuyerStanding:
        async with reading(self._database) as connection:
            return await _standing(connection, user)

    @to_the_end
    async def blocked(self, after: str, count: int) -> list[BuyerStanding]:
        these = select(buyer_standings).where(_buyers.blocked_ms.is_not(None), _buyers.user_id > after)
        async with reading(self._database) as connection:
            found = await connection.execute(these.order_by(_buyers.user_id).limit(count))
            return [_to_standing(row) for row in found]


async def _next_version(connection: AsyncConnection) -> int:
    version = int((await connection.scalars(_VERSION.with_for_update())).one()) + 1
    await connection.execute(update(meta).where(meta.c.name == ACCESS).values(value=str(version)))
    return version


async def _standing(connection: AsyncConnection, user: str) -> BuyerStanding:
    row = (await connection.execute(select(buyer_standings).where(_buyers.user_id == user))).one_or_none()
    return BuyerStanding(user=user) if row is None else _to_standing(row)


async def _put(connection: AsyncConnection, standing: BuyerStanding, version: int) -> None:
    """The caller has locked the version, so no other process does this at the same time."""
    values = {
        "blocked_ms": standing.blocked_ms,
        "reason": standing.reason,
        "blocked_by": standing.blocked_by,
        "tokens_before_s": standing.tokens_before_s,
        "changed": version,
    }
    this = update(buyer_standings).where(_buyers.user_id == standing.user)
    if (await connection.execute(this.values(values))).rowcount == 0:
        await connection.execute(insert(buyer_standings).values(user_id=standing.user, **values))


def _to_key(row: AnyRow) -> OperatorKey:
    return OperatorKey(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        digest=row.digest,
        created_ms=row.created_ms,
        created_by=row.created_by,
        expires_ms=row.expires_ms,
        revoked_ms=row.revoked_ms,
    )


def _to_standing(row: AnyRow) -> BuyerStanding:
    return BuyerStanding(
        user=row.user_id,
        blocked_ms=row.blocked_ms,
        tokens_before_s=row.tokens_before_s,
        reason=row.reason,
        blocked_by=row.blocked_by,
    )
