"""The whole engine with RabbitMQ: relay, worker and keeper as their roles run them, in this process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import aiormq
import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine import keeper as keeper_module
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.keeper import run_schedule
from seckill.engine.orders.broker_relay import Relay, run_relay
from seckill.engine.orders.worker import run_worker
from seckill.errors import TransportUnavailable
from seckill.loops import Stop
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, make_node, settings_of_a_node
from tests.fixtures.rabbitmq import RabbitServer
from tests.patience import PATIENCE_S

RETRY_DELAYS_S = (0.2, 0.3)
NEVER_S = 3600.0


@pytest.fixture
def settings(redis_url: str, rabbit: RabbitServer, sqlite_database: str) -> Settings:
    settings = settings_of_a_node(redis_url, sqlite_database)
    return replace(settings, broker_url=rabbit.url(), retry_delays_s=RETRY_DELAYS_S)


@asynccontextmanager
async def at_work(settings: Settings, engine: Engine, *, heed: bool = True) -> AsyncIterator[None]:
    """The loops of the roles. Without `heed`, the keeper does not listen to the broker's reminders."""
    assert engine.broker is not None
    stop = Stop()
    use = UseCases(engine, replace(settings, claim_idle_s=1))
    keeper = use.keeper if heed else replace(use.keeper, delays=None)
    async with asyncio.TaskGroup() as roles:
        roles.create_task(run_worker(use.worker(stop), stop))
        roles.create_task(run_relay(use.relay(engine.broker), stop))
        roles.create_task(run_schedule(keeper.schedule(stop), stop))
        try:
            yield
        finally:
            stop.set()


