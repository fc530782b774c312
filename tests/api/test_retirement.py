"""Old rounds leave the gate when all their orders have come to rest, and never before."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from seckill.backends.redis.gate import connect
from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine
from seckill.domain.sale import Sale, SaleChange
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.releases import ReleaseDesk
from seckill.engine.rounds.opening import bring_to_gate
from seckill.engine.rounds.retirement import BATCH_MAX, HEARD_AFTER_MS, RETIRE_AFTER_MS, Retirement
from seckill.errors import LedgerRefused, NotPossible
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer
from tests.api.test_keeper import make_keeper
from tests.api.test_rebuild import flush, rebuild
from tests.backends.sql.looking import write
from tests.backends.sql.making import HOUR_MS, admission, draft
from tests.patience import PATIENCE_S


@pytest.fixture
def settings(settings: Settings, ledger_url: str) -> Settings:
    """Settings for each database in turn."""
    return replace(settings, database_url=ledger_url)


@pytest.fixture
def retirement(engine: Engine) -> Retirement:
    return Retirement(engine.gate, engine.transport, engine.ledger)


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Redis]:
    opened = connect(redis_url)
    yield opened
    await opened.aclose()


async def round_keys(client: Redis) -> int:
    return len([key for key in await client.keys("*") if b":round:" in key or b":buyers:" in key])


async def ended(node: Node, orders: int = 2, **facts: Any) -> Sale:
    """A round that has just ended, with that many orders in the stream."""
    now_ms = (await node.engine.gate.pulses([]))[0]
    wanted = draft(begins_ms=now_ms - HOUR_MS, ends_ms=now_ms + HOUR_MS, **facts)
    sale = await node.engine.ledger.create_sale(wanted, lane=0)
    await bring_to_gate(sale.round, node.engine.gate, node.engine.ledger)
    await node.refresh()
    for number in range(orders):
        assert (await node.buy(public(node, sale), f"buyer-{number}")).status_code == 202
    changed = await node.engine.ledger.change_sale(sale.id, SaleChange(ends_ms=now_ms))
    assert changed is not None
    await bring_to_gate(changed.round, node.engine.gate, node.engine.ledger)
    await node.refresh()
    return changed


def public(node: Node, sale: Sale) -> dict[str, Any]:
    return {"id": node.engine.sale_ids.encode(sale.id)}


async def pay_all(node: Node) -> None:
    for number in range(2):
        mine = (await node.http.get("/v1/orders", headers=buyer(f"buyer-{number}"))).json()["orders"]
        for order in mine:
            paid = await node.http.post(f"/v1/orders/{order['order_id']}/pay", headers=buyer(f"buyer-{number}"))
            assert paid.status_code == 200
    await ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger).pass_on()


async def test_a_round_at_rest_leaves_the_gate(node: Node, retirement: Retirement, client: Redis) -> None:
    sale = await ended(node)
    await node.work()
    await pay_all(node)
    assert await round_keys(client) == 2
    over_ms = sale.round.ends_ms + RETIRE_AFTER_MS + 1
    assert await retirement.step(over_ms - 1) == 0, "a day has not passed"
    assert await retirement.step(over_ms) == 0, "decided, but not every node may know of it yet"
    assert await round_keys(client) == 2
    await node.refresh()
    known = node.api.context.sale_cache.sale_of_round(sale.round.id)
    assert known is not None
    assert known.round.retired_ms == over_ms
    assert await retirement.step(over_ms + HEARD_AFTER_MS + 1) == 1
    assert await round_keys(client) == 0
    assert await retirement.step(over_ms + HEARD_AFTER_MS + 1) == 0
    late = await node.buy(public(node, sale), "somebody")
    assert (late.status_code, late.json()["code"]) == (410, "ended"), "never not_ready"
    keeper = make_keeper(node.engine)
    assert await keeper.recovery.losses.find() == []
    assert await keeper.opener.step() == 0
    assert await round_keys(client) == 0, "nobody brings it back"


async def test_where_every_unit_is_when_the_gate_has_forgotten(node: Node, retirement: Retirement) -> None:
    sale = await ended(node, units=5)
    await node.work()
    await pay_all(node)
    url = f"/v1/sales/{public(node, sale)['id']}/custody?round={sale.round.id}"
    before = (await node.http.get(url, headers=OPERATOR)).json()
    over_ms = sale.round.ends_ms + RETIRE_AFTER_MS + 1
    await retirement.step(over_ms)
    await retirement.step(over_ms + HEARD_AFTER_MS + 1)
    assert await node.engine.gate.inspect(sale.round.ref) is None
    after = (await node.http.get(url, headers=OPERATOR)).json()
    assert after == before
    assert (after["available"], after["paid"], after["sold"]) == (3, 2, 2)


async def test_a_title_can_change_but_nothing_else(node: Node, retirement: Retirement) -> None:
    sale = await ended(node, orders=0)
    await retirement.step(sale.round.ends_ms + RETIRE_AFTER_MS + 1)
    await node.refresh()
    url = f"/v1/sales/{public(node, sale)['id']}"
    assert (await node.http.patch(url, json={"title": "Old"}, headers=OPERATOR)).json()["title"] == "Old"
    refused = await node.http.patch(url, json={"add_units": 1}, headers=OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_possible")
    with pytest.raises(NotPossible, match="over for long"):
        await node.engine.ledger.change_sale(sale.id, SaleChange(ends_ms=sale.round.ends_ms + 1))


async def test_as_long_as_anything_may_move_it_stays(node: Node, retirement: Retirement, client: Redis) -> None:
    sale = await ended(node, pay_within_s=1)
    late_ms = sale.round.ends_ms + RETIRE_AFTER_MS + 1

    async def stays() -> bool:
        await retirement.step(late_ms)
        await retirement.step(late_ms + HEARD_AFTER_MS + 1)
        return await round_keys(client) == 2

    assert await stays(), "two orders are in the stream"
    await node.work()
    assert await stays(), "two orders are unpaid"
    release_desk = ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger)
    async with asyncio.timeout(PATIENCE_S):
        expired = 0
        while expired < 2:
            expired += await release_desk.expire()
            await asyncio.sleep(0.05)
    assert await stays(), "two releases wait in the outbox"
    await release_desk.pass_on()
    assert not await stays()


async def test_control_the_ledger_alone_would_let_it_go_too_early(node: Node, engine: Engine) -> None:
    """The ledger cannot see orders in the stream: without the comparison with the gate the round would be retired."""
    sale = await ended(node)
    late_ms = sale.round.ends_ms + RETIRE_AFTER_MS + 1
    assert [round_.id for round_ in await engine.ledger.rounds_over(late_ms - RETIRE_AFTER_MS, 10)] == [sale.round.id]


async def test_a_round_that_an_operator_changes_meanwhile_is_not_retired(node: Node, engine: Engine) -> None:
    """Between the look at the round and its retirement: first its end is moved, then the gate does not know of it."""
    sale = await ended(node, orders=0)
    late_ms = sale.round.ends_ms + RETIRE_AFTER_MS + 1
    assert [round_.id for round_ in await engine.ledger.rounds_over(late_ms - RETIRE_AFTER_MS, 10)] == [sale.round.id]
    longer = await engine.ledger.change_sale(sale.id, SaleChange(ends_ms=late_ms + HOUR_MS))
    assert longer is not None
    await bring_to_gate(longer.round, engine.gate, engine.ledger)
    assert await engine.ledger.retire(sale.round.id, late_ms) is False, "it is on again"
    assert await engine.ledger.change_sale(sale.id, SaleChange(ends_ms=late_ms - 1)) is not None
    assert await engine.ledger.retire(sale.round.id, late_ms) is False, "the gate has another end"
    assert await make_keeper(engine).opener.step() == 1
    assert await engine.ledger.retire(sale.round.id, late_ms) is True


async def test_nothing_is_written_to_a_retired_round(node: Node, retirement: Retirement, engine: Engine) -> None:
    sale = await ended(node, orders=0)
    await retirement.step(sale.round.ends_ms + RETIRE_AFTER_MS + 1)
    with pytest.raises(LedgerRefused, match="over for long"):
        await engine.ledger.record([admission(sale.round, 1)])
    assert await engine.ledger.next_epoch(sale.round) is None
    assert await engine.ledger.retire(sale.round.id, 1) is False


async def test_what_comes_back_to_a_retired_round_is_only_told(node: Node, retirement: Retirement) -> None:
    """However it came about, nothing waits for ever for a round that the gate will never have again."""
    sale = await ended(node)
    await node.work()
    await pay_all(node)
    late_ms = sale.round.ends_ms + RETIRE_AFTER_MS + 1
    await retirement.step(late_ms)
    await retirement.step(late_ms + HEARD_AFTER_MS + 1)
    ledger = node.engine.ledger
    assert isinstance(ledger, SqlLedger)
    await write(ledger, "UPDATE outbox SET done_ms = NULL, kind = 'release'")
    assert await ReleaseDesk(node.engine.gate, node.engine.transport, ledger).pass_on() == 2


async def test_a_round_that_the_gate_lost_is_retired_once_its_lane_is_empty(
    node: Node, retirement: Retirement, engine: Engine, client: Redis
) -> None:
    sale = await ended(node, orders=0)
    other = await engine.ledger.create_sale(draft(), lane=0)
    await bring_to_gate(other.round, engine.gate, engine.ledger)
    await node.refresh()
    await node.buy(public(node, other), "ann")
    await engine.gate.forget(sale.round.ref)
    late_ms = sale.round.ends_ms + RETIRE_AFTER_MS + 1
    await retirement.step(late_ms)
    assert await engine.ledger.rounds_over(late_ms, 1) != []
    await node.work()
    await retirement.step(late_ms)
    assert await engine.ledger.rounds_over(late_ms - RETIRE_AFTER_MS, 1) == []


async def test_orders_given_up_after_a_rebuild_keep_no_round_in_the_gate(
    node: Node, retirement: Retirement, engine: Engine, redis_url: str, client: Redis
) -> None:
    """A worker has two in hand, and gives one up after each of two rebuilds: the gate hears of the first alone."""
    sale = await ended(node, units=5)
    in_hand = await engine.transport.read(10, 0)
    failures = DeadLetterDesk(engine.ledger, Alarm(""), (0,))
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    for given_up in in_hand:
        await flush(redis_url)
        await rebuild(make_keeper(engine))
        await node.worker.record([given_up])
        while await failures.retry_due():
            pass
        await release_desk.pass_on()
    view = await engine.gate.inspect(sale.round.ref)
    assert view is not None
    assert (view.epoch, view.admitted, view.released) == (3, 1, 1)
    url = f"/v1/sales/{public(node, sale)['id']}/custody?round={sale.round.id}"
    custody = (await node.http.get(url, headers=OPERATOR)).json()
    assert (custody["available"], custody["queued"], custody["returning"]) == (5, 0, 0)
    over_ms = sale.round.ends_ms + RETIRE_AFTER_MS + 1
    await retirement.step(over_ms)
    await retirement.step(over_ms + HEARD_AFTER_MS + 1)
    assert await round_keys(client) == 0


async def test_a_long_past_costs_nothing_every_second(node: Node, engine: Engine) -> None:
    """Ten thousand rounds of one sale: no node keeps them in memory or reads them again and again."""
    sale = await ended(node, orders=0)
    ledger = engine.ledger
    assert isinstance(ledger, SqlLedger)
    facts = "sale_id, lane, total, limit_per_buyer, status, epoch, revision, synced_revision"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
    await write(
        ledger,
        f"INSERT INTO rounds ({facts}, ordinal, scheduled_ms, begins_ms, ends_ms, retired_ms) "
        f"{numbers} SELECT {facts}, i, i, i, i + 1, 1 FROM rounds, n WHERE rounds.id = {sale.round.id}",
    )
    await write(ledger, "UPDATE sales SET changed = changed + 1")
    sale_cache = node.api.context.sale_cache
    await sale_cache.refresh_sales()
    assert len(list(sale_cache._rounds())) == 16
    assert len(sale_cache._sale_of_round) == 16
    assert await ledger.rounds_to_sync() == []
    assert [round_.id for round_ in await ledger.rounds_over(10**15, BATCH_MAX)] == [sale.round.id]
    assert await ledger.lanes_in_use() == {0}
