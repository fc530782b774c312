"""The tea shop follows events, with all of seckill in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import create_async_engine
from teashop import feed, tables
from teashop.shelf import free
from teashop.shop import Settings
from teashop.shop import Shop as TeaShop
from teashop.staff import announce_all

from seckill.client import Claimed, Event
from seckill.testing import MemoryEngine, memory_engine
from tests.examples.shops import STOCK

UNITS = 10
ANN, BOB = "2", "3"


class Shop:
    def __init__(self, engine: MemoryEngine, shop: TeaShop) -> None:
        self.engine, self.shop = engine, shop

    async def announce(self) -> str:
        now = self.engine.now()
        sale = {"id": "may", "product_id": "teapot", "units": UNITS, "set_aside": UNITS, "price_cents": 990}
        async with self.shop.database.begin() as tx:
            window = {"begins_at": now, "ends_at": now + timedelta(days=1)}
            await tx.execute(tables.flash_sales.insert().values(sale | window))
        await announce_all(self.shop)
        await announce_all(self.shop)  # after a restart: it is announced already
        [announced] = (await self.engine.operator.sales()).sales
        assert announced.items, "it sells colours"
        self._colour = announced.items[0].item_id
        return announced.id

    async def claim(self, buyer: str, sale_id: str) -> Claimed:
        claimed: Claimed = await self.engine.buyer(buyer).claim(sale_id, item_id=self._colour)
        return claimed

    async def look(self) -> tuple[int, int, int]:
        """Reads on; what is in stock, set aside, and free."""
        await feed.read_on(self.shop, wait_s=0)
        return await self.counted()

    async def counted(self) -> tuple[int, int, int]:
        async with self.shop.database.connect() as connection:
            teapot = tables.products.c.id == "teapot"
            stock, left = (await connection.execute(select(tables.products.c.stock, free).where(teapot))).one()
            return stock, await connection.scalar(select(tables.flash_sales.c.set_aside)) or 0, left

    async def cursor(self) -> str | None:
        async with self.shop.database.connect() as connection:
            return await tables.noted(connection, feed.CURSOR)


@asynccontextmanager
async def tea_shop(folder: Path) -> AsyncIterator[Shop]:
    database = create_async_engine(f"sqlite+aiosqlite:///{folder / 'shop.db'}")
    await tables.prepare(database)
    settings = Settings("http://shop.example", "", "", "", "", "", "")
    try:
        async with memory_engine() as engine:
            yield Shop(engine, TeaShop(settings, database, engine.operator))
    finally:
        await database.dispose()


async def test_units_come_back_as_they_do_in_seckill(tmp_path: Path) -> None:
    async with tea_shop(tmp_path) as shop:
        engine, operator = shop.engine, shop.engine.operator
        sale_id = await shop.announce()
        ann = engine.buyer(ANN)
        first = await shop.claim(ANN, sale_id)
        await shop.claim(BOB, sale_id)
        await engine.settle()
        assert await shop.look() == (STOCK - 2, UNITS - 2, STOCK - UNITS)
        await ann.pay(first.order_id)
        await engine.pass_time(timedelta(minutes=11))
        assert await shop.look() == (STOCK - 1, UNITS - 1, STOCK - UNITS), "bob has not paid"
        # A part of the money, and the unit; later the rest of the money.
        await operator.refund_order(first.order_id, reason="scratched", return_unit=True, amount_cents=300)
        assert await shop.look() == (STOCK, UNITS, STOCK - UNITS)
        await operator.refund_order(first.order_id, reason="lost", return_unit=False)
        assert await shop.look() == (STOCK, UNITS, STOCK - UNITS), "it came back once"
        # A day after the end, when nothing more can happen, what is left is free.
        over = Event(cursor=0, id="", type="round.retired", at=engine.now(), data={"sale_id": sale_id})
        async with shop.shop.database.begin() as tx:
            await feed.apply(tx, over)  # made up: in memory, rounds do not retire
        assert await shop.counted() == (STOCK, UNITS, STOCK)


async def test_what_is_done_and_the_cursor_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with tea_shop(tmp_path) as shop:
        sale_id = await shop.announce()
        await shop.look()
        before = await shop.cursor()
        for buyer in (ANN, BOB):
            await shop.claim(buyer, sale_id)
        await shop.engine.settle()
        applied = 0

        async def apply(*arguments: Any) -> None:
            nonlocal applied
            if applied:
                raise RuntimeError("the power is gone")
            applied += 1
            await real(*arguments)

        with monkeypatch.context() as patch:
            real = feed.apply
            patch.setattr(feed, "apply", apply)
            with pytest.raises(RuntimeError, match="the power"):
                await shop.look()
        assert applied == 1
        assert (await shop.counted(), await shop.cursor()) == ((STOCK, UNITS, STOCK - UNITS), before)
        assert await shop.look() == (STOCK - 2, UNITS - 2, STOCK - UNITS)


async def test_who_was_away_for_too_long_begins_anew(tmp_path: Path) -> None:
    async with tea_shop(tmp_path) as shop:
        sale_id = await shop.announce()
        paid = await shop.claim(ANN, sale_id)
        await shop.claim(BOB, sale_id)
        await shop.engine.settle()
        await shop.engine.buyer(ANN).pay(paid.order_id)
        async with shop.shop.database.begin() as tx:
            await tables.note(tx, feed.CURSOR, "1000000")  # not given out: answered as one that is no longer kept
        assert await shop.look() == (STOCK - 2, UNITS - 2, STOCK - UNITS)
        # Events that it has not dealt with one by one come again, and change nothing in the end.
        assert await shop.look() == (STOCK - 2, UNITS - 2, STOCK - UNITS)
        await shop.engine.pass_time(timedelta(minutes=11))
        assert await shop.look() == (STOCK - 1, UNITS - 1, STOCK - UNITS)
