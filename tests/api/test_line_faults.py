"""A line under faults, on a real Valkey: two keepers at once, a gate that forgets everything, lanes, a keeper that is
broken off between its steps. Whatever happens, no buyer is served twice or before a better place, and no unit is
left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from seckill.backends.sql.lines import SqlLines
from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.line import EntryState
from seckill.engine.line.serving import Serving
from seckill.errors import LedgerUnavailable
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, keeping
from tests.api.test_line import Keeping, begin, check_draw, joined, later, look
from tests.api.test_rebuild import flush
from tests.e2e.checks import check_audit
from tests.patience import PATIENCE_S

UNITS = 12
PEOPLE = 60


@asynccontextmanager
async def working(node: Node) -> AsyncIterator[None]:
    stop = asyncio.Event()

    async def work() -> None:
        while not stop.is_set():
            await node.work()
            await node.refresh()
            await asyncio.sleep(0.01)

    task = asyncio.create_task(work())
    try:
        yield
    finally:
        stop.set()
        await task


async def entries_of(node: Node, sale: dict[str, Any]) -> list[dict[str, Any]]:
    address, params = f"/v1/admin/sales/{sale['id']}/line", {"limit": "1000"}
    return list((await node.http.get(address, headers=OPERATOR, params=params)).json()["entries"])


async def until_served(node: Node, sale: dict[str, Any], count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            served = [entry for entry in await entries_of(node, sale) if entry["state"] == "served"]
            if len(served) >= count:
                return served
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("lanes", [1, 4])
async def test_two_keepers_and_a_gate_that_forgets(
    node: Node, settings: Settings, engine: Engine, redis_url: str, lanes: int
) -> None:
    sale = await node.create(units=UNITS, order="draw", lanes=lanes, **later())
    await asyncio.gather(*[joined(node, sale, f"user-{number}") for number in range(PEOPLE)])
    await begin(node, sale)
    async with working(node), keeping(settings, engine), keeping(settings, engine):
        served = await until_served(node, sale, UNITS)
        await flush(redis_url)
        for entry in served[:4]:
            address = f"/v1/orders/{entry['order_id']}/cancel"
            assert (await node.http.post(address, headers=buyer(entry["buyer"]))).status_code == 200
        served = await until_served(node, sale, UNITS + 4)
    assert [entry["place"] for entry in served] == list(range(1, UNITS + 5)), "in the order of the places"
    orders = (await node.http.get("/v1/admin/orders", headers=OPERATOR, params={"limit": "100"})).json()["orders"]
    bought = [each["order"]["order_id"] for each in orders]
    assert sorted(bought) == sorted(entry["order_id"] for entry in served), "each of them once, and nobody else"
    await check_audit(engine)


@pytest.mark.parametrize("step", ["call_next", "settle_called", "gate"])
async def test_what_a_keeper_has_begun_another_goes_on_with(
    node: Node, settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The first is gone after the ledger has called, before it has noted who is served, or after the gate has
    admitted."""
    sale = await node.create(units=2, order="arrival")
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob", "cid")}
    first, second = Keeping(node, settings), Keeping(node, settings)
    await first.draw()
    with monkeypatch.context() as patch:
        gone = {"call_next": (Serving, "_ask_gate"), "settle_called": (SqlLines, "settle_called")}
        owner, name = gone.get(step, (Serving, "_settle"))
        hit = []

        async def die(*_: object, **__: object) -> None:
            hit.append(step)
            raise LedgerUnavailable("the keeper is dead")

        patch.setattr(owner, name, die)
        await first.use.serving.step()
        assert hit, "the window was hit"
    called = await engine.ledger.lines.entries_by_place(int(sale["round"]), 0, 9)
    assert [entry.state for entry in called] == [EntryState.CALLED, EntryState.CALLED, EntryState.WAITING]
    refused = await node.http.delete(f"/v1/entries/{entries['ann']['entry_id']}", headers=buyer("ann"))
    assert refused.json()["code"] == "already_served", "who is called may have an order already"
    assert not await second.use.serving.step(), "the first has the line for a while"
    async with engine.ledger.database.writers.begin() as connection:  # type: ignore[attr-defined]
        await connection.exec_driver_sql("UPDATE round_lines SET lease_ms = 1")
    await second.serve()
    await second.serve()
    states = [(await look(node, entries[user], user))["state"] for user in ("ann", "bob", "cid")]
    assert states == ["served", "served", "waiting"]
    for user in ("ann", "bob"):
        mine = (await node.http.get("/v1/orders", headers=buyer(user))).json()["orders"]
        assert len(mine) == 1, "one order, however often the gate was asked"
    await check_audit(engine)


async def test_an_order_that_the_gate_forgot_is_given_anew(
    node: Node, settings: Settings, engine: Engine, redis_url: str
) -> None:
    """It was admitted and no worker has written it, so its buyer was not told that they are served."""
    sale = await node.create(units=1, order="arrival")
    entry = await joined(node, sale, "ann")
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.use.serving.step()
    assert (await look(node, entry, "ann"))["state"] == "waiting"
    await flush(redis_url)
    async with working(node), keeping(settings, engine):
        async with engine.ledger.database.writers.begin() as connection:  # type: ignore[attr-defined]
            await connection.exec_driver_sql("UPDATE round_lines SET lease_ms = 1")
        [served] = await until_served(node, sale, 1)
    assert served["order_id"] is not None
    await check_audit(engine)


async def test_two_keepers_make_the_same_draw(
    node: Node, settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = await node.create(order="draw", **later())
    await asyncio.gather(*[joined(node, sale, f"user-{number}") for number in range(40)])
    await begin(node, sale)
    use = [UseCases(engine, settings) for _ in range(2)]
    broken_off = UseCases(engine, settings).drawing
    given = engine.ledger.lines.give_places
    places: list[int] = []

    async def some(portion: Any) -> None:
        await given(portion[:7])
        places.append(len(portion))
        raise LedgerUnavailable("the keeper is dead")

    with monkeypatch.context() as patch:
        patch.setattr(engine.ledger.lines, "give_places", some)
        await broken_off.step()
    assert places, "it was broken off in the middle"
    half = (await node.http.get(f"/v1/sales/{sale['id']}/draw/entries")).json()
    assert half.get("code") == "being_drawn", "a list without those who have a place would have another hash"
    assert sorted(await asyncio.gather(*[each.drawing.step() for each in use])) in ([0, 1], [1, 1])
    await asyncio.sleep(1.0)
    draw = (await node.http.get(f"/v1/sales/{sale['id']}/draw")).json()
    order = (await node.http.get(f"/v1/sales/{sale['id']}/draw/entries", params={"limit": "30"})).json()
    rest = (await node.http.get(f"/v1/sales/{sale['id']}/draw/entries", params={"after": order["next"]})).json()
    assert len(order["entries"]) == 30
    check_draw(draw, order["entries"] + rest["entries"], draw["commitment"])
