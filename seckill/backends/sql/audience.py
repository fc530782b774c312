"""The lists of buyers: one transaction replaces a whole list."""

from array import array
from binascii import a2b_base64, b2a_base64
from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import and_, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.sales import lock_catalogue, select_sale, set_changed, to_sale
from seckill.backends.sql.tables import audience_parts, sales
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.audience_list import DIGEST_TYPE, Digests, has
from seckill.domain.sale import Sale

# How many digests are in a row, which has 43 kB then.
PART_DIGESTS = 4096
# How many rows go into one statement, which has a third of a megabyte then.
PARTS_AT_ONCE = 8

_parts = audience_parts.c


class SqlAudience:
    """Implements `seckill.ports.audience.AudienceLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database

    @to_the_end
    async def replace_list(self, sale_id: int, digests: Sequence[int]) -> Sale | None:
        async with writing(self._database) as connection:
            version = await lock_catalogue(connection) + 1
            if await _version(connection, sale_id) is None:
                return None
            listed = await connection.scalar(select(sales.c.list_buyers).where(sales.c.id == sale_id))
            await connection.execute(delete(audience_parts).where(_parts.sale_id == sale_id))
            parts = [digests[start : start + PART_DIGESTS] for start in range(0, len(digests), PART_DIGESTS)]
            rows: list[dict[str, Any]] = [
                {"sale_id": sale_id, "first": part[0], "digests": _written(part)} for part in parts
            ]
            for start in range(0, len(rows), PARTS_AT_ONCE):
                await connection.execute(insert(audience_parts), rows[start : start + PARTS_AT_ONCE])
            await set_changed(connection, sale_id, version, list_version=version, list_buyers=len(digests))
            # The record only gets the lengths: a list may name every customer of the shop.
            facts = {"buyers": listed}, {"buyers": len(digests), "version": version}
            await note(
                connection,
                self._database,
                "audience.replaced",
                sale_id,
                sale_id=sale_id,
                before=facts[0],
                after=facts[1],
            )
            return await to_sale(connection, (await connection.execute(select_sale(sale_id))).one())

    @to_the_end
    async def read_list(self, sale_id: int) -> tuple[int, Digests]:
        while True:
            async with reading(self._database) as connection:
                version = await _version(connection, sale_id)
                digests: Digests = array(DIGEST_TYPE)
                wanted = select(_parts.digests).where(_parts.sale_id == sale_id).order_by(_parts.first)
                for part in await connection.scalars(wanted):
                    digests.frombytes(a2b_base64(part))
                # A list that was replaced meanwhile may be half of one and half of the other.
                if version == await _version(connection, sale_id):
                    return version or 0, digests

    @to_the_end
    async def is_listed(self, sale_id: int, digest: int) -> bool:
        """Asks the one row in which the digest would be."""
        wanted = select(_parts.digests).where(_parts.sale_id == sale_id, _parts.first <= digest)
        async with reading(self._database) as connection:
            found = await connection.scalars(wanted.order_by(_parts.first.desc()).limit(1))
            digests: Digests = array(DIGEST_TYPE)
            digests.frombytes(a2b_base64(found.one_or_none() or ""))
        return has(digests, digest)


def _written(part: Sequence[int]) -> str:
    return b2a_base64(array(DIGEST_TYPE, part).tobytes(), newline=False).decode()


async def _version(connection: AsyncConnection, sale_id: int) -> int | None:
    """Returns the version of the sale's list, or None if there is no such sale."""
    found = await connection.scalars(select(sales.c.list_version).where(sales.c.id == sale_id))
    return found.one_or_none()


async def not_listed(connection: AsyncConnection, sale_id: int, digests: Collection[int]) -> set[int]:
    """Returns the digests that are not on the list. Only reads the rows in which they would be."""
    firsts = select(_parts.first).where(_parts.sale_id == sale_id).order_by(_parts.first)
    while True:
        version = await _version(connection, sale_id)
        places = list(await connection.scalars(firsts))
        wanted = sorted({places[place - 1] for digest in digests if (place := bisect_right(places, digest))})
        missing = set(digests)
        for start in range(0, len(wanted), PARTS_AT_ONCE):
            these = _parts.first.in_(wanted[start : start + PARTS_AT_ONCE])
            for part in await connection.scalars(select(_parts.digests).where(_parts.sale_id == sale_id, these)):
                found: Digests = array(DIGEST_TYPE)
                found.frombytes(a2b_base64(part))
                missing.difference_update(found)
        # A list that was replaced meanwhile may be half of one and half of the other.
        if version == await _version(connection, sale_id):
            return missing


async def listed(connection: AsyncConnection, digest: int) -> list[int]:
    """Returns the sales whose list has the digest."""
    return [row.sale_id for row, _ in await _parts_with(connection, digest)]


async def strike(connection: AsyncConnection, digest: int) -> list[int]:
    """Takes the digest off every list. Nodes then read these lists again. The caller has locked the catalogue."""
    struck = []
    for row, digests in await _parts_with(connection, digest):
        version = await lock_catalogue(connection) + 1
        digests.remove(digest)
        this = and_(_parts.sale_id == row.sale_id, _parts.first == row.first)
        await connection.execute(delete(audience_parts).where(this))
        if digests:
            values = {"sale_id": row.sale_id, "first": digests[0], "digests": _written(digests)}
            await connection.execute(insert(audience_parts).values(**values))
        fewer = sales.c.list_buyers - 1
        await set_changed(connection, row.sale_id, version, list_version=version, list_buyers=fewer)
        struck.append(row.sale_id)
    return struck


async def _parts_with(connection: AsyncConnection, digest: int) -> list[tuple[AnyRow, Digests]]:
    """Returns, for each list, the row that has the digest, if there is one."""
    last = select(_parts.sale_id, func.max(_parts.first).label("first")).where(_parts.first <= digest)
    places = last.group_by(_parts.sale_id).subquery()
    wanted = select(audience_parts).join(
        places, and_(places.c.sale_id == _parts.sale_id, places.c.first == _parts.first)
    )
    found = []
    for row in (await connection.execute(wanted.order_by(_parts.sale_id))).all():
        digests: Digests = array(DIGEST_TYPE)
        digests.frombytes(a2b_base64(row.digests))
        if has(digests, digest):
            found.append((row, digests))
    return found
