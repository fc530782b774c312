"""Over HTTP: a buyer who lets an order lapse waits, is told for how long, and all others go first."""

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any

import httpx2

from seckill.bootstrap.engine import Engine
from seckill.engine.orders.releases import ReleaseDesk
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, make_node, sale_body
from tests.api.repeating import add, announce, end_at, make_keeper, now_ms, open_, shown
from tests.api.test_rebuild import flush, rebuild
from tests.backends.sql.making import HOUR_MS

# No test waits for its end, however slow the machine is.
LONG_S = 3600


async def cancel(node: Node, won: httpx2.Response, user: str) -> None:
    """Cancels the order and sees that the unit is back on sale."""
    assert won.status_code == 202, won.text
    await node.work()
    order_id = won.json()["order_id"]
    assert (await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer(user))).status_code == 200
    await ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger).pass_on()


async def patch(node: Node, sale: dict[str, Any], **changes: Any) -> dict[str, Any]:
    response = await node.http.patch(f"/v1/sales/{sale['id']}", json=changes, headers=OPERATOR)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_who_cancelled_is_told_when_to_come_back(node: Node) -> None:
    sale = await node.create(units=1, cool_down_s=LONG_S)
    first = await node.buy(sale, "ann", key="first")
    await cancel(node, first, "ann")
    refused = await node.buy(sale, "ann", key="second")
    assert (refused.status_code, refused.json()["code"]) == (429, "cooling_down")
    assert 0 < int(refused.headers["Retry-After"]) <= LONG_S
    again_at = datetime.fromisoformat(refused.json()["again_at"])
    assert again_at.timestamp() * 1000 <= await now_ms(node) + LONG_S * 1000
    again = await node.buy(sale, "ann", key="first")
    assert (again.status_code, again.json()) == (202, first.json() | {"state": "cancelled"})
    assert (await node.buy(sale, "bob")).status_code == 202, "others go first"


async def test_the_wait_is_the_sales_and_can_be_changed(node: Node, settings: Settings) -> None:
    default = await node.create()
    assert default["cool_down_s"] == settings.cool_down_s > 0
    sale = await node.create(units=1, cool_down_s=LONG_S)
    assert (await node.http.get(f"/v1/sales/{sale['id']}")).json()["cool_down_s"] == LONG_S
    await cancel(node, await node.buy(sale, "ann"), "ann")
    assert (await node.buy(sale, "ann")).json()["code"] == "cooling_down"
    assert (await patch(node, sale, cool_down_s=0))["cool_down_s"] == 0
    assert (await node.buy(sale, "ann")).status_code == 202, "in force from the answer on"
    for wrong in (-1, 3601, 1.5, "5"):
        response = await node.http.post("/v1/sales", json=sale_body(cool_down_s=wrong), headers=OPERATOR)
        assert (response.status_code, response.json()["code"]) == (422, "invalid"), wrong


async def test_a_deployment_can_do_without(settings: Settings, engine: Engine) -> None:
    node = await make_node(replace(settings, cool_down_s=0), engine)
    sale = await node.create(units=1)
    assert sale["cool_down_s"] == 0
    for _ in range(3):
        await cancel(node, await node.buy(sale, "ann"), "ann")
    assert (await node.buy(sale, "ann")).status_code == 202
    await node.http.aclose()


async def test_a_node_that_refuses_as_sold_out_lets_the_gate_speak_to_who_waits(node: Node) -> None:
    sale = await node.create(units=1, cool_down_s=LONG_S)
    await cancel(node, await node.buy(sale, "ann"), "ann")
    assert (await node.buy(sale, "bob")).status_code == 202
    assert (await node.buy(sale, "cid")).json()["code"] == "sold_out"
    async with asyncio.timeout(30):
        while not node.api.context.desk.sold_out.is_raised(int(sale["round"])):
            await asyncio.sleep(0.01)
    await node.refresh()
    assert node.api.context.desk.sold_out.is_raised(int(sale["round"]))
    assert (await node.buy(sale, "dan")).json()["code"] == "sold_out"
    assert (await node.buy(sale, "ann")).json()["code"] == "cooling_down"


async def test_the_next_round_begins_without_a_wait(node: Node) -> None:
    """This holds at the edge between two rounds, too, where the one that is over is asked as well."""
    started_ms = await now_ms(node)
    first = await announce(node, started_ms - HOUR_MS, started_ms + HOUR_MS, cool_down_s=LONG_S)
    await cancel(node, await node.buy(shown(node, first), "ann", key="k"), "ann")
    assert (await node.buy(shown(node, first), "ann", key="other")).json()["code"] == "cooling_down"
    boundary_ms = await now_ms(node)
    first = await end_at(node, first, boundary_ms)
    second = await add(node, first, boundary_ms, boundary_ms + HOUR_MS)
    assert second.round.cool_down_s == LONG_S
    for key, user in (("other", "ann"), (None, "bob")):
        bought = await node.buy(shown(node, second), user, key=key)
        assert bought.status_code == 202, bought.text
        assert bought.json()["round"] == str(second.round.id)


async def test_a_change_is_also_for_the_rounds_that_follow(node: Node) -> None:
    started_ms = await now_ms(node)
    first = await announce(node, started_ms - HOUR_MS, started_ms + HOUR_MS, cool_down_s=LONG_S)
    second = await add(node, first, started_ms + 2 * HOUR_MS, started_ms + 3 * HOUR_MS)
    await patch(node, shown(node, first), cool_down_s=7)
    found = await node.engine.ledger.sale(second.id, second.round.id)
    assert found is not None
    assert found.round.cool_down_s == 7
    await open_(node, found)
    third = await add(node, found, started_ms + 4 * HOUR_MS, started_ms + 5 * HOUR_MS)
    assert third.round.cool_down_s == 7


async def test_the_wait_survives_a_gate_that_lost_everything(node: Node, engine: Engine, redis_url: str) -> None:
    """The ledger's rows tell whose orders lapsed, how many, and when."""
    sale = await node.create(units=9, limit_per_buyer=2, cool_down_s=0)
    for user in ("ann", "ann", "bob"):
        await cancel(node, await node.buy(sale, user), user)
    assert (await node.buy(sale, "cid")).status_code == 202
    await node.work()
    await patch(node, sale, cool_down_s=600)
    before = await again_at_s(node, sale, "ann", "bob")
    assert before["ann"] - before["bob"] > 300, "twice as long"
    await flush(redis_url)
    await rebuild(make_keeper(engine))
    await node.refresh()
    after = await again_at_s(node, sale, "ann", "bob")
    for user in before:  # the ledger's clock is not the gate's, but waits differ by minutes
        assert abs(before[user] - after[user]) < 300
    assert (await node.buy(sale, "cid")).status_code == 202


async def again_at_s(node: Node, sale: dict[str, Any], *users: str) -> dict[str, float]:
    refused = {user: (await node.buy(sale, user)).json() for user in users}
    assert {told.get("code") for told in refused.values()} == {"cooling_down"}
    return {user: datetime.fromisoformat(told["again_at"]).timestamp() for user, told in refused.items()}