async def until_state(node: Node, order_id: str, user: str, state: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            shown = (await node.http.get(f"/v1/orders/{order_id}", headers=buyer(user))).json()
            if shown.get("state") == state:
                return
            await asyncio.sleep(0.05)


async def until_dead(node: Node) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while not (dead := (await node.http.get("/v1/admin/dead", headers=OPERATOR)).json()["dead"]):
            await asyncio.sleep(0.05)
    (letter,) = dead
    found: dict[str, Any] = letter
    return found


async def messages(settings: Settings, queue: str) -> list[Any]:
    connection = await aiormq.connect(settings.broker_url)
    channel = await connection.channel()
    found = []
    while (message := await channel.basic_get(queue, no_ack=True)).delivery.name == "Basic.GetOk":
        found.append(json.loads(message.body))
    await connection.close()
    return found


async def test_orders_reach_the_ledger(settings: Settings, node: Node, engine: Engine) -> None:
    sale = await node.create(units=50)
    orders = {f"u{i}": (await node.buy(sale, f"u{i}", metadata={"n": i})).json()["order_id"] for i in range(50)}
    async with at_work(settings, engine):
        for user, order_id in orders.items():
            await until_state(node, order_id, user, "unpaid")
            order = (await node.http.get(f"/v1/orders/{order_id}", headers=buyer(user))).json()
            assert order["metadata"] == {"n": int(user[1:])}
        (found,) = await engine.ledger.sales()
        assert await engine.transport.backlog([found.round.lane]) == 0
    tally = await engine.ledger.tally(found.round.id)
    assert tally is not None
    assert (tally.sold, tally.unpaid) == (50, 50)


async def test_items_travel_with_their_orders(settings: Settings, node: Node, engine: Engine) -> None:
    """There and back: an order is written for its item, and a cancelled one gives its unit back to it."""
    kinds = [{"title": "S", "units": 3}, {"title": "M", "units": 20}]
    sale = await node.create(units=None, items=kinds, limit_per_buyer=1)
    small, medium = (item["item_id"] for item in sale["items"])
    await node.refresh()
    wanted = {f"u{place}": small if place < 3 else medium for place in range(10)}
    orders = {user: (await node.buy(sale, user, item_id=item)).json()["order_id"] for user, item in wanted.items()}
    assert (await node.buy(sale, "late", item_id=small)).json()["code"] == "sold_out"

    async def places() -> list[tuple[int, int]]:
        """Returns how many units of each item are sold, and how many are left."""
        found = (await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
        return [(item["sold"], item["available"]) for item in found["items"]]

    async with at_work(settings, engine):
        for user, order_id in orders.items():
            await until_state(node, order_id, user, "unpaid")
            order = (await node.http.get(f"/v1/orders/{order_id}", headers=buyer(user))).json()
            assert order["item_id"] == wanted[user]
        assert await places() == [(3, 0), (7, 13)]
        cancelled = await node.http.post(f"/v1/orders/{orders['u0']}/cancel", headers=buyer("u0"))
        assert cancelled.status_code == 200
        async with asyncio.timeout(PATIENCE_S):
            while await places() != [(2, 1), (7, 13)]:
                await asyncio.sleep(0.05)
        async with asyncio.timeout(PATIENCE_S):  # this node hears of it a moment later
            while (answer := await node.buy(sale, "late", item_id=small)).status_code != 202:
                await node.refresh()
        await until_state(node, answer.json()["order_id"], "late", "unpaid")


async def test_a_broker_that_is_away_from_the_start_stops_nobody(settings: Settings) -> None:
    """Buyers are answered, and the orders wait in the streams. A worker that reads them there finds them all."""
    async with open_engine(replace(settings, broker_url="amqp://127.0.0.1:1/")) as engine:
        node = await make_node(settings, engine)
        sale = await node.create(units=3)
        await node.refresh()
        responses = [await node.buy(sale, f"u{i}") for i in range(4)]
        assert [response.status_code for response in responses] == [202, 202, 202, 409]
        with pytest.raises(TransportUnavailable, match="RabbitMQ cannot be reached"):
            await node.worker.read_and_record(wait_s=0)
        (found,) = await engine.ledger.sales()
        assert await engine.transport.backlog([found.round.lane]) == 3
        await node.http.aclose()
    async with open_engine(replace(settings, broker_url="")) as engine:
        node = await make_node(settings, engine)
        await node.work()
        tally = await engine.ledger.tally(found.round.id)
        assert tally is not None
        assert tally.sold == 3
        await node.http.aclose()


@pytest.mark.parametrize("heed", [True, False], ids=["woken", "swept"])
async def test_a_poison_entry_goes_through_the_retry_queues_to_the_final_one(
    settings: Settings, node: Node, engine: Engine, redis_url: str, monkeypatch: pytest.MonkeyPatch, heed: bool
) -> None:
    """The keeper is woken by the retry queues alone (the sweep would come in an hour), or by the sweep alone (M17)."""
    if heed:
        monkeypatch.setattr(keeper_module, "RETRY_EVERY_S", NEVER_S)
    swept = asyncio.Event()
    look = engine.ledger.letters_due

    async def letters_due(count: int) -> Any:
        swept.set()
        return await look(count)

    monkeypatch.setattr(engine.ledger, "letters_due", letters_due)
    sale = await node.create(units=10)
    good = (await node.buy(sale, "ann")).json()["order_id"]
    async with at_work(settings, engine, heed=heed):
        await swept.wait()  # so that the sweep's first time is over
        (found,) = await engine.ledger.sales()
        client: Any = connect(redis_url)
        await client.xadd(keys.orders(found.round.lane), {"order": "{garbage"})
        await client.aclose()
        await until_state(node, good, "ann", "unpaid")
        letter = await until_dead(node)
    assert len(letter["history"]) == 1 + len(RETRY_DELAYS_S)
    prefix = engine.transport._topology.prefix  # type: ignore[attr-defined]
    (final,) = await messages(settings, f"{prefix}.dead")
    assert final["payload"] == "{garbage"
    assert "cannot be read" in final["reason"]
    for delay_s in RETRY_DELAYS_S:
        assert await messages(settings, f"{prefix}.retry.{delay_s:g}s") == []


async def test_the_delay_queue_wakes_the_expiry_sweep(
    settings: Settings, node: Node, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The delay queue wakes the keeper: the sweep itself would come in an hour (M12)."""
    monkeypatch.setattr(keeper_module, "EXPIRE_EVERY_S", NEVER_S)
    swept = asyncio.Event()
    expire = engine.ledger.expire_due

    async def expire_due(count: int) -> Any:
        swept.set()
        return await expire(count)

    monkeypatch.setattr(engine.ledger, "expire_due", expire_due)
    sale = await node.create(units=1, pay_within_s=1)
    async with at_work(settings, engine):
        await swept.wait()
        order_id = (await node.buy(sale, "ann")).json()["order_id"]
        await until_state(node, order_id, "ann", "expired")
        async with asyncio.timeout(PATIENCE_S):
            while (await node.buy(sale, "bob")).status_code != 202:  # the unit is on sale again
                await node.refresh()
                await asyncio.sleep(0.05)


async def test_the_setting_may_change_with_orders_in_flight(settings: Settings, redis_url: str) -> None:
    """Broker → streams → broker, with workers that never settle before the last one: exactly one row for each."""
    orders: dict[str, str] = {}
    sale: dict[str, Any] = {}
    for step, url in enumerate([settings.broker_url, "", settings.broker_url]):
        async with open_engine(replace(settings, broker_url=url)) as engine:
            node = await make_node(settings, engine)
            sale = sale or await node.create(units=100)
            await node.refresh()
            for i in range(10):
                user = f"u{step}-{i}"
                orders[user] = (await node.buy(sale, user)).json()["order_id"]
            await engine.transport.prepare(range(settings.lanes))
            if engine.broker is not None:
                relay = Relay(
                    engine.broker.source,
                    engine.broker.courier,
                    engine.ledger,
                    Alarm(""),
                    lanes=range(settings.lanes),
                    claim_idle_s=0,
                )
                await relay.prepare()
                await relay.relay(wait_s=0)
            taken: set[str] = set()
            async with asyncio.timeout(PATIENCE_S):
                while not taken:
                    taken |= {delivery.entry_id for delivery in await engine.transport.read(500, 1)}
            with suppress(TimeoutError):
                async with asyncio.timeout(2):  # taken, and then this worker dies
                    while len(taken) < 10 * (step + 1):
                        taken |= {delivery.entry_id for delivery in await engine.transport.read(500, 1)}
            await node.http.aclose()
    async with open_engine(replace(settings, broker_url="")) as engine:
        node = await make_node(settings, engine)
        while await node.worker.read_and_record(wait_s=0) or await node.worker.take_over():
            pass
        for user, order_id in orders.items():
            await until_state(node, order_id, user, "unpaid")
        (found,) = await engine.ledger.sales()
        tally = await engine.ledger.tally(found.round.id)
        assert tally is not None
        assert (tally.sold, tally.recorded) == (30, 30)
        await node.http.aclose()
    async with open_engine(settings) as engine:  # what the broker still has is recognised
        node = await make_node(settings, engine)
        seen = 0
        while found_now := await node.worker.read_and_record(wait_s=2):
            seen += found_now
        assert seen > 0
        tally = await engine.ledger.tally(found.round.id)
        assert tally is not None
        assert (tally.sold, tally.recorded) == (30, 30)
        await node.http.aclose()
