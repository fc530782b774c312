"""Finds buyers in a line who may no longer buy, because an operator has blocked them or they are no longer invited.
This is asked when their turn comes."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.access_tables import buyer_standings
from seckill.backends.sql.audience import not_listed
from seckill.backends.sql.door_column import to_door
from seckill.backends.sql.tables import sales
from seckill.domain.audience_list import digest_of
from seckill.domain.line import LineEntry
from seckill.domain.outcome import Outcome


async def turned_away(connection: AsyncConnection, sale_id: int, entries: Sequence[LineEntry]) -> dict[int, str]:
    """Returns the reason for each such entry. The rule is the same as for joining now, except for two things that
    cannot be known here."""
    if not entries:
        return {}
    away = dict.fromkeys(await _not_invited(connection, sale_id, entries), Outcome.NOT_INVITED.value)
    return away | dict.fromkeys(await _blocked(connection, entries), Outcome.BLOCKED.value)


async def _blocked(connection: AsyncConnection, entries: Sequence[LineEntry]) -> list[int]:
    """Finds blocked buyers. They may still be in the line if they joined at a process that had not heard of it."""
    standing = buyer_standings.c
    users = [entry.user for entry in entries]
    wanted = select(standing.user_id).where(standing.user_id.in_(users), standing.blocked_ms.is_not(None))
    found = set(await connection.scalars(wanted))
    return [entry.id for entry in entries if entry.user in found]


async def _not_invited(connection: AsyncConnection, sale_id: int, entries: Sequence[LineEntry]) -> list[int]:
    sale = (await connection.execute(select(sales.c.door, sales.c.list_version).where(sales.c.id == sale_id))).one()
    audience = to_door(sale.door).audience
    others = [entry for entry in entries if not audience.still_admits(entry.groups)]
    if not others or not audience.listed:
        return [entry.id for entry in others]
    if not sale.list_version:
        return []  # no one can have been taken off a list that has not been uploaded yet
    digests = {entry.id: digest_of(entry.user) for entry in others}
    missing = await not_listed(connection, sale_id, set(digests.values()))
    return [entry for entry, digest in digests.items() if digest in missing]
