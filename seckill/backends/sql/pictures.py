"""Uploaded pictures. They are kept in the ledger, so that every node and every backup has them."""

import base64
from collections.abc import Sequence

import msgspec
from sqlalchemy import BigInteger, Integer, String, Text, bindparam, delete, literal, select, update

from seckill.backends.sql.database import Database
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.tables import items, pictures, sales
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.picture import Picture, digest_in


class SqlPictures:
    """Implements `seckill.ports.pictures.PictureLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        new = select(
            bindparam("of_content", type_=String).label("digest"),
            bindparam("text", type_=Text).label("content"),
            bindparam("wide", type_=Integer).label("width"),
            bindparam("high", type_=Integer).label("height"),
            database.now_ms.label("created_ms"),
            database.now_ms.label("used_ms"),
        ).where(literal(True))  # without a WHERE, SQLite takes the ON of ON CONFLICT for a join's
        self._keep = database.insert_missing(pictures, ["digest"], new, returning=["digest"])

    @to_the_end
    async def keep_picture(self, picture: Picture) -> None:
        facts = {
            "of_content": picture.digest,
            "text": base64.b64encode(picture.content).decode(),
            "wide": picture.width,
            "high": picture.height,
        }
        async with writing(self._database) as connection:
            if await self._keep.run(connection, facts):
                size = {"width": picture.width, "height": picture.height}
                await note(connection, self._database, "image.uploaded", picture.address, after=size)
            else:
                this = pictures.c.digest == picture.digest
                await connection.execute(update(pictures).where(this).values(used_ms=self._database.now_ms))

    @to_the_end
    async def picture(self, digest: str) -> Picture | None:
        async with reading(self._database) as connection:
            found = await connection.execute(select(pictures).where(pictures.c.digest == digest))
            row = found.one_or_none()
        if row is None:
            return None
        return Picture(digest=row.digest, content=base64.b64decode(row.content), width=row.width, height=row.height)

    @to_the_end
    async def use_pictures(self, digests: Sequence[str]) -> set[str]:
        these = pictures.c.digest.in_(digests)
        async with writing(self._database) as connection:
            await connection.execute(update(pictures).where(these).values(used_ms=self._database.now_ms))
            return set(await connection.scalars(select(pictures.c.digest).where(these)))

    @to_the_end
    async def forget_pictures(self, unused_ms: int, count: int) -> int:
        old = pictures.c.used_ms < self._database.now_ms - literal(unused_ms, BigInteger)
        # Looks without the writers' lock, since there is usually nothing to do.
        async with reading(self._database) as connection:
            found = set(await connection.scalars(select(pictures.c.digest).where(old).limit(count)))
            if not found:
                return 0
            shown = await connection.scalars(select(sales.c.images).where(sales.c.images.is_not(None)))
            of_sales = {digest_in(address) for text in shown for address in msgspec.json.decode(text, type=list[str])}
            shown = await connection.scalars(select(items.c.image).where(items.c.image.is_not(None)))
            of_sales |= {digest_in(address) for address in shown}
        async with writing(self._database) as connection:
            # Pictures that a sale shows need not be looked at again for as long.
            kept = pictures.c.digest.in_(found & of_sales)
            await connection.execute(update(pictures).where(kept).values(used_ms=self._database.now_ms))
            # A picture that was given to a sale meanwhile is no longer old.
            gone = await connection.execute(delete(pictures).where(pictures.c.digest.in_(found - of_sales), old))
            return gone.rowcount
