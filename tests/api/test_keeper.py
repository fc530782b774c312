"""The keeper: opens what is not open, passes on what was changed, notices what is lost."""

import asyncio
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundRef, RoundStatus, SaleChange
from seckill.engine.keeper import Keeper
from seckill.engine.orders.releases import ReleaseDesk
from seckill.engine.rounds.opening import Sync, bring_to_gate
from seckill.engine.rounds.rebuild_queue import REBUILT_AT_ONCE
from seckill.errors import GateUnavailable
from tests.api.conftest import OPERATOR, Node, buyer
from tests.backends.sql.making import draft
from tests.making import use_cases
from tests.patience import PATIENCE_S


def make_keeper(engine: Engine) -> Keeper:
    return use_cases(engine).keeper


async def test_a_sale_whose_creator_died_is_opened(engine: Engine) -> None:
    """Stored, but the process died before it could tell the gate (F44)."""
    sale = await engine.ledger.create_sale(draft(), lane=0)
    keeper = make_keeper(engine)
    assert await keeper.recovery.losses.find() == [], "not opened yet is not lost"
    assert await keeper.opener.step() == 1
    view = await engine.gate.inspect(sale.round.ref)
    assert view is not None
    assert (view.status, view.available) == ("open", sale.round.total)
    assert await keeper.opener.step() == 0
    assert await keeper.recovery.losses.find() == []


async def test_a_change_that_never_reached_the_gate_is_passed_on(engine: Engine, node: Node) -> None:
    await node.create()
    (sale,) = await engine.ledger.sales()
    await engine.ledger.change_sale(sale.id, SaleChange(status=RoundStatus.PAUSED, add_units=4))
    assert await make_keeper(engine).opener.step() == 1
    view = await engine.gate.inspect(sale.round.ref)
    assert view is not None
    assert (view.status, view.total, view.available) == ("paused", sale.round.total + 4, sale.round.total + 4)


async def test_every_crash_while_opening_ends_in_one_opening(engine: Engine) -> None:
    """Between any two of the three steps, by another keeper or the same one again."""

    sale = await engine.ledger.create_sale(draft(), lane=0)
    await engine.gate.open_round(sale.round)  # …and died
    await bring_to_gate(sale.round, engine.gate, engine.ledger)
    await bring_to_gate(sale.round, engine.gate, engine.ledger)
    other = await engine.ledger.create_sale(draft(), lane=0)
    opening = await engine.gate.open_round(other.round)
    await engine.ledger.mark_opened(other.round.id, other.round.epoch, opening.opened_ms)  # …and died
    assert await make_keeper(engine).opener.step() == 1
    for made in (sale, other):
        view = await engine.gate.inspect(made.round.ref)
        assert view is not None
        assert (view.status, view.available, view.total) == ("open", made.round.total, made.round.total)


async def test_a_lost_round_is_reported_and_never_filled_again(engine: Engine, node: Node, redis_url: str) -> None:
    sale = await node.create()
    await node.buy(sale, "ann")
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    keeper = make_keeper(engine)
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [int(sale["round"])]
    await engine.ledger.change_sale(1, SaleChange(add_units=1))
    assert await keeper.opener.step() == 0
    (found,) = await engine.ledger.sales()
    assert await engine.gate.inspect(found.round.ref) is None


async def test_a_slow_opener_cannot_fill_a_gate_that_forgot(engine: Engine, redis_url: str) -> None:
    """It read the round before another keeper opened it and buyers bought; then the gate lost everything."""
    sale = await engine.ledger.create_sale(draft(), lane=0)
    await bring_to_gate(sale.round, engine.gate, engine.ledger)
    await engine.gate.admit(sale.round.ref, [Claim("ann", 1)])
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    assert sale.round.opened_ms is None, "as the slow one remembers it"
    assert await bring_to_gate(sale.round, engine.gate, engine.ledger) is Sync.LOST
    keeper = make_keeper(engine)
    await engine.ledger.change_sale(sale.id, SaleChange(add_units=1))
    assert await keeper.opener.step() == 0
    (answer,) = (await engine.gate.admit(sale.round.ref, [Claim("bob", 1)])).answers
    assert answer.outcome is Outcome.NOT_READY


async def test_a_round_of_a_later_epoch_is_rebuilt_and_never_filled(engine: Engine, node: Node, redis_url: str) -> None:
    """The gate is empty, and the keeper that began the rebuild died after giving the round its new epoch (F51)."""
    sale = await node.create(units=1)
    await node.buy(sale, "ann")
    await node.work()
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    (found,) = await engine.ledger.sales()
    raised = await engine.ledger.next_epoch(found.round)
    assert raised is not None
    keeper = make_keeper(engine)
    assert await keeper.opener.step() == 0
    assert await engine.gate.inspect(raised.ref) is None, "it would have its one unit again"
    assert await keeper.recovery.rebuild_losses() == 1
    await node.refresh()
    assert (await node.buy(sale, "bob")).json()["code"] == "sold_out"


