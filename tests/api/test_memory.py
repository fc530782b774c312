"""The use cases on `memory://`: two nodes, worker and keeper that share one store, which then forgets everything."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from seckill.backends.memory.store import Contents, MemoryStore
from seckill.bootstrap.engine import Engine, new_memory, open_engine
from seckill.engine.orders.releases import ReleaseDesk
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, make_node
from tests.making import use_cases


@pytest.fixture
def store() -> MemoryStore:
    return new_memory()


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, redis_url="memory://")


@pytest.fixture
async def engine(settings: Settings, store: MemoryStore) -> AsyncIterator[Engine]:
    async with open_engine(settings, store) as engine:
        yield engine


@pytest.fixture
async def other(settings: Settings, store: MemoryStore, engine: Engine) -> AsyncIterator[Node]:
    async with open_engine(settings, store) as own:
        node = await make_node(settings, own)
        yield node
        await node.http.aclose()


async def test_nodes_share_what_is_sold_and_the_other_ones_worker_writes_it(node: Node, other: Node) -> None:
    sale = await node.create(units=3)
    await other.refresh()
    answers = [await (node, other)[i % 2].buy(sale, f"u{i}", key="k") for i in range(6)]
    assert [answer.status_code for answer in answers] == [202] * 3 + [409] * 3
    again = await other.buy(sale, "u0", key="k")
    assert again.json()["order_id"] == answers[0].json()["order_id"]
    assert await other.worker.read_and_record(wait_s=0) == 3
    assert await node.worker.read_and_record(wait_s=0) == 0
    order = await node.http.get(f"/v1/orders/{again.json()['order_id']}", headers=buyer("u0"))
    assert order.json()["state"] == "unpaid"


async def test_what_a_dead_worker_had_is_written_by_another(node: Node, other: Node, engine: Engine) -> None:
    sale = await node.create(units=3)
    await node.buy(sale, "ann")
    assert len(await engine.transport.read(10, 0)) == 1  # and then it died
    assert await other.worker.read_and_record(wait_s=0) == 0
    assert await other.worker.take_over() == 1
    orders = await node.http.get("/v1/orders", headers=buyer("ann"))
    assert [order["state"] for order in orders.json()["orders"]] == ["unpaid"]


async def test_a_store_that_forgot_is_rebuilt_from_the_ledger_and_sells_on(
    node: Node, engine: Engine, store: MemoryStore
) -> None:
    keeper = use_cases(engine).keeper
    sale = await node.create(units=3)
    kept, ended = [(await node.buy(sale, user, key="k")).json()["order_id"] for user in ("ann", "bob")]
    await node.work()
    store.contents = Contents()
    assert (await node.buy(sale, "cid")).json()["code"] == "not_ready"
    assert await keeper.recovery.rebuild_losses() == 1
    await node.refresh()
    await node.http.post(f"/v1/orders/{ended}/cancel", headers=buyer("bob"))
    assert await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on() == 1
    assert (await node.buy(sale, "ann", key="k")).json()["order_id"] == kept
    assert [(await node.buy(sale, f"u{i}")).status_code for i in range(3)] == [202, 202, 409]
    await node.work()
    custody = (await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
    assert (custody["available"], custody["unpaid"], custody["queued"], custody["returning"]) == (0, 3, 0, 0)


async def test_nothing_to_audit_in_one_process(node: Node) -> None:
    repair = await node.http.post("/v1/admin/repair", headers=OPERATOR)
    assert (repair.status_code, repair.json()["code"]) == (409, "not_available")
    response = await node.http.get("/v1/admin/audit", headers=OPERATOR)
    assert (response.status_code, response.json()["code"]) == (409, "not_available")
