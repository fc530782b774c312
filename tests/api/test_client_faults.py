"""Our client and a real node, with a connection in between that breaks: what was asked for is done once, and known."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from seckill import OrderState
from seckill.client import AsyncClient, Client, NoAnswer, repeats
from seckill.client import asynchronous as module
from seckill.lab.servers.proxy import Proxy, Trouble
from tests.api.conftest import ADMIN_KEY, Served, token
from tests.patience import PATIENCE_S

# After this time a silent connection counts as broken. Where connections are cut, no client has to wait for it.
SILENT_S = 3.0


class Shop:
    """Either client, asked in one way."""

    def __init__(self, client: AsyncClient | Client) -> None:
        self.client = client

    def signed_in(self, user: str) -> "Shop":
        return Shop(self.client.signed_in(token(user)))

    async def do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        method = getattr(self.client, name)
        if isinstance(self.client, AsyncClient):
            return await method(*args, **kwargs)
        return await asyncio.to_thread(method, *args, **kwargs)

    async def first(self, many: int, name: str, **kwargs: Any) -> list[Any]:
        """Returns the first `many` things that a method iterates over."""
        method = getattr(self.client, name)
        if isinstance(self.client, Client):
            return await asyncio.to_thread(lambda: list(itertools.islice(method(**kwargs), many)))
        found: list[Any] = []
        async for each in method(**kwargs):
            found.append(each)
            if len(found) == many:
                break
        return found


@pytest.fixture
async def line(served: Served) -> AsyncIterator[Proxy]:
    async with Proxy(("127.0.0.1", int(served.url.rpartition(":")[2]))) as proxy:
        yield proxy


@pytest.fixture
def within_s() -> float:
    return PATIENCE_S


@pytest.fixture(params=[AsyncClient, Client], ids=["asyncio", "blocking"])
async def shop(
    request: pytest.FixtureRequest, line: Proxy, within_s: float, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Shop]:
    monkeypatch.setattr(repeats, "PAUSE_S_MIN", 0.01)
    client = request.param(f"http://127.0.0.1:{line.port}", ADMIN_KEY, within_s=within_s, repeat_for_s=PATIENCE_S)
    shop = Shop(client)
    yield shop
    await shop.do("close")


async def orders_in(served: Served) -> list[str]:
    """Asked past the broken line."""
    await served.node.work()
    async with AsyncClient(served.url, ADMIN_KEY) as operator:
        return [order.order_id async for order in operator.all_orders()]


@pytest.mark.parametrize(("silent", "within_s"), [(False, PATIENCE_S), (True, SILENT_S)], ids=["cut", "silent"])
async def test_a_claim_whose_answer_is_lost(served: Served, line: Proxy, shop: Shop, silent: bool) -> None:
    sale = await served.node.create(units=3, limit_per_buyer=3)
    line.lose_answer(b"/orders HTTP/1.1", silent=silent)
    claimed = await shop.signed_in("ann").do("claim", sale["id"])
    assert line.hits == 1, "the node had done it"
    assert await orders_in(served) == [claimed.order_id]


async def test_a_claim_ends_with_its_deadline_and_can_be_gone_on_with(served: Served, line: Proxy, shop: Shop) -> None:
    sale = await served.node.create(units=3, limit_per_buyer=3)
    line.set_trouble(Trouble.REPLY_LOST)
    ann = shop.signed_in("ann")
    began_s = time.monotonic()
    with pytest.raises(NoAnswer) as unknown:
        await ann.do("claim", sale["id"], deadline_s=1.0)
    assert time.monotonic() - began_s < PATIENCE_S, "the client itself would have gone on that long"
    [made] = await orders_in(served)
    line.set_trouble(None)
    assert (await ann.do("claim", sale["id"], key=unknown.value.key, deadline_s=PATIENCE_S)).order_id == made
    assert await orders_in(served) == [made]


async def test_a_deadline_also_ends_a_try_that_nobody_answers(line: Proxy, served: Served) -> None:
    sale = await served.node.create()
    line.set_trouble(Trouble.HOLE)
    async with AsyncClient(f"http://127.0.0.1:{line.port}", token("ann"), within_s=10 * PATIENCE_S) as ann:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(NoAnswer, match="nothing came within"):
                await ann.claim(sale["id"], deadline_s=0.2)
        line.set_trouble(None)
    assert await orders_in(served) == []


async def test_a_sale_is_announced_once(served: Served, line: Proxy, shop: Shop) -> None:
    line.lose_answer(b"POST /v1/sales HTTP/1.1")
    now = datetime.now(UTC)
    facts: dict[str, Any] = {"units": 3, "price_cents": 9900, "begins_at": now, "ends_at": now + timedelta(hours=1)}
    sale = await shop.do("create_sale", "Phone", key="of-the-shop", **facts)
    assert line.hits == 1
    assert [each.id for each in (await shop.do("sales")).sales] == [sale.id]


async def test_an_operator_cancels_and_refunds_once(served: Served, line: Proxy, shop: Shop) -> None:
    sale = await served.node.create(units=3, limit_per_buyer=3)
    unpaid, paid = [(await shop.signed_in("ann").do("claim", sale["id"])).order_id for _ in range(2)]
    await served.node.work()
    await shop.signed_in("ann").do("pay", paid)
    line.lose_answer(f"/{unpaid}/cancel HTTP".encode())
    assert (await shop.do("cancel_order", unpaid, reason="wrong address")).state is OrderState.CANCELLED
    line.lose_answer(f"/{paid}/refund HTTP".encode())
    refunded = await shop.do("refund_order", paid, reason="broken", return_unit=False, amount_cents=4000)
    assert (line.hits, refunded.refunded_cents) == (2, 4000), "not 8000"


async def test_orders_are_all_there_though_the_line_breaks(
    served: Served, line: Proxy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXPORTED_AT_ONCE", 2)
    sale = await served.node.create(units=9)
    for number in range(5):
        await served.node.buy(sale, f"buyer{number}")
    wanted = await orders_in(served)
    line.lose_answer(b"&after=")  # of the second portion
    found = await shop.first(99, "all_orders", sale_id=sale["id"])
    assert (line.hits, [order.order_id for order in found]) == (1, wanted)
    assert len(wanted) == 5
    line.lose_answer(b"?after=")
    rows = b"".join(await shop.first(99, "export_orders", kind="csv")).splitlines()
    assert (line.hits, len(rows)) == (2, 6)


async def test_events_go_on_where_the_line_broke(served: Served, line: Proxy, shop: Shop) -> None:
    sale = await served.node.create(units=9)
    for user in ("ann", "bob"):
        await served.node.buy(sale, user)
        await served.node.work()
    before = await shop.first(2, "follow_events", types=["order.created"])
    line.set_trouble(Trouble.REFUSED)
    following = asyncio.create_task(shop.first(2, "follow_events", after=before[-1].cursor, types=["order.*"]))
    for user in ("eve", "fay"):
        await served.node.buy(sale, user)
        await served.node.work()
    async with asyncio.timeout(PATIENCE_S):
        while line.touched < 2:
            await asyncio.sleep(0.01)
        line.set_trouble(None)
        line.lose_answer(b"GET /v1/admin/events")
        after = await following
    assert line.hits == 1
    assert [event.data["buyer"] for event in before + after] == ["ann", "bob", "eve", "fay"]
    assert sorted({event.cursor for event in before + after}) == [event.cursor for event in before + after]