async def test_a_round_that_the_gate_refuses_holds_up_no_other(engine: Engine, redis_url: str) -> None:
    """Something else stands under its key."""
    bad, good = [await engine.ledger.create_sale(draft(), lane=0) for _ in range(2)]
    client = connect(redis_url)
    await client.set(keys.round_(bad.round.ref), "?")
    keeper = make_keeper(engine)
    assert await keeper.opener.step() == 1
    view = await engine.gate.inspect(good.round.ref)
    assert view is not None
    assert view.status == "open"
    await client.delete(keys.round_(bad.round.ref))
    await client.aclose()
    assert await keeper.opener.step() == 1


async def test_a_round_that_takes_nothing_back_holds_up_no_other(engine: Engine, node: Node, redis_url: str) -> None:
    bad, good = [await node.create(units=1) for _ in range(2)]
    orders = [(await node.buy(sale, "ann")).json()["order_id"] for sale in (bad, good)]
    await node.work()
    for order_id in orders:
        assert (await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer("ann"))).status_code == 200
    first, second = sorted(await engine.ledger.sales(), key=lambda sale: sale.id)
    client: Any = connect(redis_url)
    await client.rename(keys.round_(first.round.ref), "aside")
    await client.set(keys.round_(first.round.ref), "?")
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    assert await release_desk.pass_on() == 1
    view = await engine.gate.inspect(second.round.ref)
    assert view is not None
    assert view.available == 1
    await client.rename("aside", keys.round_(first.round.ref))
    await client.aclose()
    assert await release_desk.pass_on() == 1, "the other, as soon as it can"


async def test_a_round_that_cannot_be_rebuilt_holds_up_no_other(
    engine: Engine, node: Node, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = [await node.create(units=1) for _ in range(2)]
    for sale in (bad, good):
        await node.buy(sale, "ann")
    await node.work()
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    fence = engine.gate.fence

    async def refuse(round_: Round) -> None:
        if round_.id == int(bad["round"]):
            raise GateUnavailable("The gate refuses this one.")
        await fence(round_)

    monkeypatch.setattr(engine.gate, "fence", refuse)
    keeper = make_keeper(engine)
    assert await keeper.recovery.rebuild_losses() == 1
    assert (await node.buy(good, "ann")).json()["code"] == "limit_reached", "it is back, and knows its buyer"
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [int(bad["round"])]


async def test_rounds_that_were_lost_together_do_not_wait_for_each_other(
    engine: Engine, node: Node, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finishes when as many as may are finishing; those that are on sale are the first, whatever their ids."""
    paused = [await node.create(units=1) for _ in range(2)]
    for sale in paused:
        await node.http.post(f"/v1/sales/{sale['id']}/pause", headers=OPERATOR)
    on_sale = [await node.create(units=1) for _ in range(REBUILT_AT_ONCE)]
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    finish = engine.gate.finish_rebuild
    finishing: list[int] = []
    all_there = asyncio.Event()

    async def together(ref: RoundRef, *args: Any) -> int | None:
        finishing.append(ref.id)
        if len(finishing) == REBUILT_AT_ONCE:
            all_there.set()
        await all_there.wait()
        return await finish(ref, *args)

    monkeypatch.setattr(engine.gate, "finish_rebuild", together)
    keeper = make_keeper(engine)
    async with asyncio.timeout(PATIENCE_S):
        assert await keeper.recovery.rebuild_losses() == len(on_sale) + len(paused)
    assert set(finishing[:REBUILT_AT_ONCE]) == {int(sale["round"]) for sale in on_sale}
    assert set(finishing[REBUILT_AT_ONCE:]) == {int(sale["round"]) for sale in paused}


async def test_an_error_of_one_round_is_told_when_the_others_are_back(
    engine: Engine, node: Node, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = [await node.create(units=1) for _ in range(2)]
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    next_epoch = engine.ledger.next_epoch

    async def broken(known: Round, gate_epoch: int = 0) -> Round | None:
        if known.id == int(bad["round"]):
            raise ValueError("not a round")
        return await next_epoch(known, gate_epoch)

    monkeypatch.setattr(engine.ledger, "next_epoch", broken)
    keeper = make_keeper(engine)
    with pytest.raises(ValueError, match="not a round"):
        await keeper.recovery.rebuild_losses()
    assert (await node.buy(good, "ann")).status_code == 202
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [int(bad["round"])]


async def test_the_backlog_is_measured_and_consumers_are_kept(engine: Engine, node: Node) -> None:
    sale: dict[str, Any] = await node.create()
    await node.buy(sale, "ann")
    keeper = make_keeper(engine)
    assert await keeper.queues.measure_backlog() == 1
    await node.work()
    assert await keeper.queues.measure_backlog() == 0
    assert await keeper.queues.retire_consumers() == 0
