"""One limit for several: users whom the token calls one person, and sales that name the same group."""

import asyncio
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from seckill.backends.sql.ledger import SqlLedger
from seckill.backends.sql.tables import orders, rounds
from seckill.bootstrap.engine import Engine
from seckill.engine.keeper import Keeper
from seckill.engine.orders.releases import ReleaseDesk
from tests.api.conftest import OPERATOR, Node, Served, sale_body, token_with
from tests.api.test_audience import said
from tests.api.test_rebuild import flush
from tests.making import use_cases


@pytest.fixture
def keeper(engine: Engine) -> Keeper:
    return use_cases(engine).keeper


async def refused(node: Node, **facts: Any) -> tuple[int, str]:
    answer = await node.http.post("/v1/sales", json=sale_body(**facts), headers=OPERATOR)
    return answer.status_code, answer.json()["errors"][0]["field"] if answer.status_code == 422 else ""


@pytest.mark.usefixtures("way")
async def test_a_household_is_one_buyer(served: Served, over_the_wire: httpx2.AsyncClient) -> None:
    sale = await served.node.create(units=50, limit_per_buyer=2, limit_by="household")
    assert sale["limit_by"] == "household"
    home = {"household": "h-7"}
    assert [await said(over_the_wire, sale, user, **home) for user in ("ann", "bob", "cid")] == [
        "queued",
        "queued",
        "limit_reached",
    ]
    assert await said(over_the_wire, sale, "dan", household="h-8") == "queued"
    assert await said(over_the_wire, sale, "eve", household=8) == "queued", "a number is a name too"


@pytest.mark.usefixtures("way")
async def test_a_token_without_the_claim_is_refused(
    served: Served,
    over_the_wire: httpx2.AsyncClient,
) -> None:
    sale = await served.node.create(units=50, limit_by="household")
    nobody: tuple[dict[str, Any], ...] = (
        {},
        {"household": None},
        {"household": ""},
        {"household": " h"},
        {"household": ["h"]},
        {"household": True},
        {"household": 1.5},
        {"household": "x" * 200},
    )
    for claims in nobody:
        assert await said(over_the_wire, sale, "ann", **claims) == "person_unknown", claims
    assert await said(over_the_wire, sale, "ann", household="h") == "queued"


async def test_sales_of_a_group_share_one_limit(node: Node) -> None:
    red = await node.create(title="red", units=50, limit_per_buyer=2, limit_group="mug")
    blue = await node.create(title="blue", units=50, limit_per_buyer=2, limit_group="mug")
    green = await node.create(title="green", units=50, limit_per_buyer=2)
    assert [await said(node.http, sale, "ann") for sale in (red, blue, red, blue, green)] == [
        "queued",
        "queued",
        "limit_reached",
        "limit_reached",
        "queued",
    ]
    refusal = await node.buy(blue, "ann")
    assert "counts towards the same limit" in refusal.json()["detail"]
    await node.work()
    mine = (await node.http.get("/v1/orders", headers={"Authorization": f"Bearer {token_with('ann')}"})).json()
    of_red = next(order["order_id"] for order in mine["orders"] if order["sale_id"] == red["id"])
    await node.http.post(f"/v1/orders/{of_red}/cancel", headers={"Authorization": f"Bearer {token_with('ann')}"})
    await ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger).pass_on()
    assert await said(node.http, blue, "ann") == "queued", "what comes back in one is free in the other"


async def test_a_gate_that_forgot_counts_as_before(node: Node, keeper: Keeper, engine: Engine, redis_url: str) -> None:
    red = await node.create(title="red", units=50, limit_per_buyer=2, limit_group="mug", limit_by="household")
    blue = await node.create(title="blue", units=50, limit_per_buyer=2, limit_group="mug", limit_by="household")
    home = {"household": "h"}
    assert await said(node.http, red, "ann", **home) == "queued"
    assert await said(node.http, blue, "bob", **home) == "queued"
    await node.work()
    assert isinstance(engine.ledger, SqlLedger)
    async with engine.ledger.database.readers.connect() as connection:
        assert {row.person for row in await connection.execute(select(orders.c.person))} == {"h"}
        assert len({row.lane for row in await connection.execute(select(rounds.c.lane))}) == 1, "all in one lane"
    await flush(redis_url)
    for sale in (red, blue):
        assert await said(node.http, sale, "cid", **home) == "not_ready"
    for _ in range(10):
        await keeper.queues.measure_backlog()
        await keeper.recovery.rebuild_losses()
        if not await keeper.recovery.losses.find():
            break
    await node.refresh()
    for sale in (red, blue):
        assert await said(node.http, sale, "cid", **home) == "limit_reached"
        assert await said(node.http, sale, "dan", household="other") == "queued"


async def test_what_cannot_share_is_told_so(node: Node) -> None:
    await node.create(limit_per_buyer=2, limit_group="mug")
    assert await refused(node, limit_group="mug") == (422, "limit_per_buyer")
    assert await refused(node, limit_per_buyer=2, limit_group="mug", lanes=2) == (422, "lanes")
    assert await refused(node, limit_per_buyer=2, limit_group="mug", limit_by="device") == (422, "limit_by")
    assert await refused(node, limit_group="daily", repeat="daily") == (422, "limit_group")
    assert await refused(node, limit_by="device", lanes=2) == (422, "lanes")
    assert (await refused(node, limit_by="two words"))[0] == 422
    assert (await refused(node, limit_group=""))[0] == 422
    assert (await refused(node, limit_per_buyer=2, limit_group="mug"))[0] == 201


async def test_many_who_press_everywhere_at_once_get_no_more(node: Node) -> None:
    sales = [await node.create(units=100, limit_per_buyer=2, limit_group="mug", limit_by="home") for _ in range(3)]

    async def press(sale: dict[str, Any], home: int, user: int) -> bool:
        return await said(node.http, sale, f"user-{home}-{user}", home=f"home-{home}") == "queued"

    pressed = [(sale, home, user) for home in range(6) for user in range(3) for sale in sales]
    got = await asyncio.gather(*[press(*each) for each in pressed])
    for home in range(6):
        assert sum(took for took, (_, at, _) in zip(got, pressed, strict=True) if at == home) == 2
