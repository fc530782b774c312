"""An order that was accepted and is set aside: its buyer finds it at every moment, whichever way they look."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.domain.dead_letter import LetterState
from seckill.domain.order_number import OrderNumber
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.orders.buyer_orders import BuyerOrders
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.ports.transport import Delivery
from tests import live
from tests.api.conftest import Node, Served, buyer, token
from tests.api.test_rebuild import flush

DELAYS_S = (3600.0, 3600.0, 3600.0)


async def refuse_its_entry(node: Node, redis_url: str) -> None:
    """The ledger does not take what the queue has: another has the slot."""
    (sale,) = await node.engine.ledger.sales()
    client: Any = connect(redis_url)
    stream = keys.orders(sale.round.lane)
    ((entry_id, fields),) = await client.xrange(stream)
    taken = fields[b"order"].replace(b'"counter":1,', b'"counter":999,').decode()
    await client.xdel(stream, entry_id)
    await client.xadd(stream, {"order": taken})
    await node.work()
    await client.xadd(stream, fields)
    node.worker._retry_delay_s = 3600.0
    await node.work()
    await client.aclose()


async def give_up(engine: Engine) -> None:
    """Gives an entry up as after the last try."""
    for letter in await engine.ledger.letters(LetterState.RETRYING, 10):
        await DeadLetterDesk(engine.ledger, Alarm(""), ())._retry(letter)


async def test_all_ways_lead_to_it(served: Served, redis_url: str) -> None:
    node = served.node
    order_id = await served.order(limit_per_buyer=1, units=5)
    await refuse_its_entry(node, redis_url)
    await forget_buyers(node, redis_url)
    url = f"/v1/orders/{order_id}"
    shown = await node.http.get(url, headers=buyer("ann"))
    assert (shown.status_code, shown.json()["state"]) == (200, "queued")
    assert (await node.http.get(url, headers=buyer("eve"))).status_code == 404
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    assert [order["state"] for order in listed if order["order_id"] == order_id] == ["queued"]
    async with (
        live.stream(served.url, order_id, token("ann")) as events,
        live.socket(served.url, token("ann")) as socket,
        live.stream(served.url, order_id, token("eve")) as theirs,
    ):
        assert theirs.response.status_code == 404
        first = await events.next()
        assert first is not None
        assert first.id == "queued"
        await socket.say({"watch": order_id})
        while (heard := await socket.hear()).get("state") is None:
            pass
        assert heard["state"] == "queued"
        await give_up(served.node.engine)
        assert await events.states() == ["failed"]
        assert (await socket.hear())["state"] == "failed"
    waited = await node.http.get(f"{url}?wait=20&seen=queued", headers=buyer("ann"))
    assert waited.json()["state"] == "failed"
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    assert [order["state"] for order in listed if order["order_id"] == order_id] == ["failed"]


async def test_long_polls_wait_for_what_is_set_aside(served: Served, redis_url: str) -> None:
    order_id = await served.order(limit_per_buyer=1, units=5)
    await refuse_its_entry(served.node, redis_url)
    await flush(redis_url)
    (number,) = [letter.number for letter in await served.node.engine.ledger.letters(LetterState.RETRYING, 10)]
    assert number is not None
    orders = served.node.api.context.orders
    async with orders.watch("ann", number) as watch:
        assert watch is not None
        assert watch.order.state == "queued"
        await give_up(served.node.engine)
        assert await watch.change()
        assert watch.order.state == "failed"
    shown = await served.node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))
    assert shown.json()["state"] == "failed"


async def _found(orders: BuyerOrders, number: OrderNumber) -> bool:
    return await orders.find("ann", number) is not None


async def _listed(orders: BuyerOrders, number: OrderNumber) -> bool:
    return number in [order.number for order in await orders.newest("ann", None, 10)]


# With how many calls each makes, between which the order may move on.
READERS = {"find": (4, _found), "newest": (4, _listed)}


@pytest.mark.parametrize("reader", ["find", "newest"])
@pytest.mark.parametrize("written", ["aside", "at once"])
async def test_an_order_that_moves_while_it_is_looked_for_is_found(
    node: Node, engine: Engine, redis_url: str, reader: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves from the gate to the letters, from there to its row, or straight to its row: each move at each moment
    between the reader's questions."""
    calls, look = READERS[reader]
    tried = 0
    for leaves_gate in range(calls + 1):
        for becomes_row in range(leaves_gate, calls + 1):
            sale = await node.create(units=5)
            await node.buy(sale, "ann")
            (delivery,) = await engine.transport.read(10, 5)
            assert delivery.admission is not None
            made = 0

            async def move(delivery: Delivery = delivery, leaves: int = leaves_gate, row: int = becomes_row) -> None:
                nonlocal made
                assert delivery.admission is not None
                if made == leaves:
                    if written == "aside":
                        await engine.ledger.set_aside(delivery, "refused", 3600)
                    else:
                        await engine.ledger.record([delivery.admission])
                    await forget_buyers(node, redis_url)
                if made == row and written == "aside":
                    await give_up(engine)
                made += 1

            with monkeypatch.context() as patch:
                before_each_call(patch, engine, move)
                assert await look(node.api.context.orders, delivery.admission.number), (leaves_gate, becomes_row)
            await engine.transport.settle([delivery])
            tried += 1
    assert tried == (calls + 1) * (calls + 2) // 2


async def forget_buyers(node: Node, redis_url: str) -> None:
    """Forgets also that there were any: the gate would not say that it has none if it had lost them."""
    client: Any = connect(redis_url)
    for sale in await node.engine.ledger.sales():
        await client.unlink(keys.buyers(sale.round.ref))
        await client.hset(keys.round_(sale.round.ref), "buyers", 0)
    await client.aclose()


def before_each_call(patch: pytest.MonkeyPatch, engine: Engine, move: Callable[[], Awaitable[None]]) -> None:
    """Runs `move` before each call of the reader's; the calls that the move itself makes are let pass."""
    moving = False

    def after_move(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def called(*args: Any) -> Any:
            nonlocal moving
            if not moving:
                moving = True
                await move()
                moving = False
            return await call(*args)

        return called

    for place, names in (
        (engine.ledger, ("orders", "orders_of", "letters_about", "letters_of")),
        (engine.gate, ("holdings",)),
    ):
        for name in names:
            patch.setattr(place, name, after_move(getattr(place, name)))


async def test_an_order_of_a_void_epoch_is_failed_at_once(node: Node, engine: Engine, redis_url: str) -> None:
    """No delay changes that the gate was rebuilt without it, so it fails without one."""
    sale = await node.create(units=2)
    order_id = (await node.buy(sale, "ann")).json()["order_id"]
    in_hand = await engine.transport.read(10, 5)
    (found,) = await engine.ledger.sales()
    await engine.ledger.next_epoch(found.round)
    node.worker._retry_delay_s = 3600.0
    await node.worker.record(in_hand)
    assert await DeadLetterDesk(engine.ledger, Alarm(""), DELAYS_S).retry_due() == 1
    shown = await node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))
    assert shown.json()["state"] == "failed"
