"""A sale over several lanes, over HTTP: to buyers and operators it is like any other."""

import asyncio
from collections import Counter
from typing import Any

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.engine.orders.releases import ReleaseDesk
from seckill.engine.rounds.retirement import Retirement
from tests.api.conftest import OPERATOR, Node, buyer, sale_body
from tests.api.test_rebuild import custody, rebuild
from tests.making import use_cases
from tests.patience import PATIENCE_S


async def lanes_used(node: Node, sale: dict[str, Any]) -> set[int]:
    client: Any = connect(node.api.context.settings.redis_url)
    present = await client.keys(f"*:buyers:{sale['round']}")
    found = {lane for lane in range(8) if any(f"{{{keys.tag(lane)}}}".encode() in key for key in present)}
    await client.aclose()
    return found


async def test_lanes_are_as_many_as_there_are(node: Node) -> None:
    assert (await node.create())["lanes"] == 1
    assert (await node.create(lanes=4))["lanes"] == 4
    for lanes, says in ((5, "at most 4"), (0, "lanes"), ("2", "lanes"), (257, "lanes")):
        response = await node.http.post("/v1/sales", json=sale_body(lanes=lanes), headers=OPERATOR)
        assert (response.status_code, response.json()["code"]) == (422, "invalid"), response.text
        assert says in response.text


async def test_a_sale_over_lanes_from_claim_to_return(node: Node, engine: Engine) -> None:
    sale = await node.create(units=10, limit_per_buyer=2, lanes=4)
    answers = await asyncio.gather(*[node.buy(sale, f"u{i}", key="k") for i in range(30)])
    orders = {f"u{i}": answer.json()["order_id"] for i, answer in enumerate(answers) if answer.status_code == 202}
    assert len(orders) == 10
    assert {answer.json()["code"] for answer in answers if answer.status_code != 202} == {"sold_out"}
    assert len(await lanes_used(node, sale)) > 1
    winner = next(iter(orders))
    queued = await node.http.get(f"/v1/orders/{orders[winner]}", headers=buyer(winner))
    assert queued.json()["state"] == "queued", "found in the buyer's lane"
    assert (await node.buy(sale, winner, key="k")).json()["order_id"] == orders[winner]
    assert (await custody(node, sale))["queued"] == 10
    await node.work()
    listed = (await node.http.get("/v1/orders", headers=buyer(winner))).json()["orders"]
    assert [order["state"] for order in listed] == ["unpaid"]
    # A unit comes back in one lane, and a buyer of another gets it.
    await node.refresh()
    async with asyncio.timeout(PATIENCE_S):
        while not node.api.context.desk.sold_out.is_raised(int(sale["round"])):
            assert (await node.buy(sale, "late")).json()["code"] == "sold_out"
            await asyncio.sleep(0.01)
    await node.http.post(f"/v1/orders/{orders[winner]}/cancel", headers=buyer(winner))
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    assert await release_desk.pass_on() == 1
    await node.refresh()
    assert not node.api.context.desk.sold_out.is_raised(int(sale["round"]))
    assert (await node.buy(sale, "late")).status_code == 202
    assert (await node.buy(sale, "later")).json()["code"] == "sold_out"
    await node.work()
    found = await custody(node, sale)
    assert (found["available"], found["unpaid"], found["total"]) == (0, 10, 10)


async def test_operators_reach_all_lanes(node: Node) -> None:
    sale = await node.create(units=4, lanes=4)
    users = [f"u{i}" for i in range(12)]
    await node.http.post(f"/v1/sales/{sale['id']}/pause", headers=OPERATOR)
    await node.refresh()
    assert {(await node.buy(sale, user)).json()["code"] for user in users} == {"paused"}
    await node.http.post(f"/v1/sales/{sale['id']}/resume", headers=OPERATOR)
    await node.http.patch(f"/v1/sales/{sale['id']}", json={"add_units": 3}, headers=OPERATOR)
    await node.refresh()
    assert sorted([(await node.buy(sale, user)).status_code for user in users]) == [202] * 7 + [409] * 5
    assert (await custody(node, sale))["total"] == 7
    await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    await node.refresh()
    assert {(await node.buy(sale, f"x{i}")).json()["code"] for i in range(12)} == {"ended"}


async def test_a_lane_that_is_lost_is_made_good_from_the_ledger(node: Node, engine: Engine, redis_url: str) -> None:
    """The others are fenced and dealt anew with it: nothing is sold twice, and nothing stays behind."""
    keeper = use_cases(engine).keeper
    sale = await node.create(units=12, lanes=4)
    first = [await node.buy(sale, f"u{i}", key="k") for i in range(8)]
    await node.work()
    client = connect(redis_url)
    lost = next(iter(await lanes_used(node, sale)))
    await client.delete(*await client.keys(f"*{{{keys.tag(lost)}}}*:{sale['round']}"))
    await client.aclose()
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [int(sale["round"])]
    await rebuild(keeper)
    await node.refresh()
    again = [await node.buy(sale, f"u{i}", key="k") for i in range(8)]
    assert [r.json()["order_id"] for r in again] == [r.json()["order_id"] for r in first]
    answers = [await node.buy(sale, f"new{i}") for i in range(20)]
    assert sum(answer.status_code == 202 for answer in answers) == 4
    await node.work()
    found = await custody(node, sale)
    assert (found["unpaid"], found["available"], found["queued"]) == (12, 0, 0)


async def test_a_round_over_lanes_leaves_the_gate_at_last(node: Node, engine: Engine, redis_url: str) -> None:
    sale = await node.create(units=12, lanes=4)
    for i in range(5):
        await node.buy(sale, f"u{i}")
    await node.work()
    for i in range(5):
        (order,) = (await node.http.get("/v1/orders", headers=buyer(f"u{i}"))).json()["orders"]
        await node.http.post(f"/v1/orders/{order['order_id']}/pay", headers=buyer(f"u{i}"))
    await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()
    retirement = Retirement(engine.gate, engine.transport, engine.ledger)
    later_ms = node.api.context.sale_cache.now_ms() + 3 * 24 * 3600 * 1000
    await retirement.step(later_ms)
    assert await retirement.step(later_ms + 3_600_000) == 1
    client = connect(redis_url)
    assert await client.keys(f"*:{sale['round']}") == []
    await client.aclose()
    await node.refresh()
    assert (await custody(node, sale))["paid"] == 5


async def test_sales_that_are_announced_at_once_are_in_different_lanes(node: Node, engine: Engine) -> None:
    await asyncio.gather(*(node.create() for _ in range(8)))
    lanes = Counter(sale.round.lane for sale in await engine.ledger.sales())
    assert lanes == {0: 2, 1: 2, 2: 2, 3: 2}
    assert node.api.context.sale_cache.quietest_lane(4) == 0, "none is taken any more"


async def test_new_rounds_and_lanes_are_where_the_fewest_are(node: Node, engine: Engine) -> None:
    sale_cache = node.api.context.sale_cache
    assert sale_cache.quietest_lane(4, 2) == 0
    await node.create(lanes=2)
    assert (sale_cache.quietest_lane(4, 2), sale_cache.quietest_lane(4)) == (2, 2)
    await node.create()
    assert (sale_cache.quietest_lane(4, 1), sale_cache.quietest_lane(4, 2), sale_cache.quietest_lane(4, 4)) == (3, 2, 0)
    assert sale_cache.quietest_lane(2, 4) == 0, "fewer lanes than a repeating sale was announced with"
    assert await engine.ledger.lanes_in_use() == {0, 1, 2} == sale_cache.lanes()
