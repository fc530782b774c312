"""A crowd that asks the same question shares one look, and no caller gets an answer from before they asked."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from seckill.domain.order import Order
from seckill.domain.order_number import OrderNumber
from seckill.domain.public_id import PublicIds
from seckill.domain.sale import Sale
from seckill.engine.batched_reads import BatchedReads
from seckill.engine.orders.buyer_orders import BuyerOrders
from seckill.engine.pictures import PictureDesk
from seckill.engine.readiness import Readiness
from seckill.engine.sale_cache import SaleCache
from seckill.engine.shared_look import SharedAnswers, SharedLook
from seckill.errors import LedgerUnavailable
from tests.engine.orders.test_buyer_orders import make_order
from tests.engine.test_sale_cache import versions

CROWD = 500
IDS = PublicIds(b"k" * 32, "sale")


class Slow:
    """A ledger that reads what there is, and answers when it is told to."""

    def __init__(self) -> None:
        self.there: list[Sale] = []
        self.looks = 0
        self.answers = asyncio.Event()

    async def sales(self, changed_after: int = 0, rounds_max: int = 1) -> list[Sale]:
        self.looks += 1
        seen = list(self.there)
        await self.answers.wait()
        return seen

    async def orders(self, numbers: Sequence[OrderNumber]) -> list[Order]:
        self.looks += 1
        await self.answers.wait()
        return [make_order(number, f"buyer-{int(number)}") for number in numbers]

    async def picture(self, digest: str) -> None:
        self.looks += 1
        await self.answers.wait()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_crowd_that_knows_of_a_sale_before_the_node_does_is_one_query() -> None:
    ledger = Slow()
    ledger.there = list(versions((0, 10)))
    sale_cache = SaleCache(cast(Any, ledger), cast(Any, None), IDS)
    crowd = [asyncio.create_task(sale_cache.find_any(IDS.encode(1))) for _ in range(CROWD)]
    await turns()
    ledger.answers.set()
    assert all(sale is not None and sale.id == 1 for sale in await asyncio.gather(*crowd))
    assert ledger.looks == 1


async def test_whoever_comes_after_a_look_began_is_told_what_is_true_now() -> None:
    """A sale is announced while the ledger is being read: the reading may have missed it."""
    ledger = Slow()
    sale_cache = SaleCache(cast(Any, ledger), cast(Any, None), IDS)
    early = asyncio.create_task(sale_cache.find_any(IDS.encode(1)))
    await turns()
    ledger.there = list(versions((0, 10)))
    late = [asyncio.create_task(sale_cache.find_any(IDS.encode(1))) for _ in range(CROWD)]
    await turns()
    ledger.answers.set()
    assert await early is None
    assert all(await asyncio.gather(*late))
    assert ledger.looks == 2


async def test_an_outage_is_told_to_all_who_wait_and_to_nobody_after_them() -> None:
    outcomes = [OSError("gone"), None]
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        await turns()
        if (error := outcomes[looks - 1]) is not None:
            raise error

    shared = SharedLook(look)
    told = await asyncio.gather(*(shared() for _ in range(CROWD)), return_exceptions=True)
    assert [str(each) for each in told] == ["gone"] * CROWD
    await shared()
    assert looks == 2


async def test_who_gives_up_takes_the_look_from_nobody() -> None:
    answers = asyncio.Event()
    shared = SharedLook(answers.wait)
    first, second = asyncio.create_task(shared()), asyncio.create_task(shared())
    await turns()
    first.cancel()
    await turns()
    answers.set()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_picture_that_everybody_looks_at_is_read_once() -> None:
    ledger = Slow()
    pictures = PictureDesk(cast(Any, ledger), cast(Any, None))
    crowd = [asyncio.create_task(pictures.find(name)) for name in ["a", "b"] * CROWD]
    await turns()
    ledger.answers.set()
    await asyncio.gather(*crowd)
    assert ledger.looks == 2, "one for each of two pictures"


async def test_an_answer_is_shared_while_it_is_asked_for_and_not_kept() -> None:
    shared, looks = SharedAnswers[int](), 0

    async def look() -> int:
        nonlocal looks
        looks += 1
        await turns()
        return looks

    assert await asyncio.gather(*(shared.of("one", look) for _ in range(CROWD))) == [1] * CROWD
    assert await shared.of("one", look) == 2


async def test_who_asks_whether_it_is_ready_shares_one_look() -> None:
    """Anyone may ask, and each request was three calls to the servers that a sale needs."""
    asked: list[str] = []

    async def ping() -> None:
        asked.append("ping")
        await turns()

    async def watch_servers() -> dict[str, str]:
        asked.append("servers")
        return {}

    stores = SimpleNamespace(ping=ping, watch_servers=watch_servers, full_servers=lambda: ())
    readiness = Readiness(cast(Any, stores), cast(Any, stores))
    assert {parts.ready for parts in await asyncio.gather(*(readiness.look() for _ in range(CROWD)))} == {True}
    assert sorted(asked) == ["ping", "ping", "servers"]
    await readiness.look()
    assert len(asked) == 6, "what was seen is not kept"


async def test_all_who_look_at_their_orders_at_once_are_a_query_for_hundreds() -> None:
    """When a sale begins, and when a node is replaced and its streams are opened anew."""
    ledger = Slow()
    orders = BuyerOrders(cast(Any, ledger), cast(Any, None), cast(Any, None))
    crowd = [asyncio.create_task(orders.find(f"buyer-{n}", OrderNumber.from_int(n))) for n in range(1, CROWD + 1)]
    theirs = asyncio.create_task(orders.find("eve", OrderNumber.from_int(1)))
    await turns()
    ledger.answers.set()
    found = await asyncio.gather(*crowd)
    assert [int(order.number) for order in found if order is not None] == list(range(1, CROWD + 1))
    assert await theirs is None
    assert ledger.looks <= 3, "each of them asked"


async def test_an_outage_is_told_to_all_who_look_together() -> None:
    async def away(_: Sequence[int]) -> dict[int, str]:
        raise LedgerUnavailable("gone")

    reads = BatchedReads(away)
    told = await asyncio.gather(*(reads.of(number) for number in range(CROWD)), return_exceptions=True)
    assert {str(each) for each in told} == {"gone"}
