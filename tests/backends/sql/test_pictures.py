"""Pictures in every database, as they were given to it."""

import os

from sqlalchemy import update

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import pictures
from seckill.domain.picture import Picture
from tests.backends.sql.looking import write
from tests.backends.sql.making import draft


def picture(digit: str, size: int = 10) -> Picture:
    return Picture(digest=digit * 64, content=os.urandom(size), width=4, height=3)


async def test_pictures_are_kept_and_forgotten(ledger: SqlLedger) -> None:
    large, small = picture("a", 2_000_000), picture("b")
    for each in (large, small, large):
        await ledger.pictures.keep_picture(each)
    assert await ledger.pictures.picture("a" * 64) == large
    assert await ledger.pictures.picture("c" * 64) is None
    assert await ledger.pictures.use_pictures(["a" * 64, "c" * 64]) == {"a" * 64}
    await ledger.create_sale(draft(), lane=2)
    assert await ledger.pictures.forget_pictures(1000_000, 10) == 0
    await write(ledger, update(pictures).values(used_ms=1))
    assert await ledger.pictures.use_pictures(["b" * 64]) == {"b" * 64}
    assert await ledger.pictures.forget_pictures(1000_000, 10) == 1
    assert await ledger.pictures.picture("a" * 64) is None
    assert await ledger.pictures.picture("b" * 64) == small
