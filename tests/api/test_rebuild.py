"""A gate that forgot, or went back in time: fenced, rebuilt from the ledger, selling on; never a unit too many."""

import asyncio
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.domain.sale import Round
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.keeper import Keeper
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.releases import ReleaseDesk
from tests.api.conftest import OPERATOR, Node, buyer
from tests.backends.sql.making import draft
from tests.making import use_cases
from tests.patience import PATIENCE_S


@pytest.fixture
def keeper(engine: Engine) -> Keeper:
    return use_cases(engine).keeper


async def flush(redis_url: str) -> None:
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()


async def rebuild(keeper: Keeper) -> None:
    for _ in range(5):
        await keeper.queues.measure_backlog()
        if await keeper.recovery.rebuild_losses():
            return
    pytest.fail("the round was not rebuilt")


async def custody(node: Node, sale: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = (await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
    return found


async def test_an_empty_gate_is_rebuilt_and_sells_on(node: Node, keeper: Keeper, redis_url: str) -> None:
    sale = await node.create(units=5, limit_per_buyer=2)
    kept = (await node.buy(sale, "ann", key="k")).json()
    ended = (await node.buy(sale, "bob", key="k")).json()
    await node.work()
    await node.http.post(f"/v1/orders/{ended['order_id']}/cancel", headers=buyer("bob"))
    await flush(redis_url)
    assert (await node.buy(sale, "cid")).json()["code"] == "not_ready"
    await rebuild(keeper)
    await node.refresh()
    assert await keeper.recovery.losses.find() == []
    assert (await custody(node, sale))["available"] == 4
    again = await node.buy(sale, "ann", key="k")
    assert (again.status_code, again.json()["order_id"]) == (202, kept["order_id"]), "keys are remembered"
    over = await node.buy(sale, "bob", key="k")
    assert over.json() == ended | {"state": "cancelled"}, "also those of orders that are over"
    assert [(await node.buy(sale, f"u{i}")).status_code for i in range(5)] == [202] * 4 + [409]
    await node.work()
    found = await custody(node, sale)
    assert (found["available"], found["unpaid"], found["returning"], found["queued"]) == (0, 5, 0, 0)


async def test_what_another_keeper_has_rebuilt_is_not_rebuilt_again(
    node: Node, keeper: Keeper, engine: Engine, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has seen that the round is lost, and asks the ledger just when the other is done and has sold again."""
    other = use_cases(engine).keeper
    sale = await node.create(units=5)
    await node.buy(sale, "ann")
    await node.work()
    await keeper.queues.measure_backlog()
    await flush(redis_url)
    asked = engine.ledger.sale
    sold: list[str] = []

    async def sale_after_the_rival(sale_id: int, round_id: int | None = None) -> Any:
        if not sold:
            sold.append("bob")
            await rebuild(other)
            await node.refresh()
            assert (await node.buy(sale, "bob")).status_code == 202
        return await asked(sale_id, round_id)

    monkeypatch.setattr(engine.ledger, "sale", sale_after_the_rival)
    assert await keeper.recovery.losses.find() == []
    assert sold, "the rival was there"
    assert await keeper.recovery.rebuild_losses() == 0
    await node.work()
    found = await custody(node, sale)
    assert (found["available"], found["unpaid"], found["queued"]) == (3, 2, 0), "what was sold meanwhile stands"


@pytest.mark.parametrize("created_again", [False, True])
async def test_a_round_that_was_lost_while_it_was_being_opened_is_rebuilt(
    engine: Engine, keeper: Keeper, redis_url: str, created_again: bool
) -> None:
    """The ledger has noted its opening, and the keeper died before it gave the gate the rules."""
    round_ = (await engine.ledger.create_sale(draft(units=3), lane=0)).round
    opening = await engine.gate.open_round(round_)
    await engine.ledger.mark_opened(round_.id, round_.epoch, opening.opened_ms)
    assert await keeper.recovery.losses.find() == [], "another keeper may be about to give it its rules"
    await flush(redis_url)
    if created_again:  # by a slow keeper
        await engine.gate.open_round(round_)
    assert await keeper.opener.step() == 0
    await rebuild(keeper)
    view = await engine.gate.inspect(round_.ref)
    assert view is not None
    assert (view.status, view.available) == ("open", 3)


async def test_releases_decided_before_and_after_the_rebuild_count_once(
    node: Node, keeper: Keeper, engine: Engine, redis_url: str
) -> None:
    sale = await node.create(units=4)
    orders = {user: (await node.buy(sale, user)).json()["order_id"] for user in ("ann", "bob")}
    await node.work()
    await node.http.post(f"/v1/orders/{orders['ann']}/cancel", headers=buyer("ann"))  # decided, not relayed
    await flush(redis_url)
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    assert await release_desk.pass_on() == 0, "the gate does not have the round"
    await rebuild(keeper)
    assert await release_desk.pass_on() == 1
    assert (await custody(node, sale))["available"] == 3
    await node.http.post(f"/v1/orders/{orders['bob']}/cancel", headers=buyer("bob"))
    assert await release_desk.pass_on() == 1
    assert (await custody(node, sale))["available"] == 4


async def test_a_gate_that_went_back_in_time_is_noticed(
    node: Node, keeper: Keeper, engine: Engine, redis_url: str
) -> None:
    """An old backup or a lagging replica: it counts fewer admissions than the ledger has orders."""
    sale = await node.create(units=10)
    (found,) = await engine.ledger.sales()
    client: Any = connect(redis_url)
    old = {key: await client.dump(key) for key in (keys.round_(found.round.ref),)}
    for user in ("ann", "bob", "cid"):
        await node.buy(sale, user)
    await node.work()
    for key, value in old.items():
        await client.delete(key, keys.buyers(found.round.ref))
        await client.restore(key, 0, value)
    await client.aclose()
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [found.round.id]
    await rebuild(keeper)
    await node.refresh()
    assert (await custody(node, sale))["available"] == 7
    assert (await node.buy(sale, "ann")).json()["code"] == "limit_reached"


async def test_a_gate_that_went_back_is_noticed_also_when_it_has_made_up_for_it(
    node: Node, keeper: Keeper, engine: Engine, redis_url: str
) -> None:
    """It admits others, and counts as many as before; the ledger has no room for them, and gives them up."""
    sale = await node.create(units=2)
    (found,) = await engine.ledger.sales()
    client: Any = connect(redis_url)
    old = await client.dump(keys.round_(found.round.ref))
    assert [(await node.buy(sale, user)).status_code for user in ("ann", "bob")] == [202, 202]
    await node.work()
    await client.delete(keys.round_(found.round.ref), keys.buyers(found.round.ref))
    await client.restore(keys.round_(found.round.ref), 0, old)
    await client.aclose()
    await node.refresh()
    assert [(await node.buy(sale, user)).status_code for user in ("cid", "dan")] == [202, 202]
    await node.work()
    assert await keeper.recovery.losses.find() == [], "it counts as many as the ledger has"
    failures = DeadLetterDesk(engine.ledger, Alarm(""), (0, 0, 0))
    while await failures.retry_due():
        pass
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [found.round.id]
    await rebuild(keeper)
    await node.refresh()
    assert (await node.buy(sale, "eve")).json()["code"] == "sold_out"
    assert await keeper.recovery.losses.find() == []


async def test_a_gate_that_went_back_behind_a_release_is_noticed(
    node: Node, keeper: Keeper, engine: Engine, redis_url: str
) -> None:
    """It counts as many admissions as before, but would keep a unit for ever that has come back."""
    sale = await node.create(units=1)
    (found,) = await engine.ledger.sales()
    order = (await node.buy(sale, "ann")).json()
    await node.work()
    client: Any = connect(redis_url)
    old = {key: await client.dump(key) for key in (keys.round_(found.round.ref), keys.buyers(found.round.ref))}
    await node.http.post(f"/v1/orders/{order['order_id']}/cancel", headers=buyer("ann"))
    assert await keeper.recovery.losses.find() == [], "decided, and not relayed yet"
    await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()
    assert await keeper.recovery.losses.find() == []
    for key, value in old.items():
        await client.restore(key, 0, value, replace=True)
    await client.aclose()
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [found.round.id]
    await rebuild(keeper)
    await node.refresh()
    assert (await node.buy(sale, "bob")).status_code == 202
    assert await keeper.recovery.losses.find() == []


async def test_a_gate_that_went_back_behind_what_an_operator_changed_is_noticed(
    node: Node, keeper: Keeper, engine: Engine, redis_url: str
) -> None:
    """It would sell a sale that was paused, and nothing of what it counts tells of it."""
    sale = await node.create(units=1)
    (found,) = await engine.ledger.sales()
    client: Any = connect(redis_url)
    key = keys.round_(found.round.ref)
    old = await client.dump(key)
    assert (await node.http.post(f"/v1/sales/{sale['id']}/pause", headers=OPERATOR)).status_code == 200
    assert await keeper.recovery.losses.find() == []
    await client.restore(key, 0, old, replace=True)
    await client.aclose()
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [found.round.id]
    await rebuild(keeper)
    await node.refresh()
    assert (await node.buy(sale, "ann")).json()["code"] == "paused"
    assert await keeper.recovery.losses.find() == []


async def test_a_gate_that_comes_back_while_it_is_being_rebuilt_is_noticed(
    node: Node, keeper: Keeper, engine: Engine, redis_url: str
) -> None:
    """A keeper has begun to rebuild it and died. Then it is there again as it was, in an epoch that is over: it would
    admit people whose orders are void."""
    sale = await node.create(units=1)
    (found,) = await engine.ledger.sales()
    assert await keeper.recovery.losses.find() == [], "so the keeper knows it, in its first epoch"
    await engine.ledger.next_epoch(found.round)
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [found.round.id]
    await rebuild(keeper)
    await node.refresh()
    assert (await node.buy(sale, "ann")).status_code == 202
    await node.work()
    tally = await engine.ledger.tally(found.round.id)
    assert tally is not None
    assert tally.unpaid == 1
    assert await keeper.recovery.losses.find() == []


async def test_a_gate_that_comes_back_open_just_after_the_epoch_was_raised_admits_nobody(
    node: Node, keeper: Keeper, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has not heard of the fence takes over: whoever was admitted there after the rebuild has read what
    it keeps would have an order that is void."""
    sale = await node.create(units=5)
    (found,) = await engine.ledger.sales()
    begin, statuses = engine.gate.begin_rebuild, []

    async def begin_when_somebody_has_pressed(round_: Round, token: str) -> bool:
        statuses.append((await node.buy(sale, "ann")).status_code)
        return await begin(round_, token)

    assert await engine.ledger.next_epoch(found.round) is not None, "and the gate has not heard of it"
    monkeypatch.setattr(engine.gate, "begin_rebuild", begin_when_somebody_has_pressed)
    await rebuild(keeper)
    assert statuses == [503]
    await node.refresh()
    assert (await node.buy(sale, "ann")).status_code == 202
    await node.work()
    tally = await engine.ledger.tally(found.round.id)
    assert tally is not None
    assert tally.unpaid == 1


async def test_entries_of_the_old_epoch_do_no_harm(node: Node, keeper: Keeper, engine: Engine, redis_url: str) -> None:
    """A worker has them in hand while the gate is rebuilt: they are void, and their buyers are told."""
    sale = await node.create(units=2)
    order_id = (await node.buy(sale, "ann")).json()["order_id"]
    in_hand = await engine.transport.read(10, 0)
    await flush(redis_url)
    await rebuild(keeper)
    await node.refresh()
    assert [(await node.buy(sale, user)).status_code for user in ("bob", "cid", "dan")] == [202, 202, 409]
    await node.worker.record(in_hand)
    await node.work()
    failures = DeadLetterDesk(engine.ledger, Alarm(""), (0, 0, 0))
    while await failures.retry_due():
        pass
    assert (await node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))).json()["state"] == "failed"
    await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()
    view = await engine.gate.inspect((await engine.ledger.sales())[0].round.ref)
    assert view is not None
    assert (view.available, view.admitted) == (0, 2), "nothing was given back that was not taken"
    found = await custody(node, sale)
    assert (found["unpaid"], found["queued"], found["returning"]) == (2, 0, 0), "where every unit is can be told"
    assert await keeper.recovery.losses.find() == [], "and no second rebuild"


async def test_a_slow_rebuild_writes_nothing_to_a_round_that_another_has_opened(
    node: Node, keeper: Keeper, engine: Engine, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One keeper has looked for orders that no worker has written. Then a worker sets one aside, another keeper finds
    that, and is about to write it just when the first has filled the gate, without it, and opens it."""
    sale = await node.create(units=2)
    assert (await node.buy(sale, "ann")).status_code == 202
    in_hand = await engine.transport.read(10, 0)
    await flush(redis_url)
    (found,) = await engine.ledger.sales()
    raised = await engine.ledger.next_epoch(found.round)
    assert raised is not None
    first, second = [use_cases(engine).rebuilder() for _ in range(2)]
    found_one, first_is_done = asyncio.Event(), asyncio.Event()
    begin, write = engine.gate.begin_rebuild, second._unwritten._write

    async def slow_write(*what: Any, **how: Any) -> Any:
        found_one.set()
        await first_is_done.wait()
        return await write(*what, **how)

    async def begin_when_the_second_is_about_to_write(round_: Round, token: str) -> bool:
        monkeypatch.setattr(engine.gate, "begin_rebuild", begin)
        await node.worker.record(in_hand)
        (begun,) = await engine.ledger.sales()
        slow.append(asyncio.ensure_future(second.step(begun.round)))
        await found_one.wait()
        return await begin(round_, token)

    slow: list[asyncio.Future[bool]] = []
    monkeypatch.setattr(second._unwritten, "_write", slow_write)
    monkeypatch.setattr(engine.gate, "begin_rebuild", begin_when_the_second_is_about_to_write)
    async with asyncio.timeout(PATIENCE_S):
        await first.step(raised)
        first_is_done.set()
        await asyncio.gather(*slow)
    assert slow, "both were at it"
    view, tally = await engine.gate.inspect(raised.ref), await engine.ledger.tally(raised.id)
    assert view is not None
    assert tally is not None
    assert (view.status, view.admitted) == ("open", tally.recorded), "whatever the ledger has, the gate has"
    assert await keeper.recovery.losses.find() == []


async def test_a_rebuild_that_was_begun_again_makes_the_first_void(node: Node, engine: Engine, redis_url: str) -> None:
    sale = await node.create(units=3)
    await node.buy(sale, "ann")
    await node.work()
    await flush(redis_url)
    (found,) = await engine.ledger.sales()
    raised = await engine.ledger.next_epoch(found.round)
    assert raised is not None
    assert await engine.ledger.next_epoch(found.round) is None
    gate, ref = engine.gate, raised.ref
    holdings = await engine.ledger.holdings(raised.id, "", 10)
    assert await gate.begin_rebuild(raised, "one")
    assert await gate.begin_rebuild(raised, "two")
    assert not await gate.fill(ref, "one", holdings)
    assert await gate.finish_rebuild(ref, "one", 1, 0) is None
    assert await gate.fill(ref, "two", holdings)
    assert (await node.buy(sale, "bob")).json()["code"] == "not_ready"
    assert await gate.finish_rebuild(ref, "two", 1, 0) is not None


async def test_nothing_opens_a_fenced_round_but_its_rebuild(node: Node, engine: Engine, keeper: Keeper) -> None:
    sale = await node.create(units=3)
    (found,) = await engine.ledger.sales()
    await engine.gate.fence(found.round)
    assert (await node.buy(sale, "ann")).json()["code"] == "not_ready"
    changed = await node.http.patch(f"/v1/sales/{sale['id']}", json={"add_units": 1}, headers=OPERATOR)
    assert changed.status_code == 503, "stored, not in force"
    assert (await node.buy(sale, "ann")).json()["code"] == "not_ready"
    await rebuild(keeper)
    await node.refresh()
    assert (await node.buy(sale, "ann")).status_code == 202
    assert (await custody(node, sale))["available"] == 3


@pytest.mark.parametrize("left", ["epoch raised", "fenced"])
async def test_a_round_that_is_over_is_not_left_half_rebuilt(
    node: Node, engine: Engine, keeper: Keeper, left: str
) -> None:
    """The keeper that rebuilt it died. No other watches the round any more, and no release waits for it."""
    sale = await node.create(units=3)
    assert (await node.buy(sale, "ann")).status_code == 202
    await node.work()
    assert (await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)).status_code == 200
    (found,) = await engine.ledger.sales()
    await engine.gate.fence(found.round)
    if left == "epoch raised":
        assert await engine.ledger.next_epoch(found.round) is not None
    assert await keeper.recovery.losses.find() == []
    assert await keeper.recovery.rebuild_what_is_over() == 1
    view = await engine.gate.inspect(found.round.ref)
    assert view is not None
    assert (view.status, view.admitted, view.available) == ("closed", 1, 2)
    assert view.epoch == (3 if left == "epoch raised" else 2), "a rebuild has an epoch of its own"
    assert await keeper.recovery.rebuild_what_is_over() == 0
