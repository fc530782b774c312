"""The connection to the database breaks after COMMIT was sent: no buyer is told anything untrue, nothing is done twice
(F64, F65).

Every test looks past the cut connection first, to show that it hit the window: committed, and yet an error.
"""

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import dead_letters, order_events, outbox, payments
from seckill.bootstrap.engine import Engine, open_engine
from seckill.domain.order import OrderState
from seckill.engine.orders.releases import ReleaseDesk
from seckill.errors import LedgerUnavailable
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, make_node
from tests.backends.sql.looking import order_rows, rows, write
from tests.backends.sql.test_endings import capture
from tests.fixtures.cutting import Cut


@pytest.fixture
def settings(settings: Settings, cut: Cut) -> Settings:
    return replace(settings, database_url=cut.url)


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    async with open_engine(settings) as engine:
        yield engine


@pytest.fixture
async def node(settings: Settings, engine: Engine) -> AsyncIterator[Node]:
    node = await make_node(settings, engine)
    yield node
    await node.http.aclose()


async def bought(node: Node, users: list[str], **facts: Any) -> tuple[dict[str, Any], list[str]]:
    sale = await node.create(units=10, **facts)
    return sale, [str((await node.buy(sale, user)).json()["order_id"]) for user in users]


async def custody(node: Node, sale: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = (await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
    places = ("available", "queued", "unpaid", "paid", "returning", "dead")
    return {place: found[place] for place in places if found[place]}


@pytest.mark.parametrize("ledger_url", ["sqlite", "postgres", "mariadb"], indirect=True)
async def test_a_workers_batch(node: Node, cut: Cut, ledger: SqlLedger) -> None:
    await check_a_batch(node, cut, ledger, silent=False)


@pytest.mark.parametrize("ledger_url", ["postgres", "mariadb"], indirect=True)
async def test_a_workers_batch_and_silence(
    node: Node, cut: Cut, ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing says that the connection is gone: the worker's own patience ends."""
    monkeypatch.setattr("seckill.backends.sql.transactions.WRITE_WITHIN_S", 1.0)
    await check_a_batch(node, cut, ledger, silent=True)


async def check_a_batch(node: Node, cut: Cut, ledger: SqlLedger, *, silent: bool) -> None:
    users = ["ann", "bob", "cid"]
    sale, _ = await bought(node, users)
    told: list[str] = []
    real = node.engine.ledger.record

    async def record(admissions: Any) -> Any:
        try:
            return await real(admissions)
        except LedgerUnavailable:
            told.append("unavailable")
            assert len(await order_rows(ledger)) == len(users), "committed, although the worker saw an error"
            raise

    node.engine.ledger.record = record  # type: ignore[method-assign]
    cut.arm(silent=silent)
    await node.work()
    assert (cut.hits, told) == (1, ["unavailable"])
    assert [row.state for row in await order_rows(ledger)] == ["unpaid"] * 3
    assert len(await rows(ledger, select(order_events))) == 3
    assert await rows(ledger, select(outbox)) == [], "nothing was released"
    assert await rows(ledger, select(dead_letters)) == []
    assert await custody(node, sale) == {"available": 7, "unpaid": 3}
    assert await node.engine.transport.backlog(range(4)) == 0


@pytest.mark.parametrize("ledger_url", ["sqlite", "postgres", "mariadb"], indirect=True)
async def test_a_payment(node: Node, engine: Engine, cut: Cut, ledger: SqlLedger) -> None:
    sale, _ = await bought(node, ["ann"])
    await node.work()
    (row,) = await order_rows(ledger)
    (order,) = await ledger.orders_of("ann", None, 1)
    cut.arm()
    with pytest.raises(LedgerUnavailable):
        await engine.ledger.pay(order.number, "ann", capture("first", row.price_cents))
    assert cut.hits == 1
    paid = await ledger.order(order.number)
    assert paid is not None
    assert paid.state is OrderState.PAID, "committed, although the caller saw an error"
    again = await engine.ledger.pay(order.number, "ann", capture("second", row.price_cents))
    assert again is not None
    assert (again.done, again.order) == (False, paid)
    assert len(await rows(ledger, select(payments))) == 1
    await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()
    assert await custody(node, sale) == {"available": 9, "paid": 1}


async def test_a_cancel(node: Node, engine: Engine, cut: Cut, ledger: SqlLedger) -> None:
    sale, (order_id,) = await bought(node, ["ann"])
    await node.work()
    cut.arm()
    unclear = await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer("ann"))
    assert (unclear.status_code, unclear.json()["code"]) == (503, "not_ready"), "neither done nor refused"
    assert cut.hits == 1
    assert [row.state for row in await order_rows(ledger)] == ["cancelled"], "committed all the same"
    shown = await node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))
    assert shown.json()["state"] == "cancelled"
    again = await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer("ann"))
    assert (again.status_code, again.json()["state"]) == (200, "cancelled")
    await check_released_once(node, engine, ledger, sale, 1)


async def test_an_expiry(node: Node, engine: Engine, cut: Cut, ledger: SqlLedger) -> None:
    sale, _ = await bought(node, ["ann", "bob"])
    await node.work()
    await write(ledger, f"UPDATE orders SET expires_ms = {int(time.time() * 1000) - 1}")
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    cut.arm()
    with pytest.raises(LedgerUnavailable):
        await release_desk.expire()
    assert cut.hits == 1
    assert [row.state for row in await order_rows(ledger)] == ["expired"] * 2, "committed all the same"
    assert await release_desk.expire() == 0
    await check_released_once(node, engine, ledger, sale, 2)


async def check_released_once(node: Node, engine: Engine, ledger: SqlLedger, sale: dict[str, Any], orders: int) -> None:
    assert await custody(node, sale) == {"available": 10 - orders, "returning": orders}, "nothing is back yet"
    assert [row.kind for row in await rows(ledger, select(outbox))] == ["release"] * orders
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    assert await release_desk.pass_on() == orders
    assert await release_desk.pass_on() == 0
    assert await custody(node, sale) == {"available": 10}


async def test_relayed_and_not_noted(node: Node, engine: Engine, cut: Cut, ledger: SqlLedger) -> None:
    """The other way round: the outbox is told that the units are back, and the answer is lost."""
    sale, (order_id,) = await bought(node, ["ann"])
    await node.work()
    await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer("ann"))
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    cut.arm()
    with pytest.raises(LedgerUnavailable):
        await release_desk.pass_on()
    assert cut.hits == 1
    assert await ledger.outbox(10) == []
    assert await release_desk.pass_on() == 0
    assert await custody(node, sale) == {"available": 10}
