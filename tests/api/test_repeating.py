"""Repeating sales over HTTP, on a real gate: one round ends, the next begins, nothing passes from one to the other."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from seckill.afterlife import Afterlife
from seckill.domain import AFTERGLOW_MS, Answer, Sale
from seckill.gates.redis import connect
from seckill.settings import Settings
from seckill.web.schemas import rfc3339
from seckill.wiring import Engine
from tests.api.conftest import Node, buyer
from tests.api.repeating import (
    DAY_MS,
    add,
    announce,
    custody,
    end_at,
    ended_and_next,
    look,
    make_keeper,
    now_ms,
    shown,
    stop_clock,
)
from tests.ledgers.making import HOUR_MS


@pytest.fixture
def settings(settings: Settings, ledger_url: str) -> Settings:
    """On each database in turn."""
    return replace(settings, database_url=ledger_url)


async def test_five_hundred_in_flight_while_one_round_follows_the_other(node: Node) -> None:
    """F67. A crowd presses without pause. All of the first round is queued when it ends; no worker has written any."""
    started_ms = await now_ms(node)
    first = await announce(node, started_ms - HOUR_MS, started_ms + HOUR_MS, units=500, pay_within_s=1)
    sale, outcomes, numbers = shown(node, first), Counter[str](), iter(range(100_000))
    rounds: Counter[str] = Counter()

    async def press() -> None:
        response = await node.buy(sale, f"buyer-{next(numbers)}")
        code = "accepted" if response.status_code == 202 else response.json()["code"]
        outcomes[code] += 1
        if code == "accepted":
            rounds[response.json()["round"]] += 1

    async with asyncio.timeout(120):
        while rounds[str(first.round.id)] < 500:
            await asyncio.gather(*(press() for _ in range(50)))
        boundary_ms = await now_ms(node) + 1000
        first = await end_at(node, first, boundary_ms)
        second = await add(node, first, boundary_ms, boundary_ms + HOUR_MS)
        while rounds[str(second.round.id)] < 500:
            await node.refresh()
            await asyncio.gather(*(press() for _ in range(20)))
    assert set(outcomes) <= {"accepted", "sold_out"}, "there is no moment between the two"
    assert rounds == {str(first.round.id): 500, str(second.round.id): 500}
    for one in (first, second):
        assert (await custody(node, one, one.round.id))["queued"] == 500
    await node.work()
    ledger = node.engine.ledger
    for one in (first, second):
        tally = await ledger.tally(one.round.id)
        assert tally is not None
        assert (tally.recorded, tally.unpaid, tally.sold) == (500, 500, 500)
        view = await node.engine.gate.inspect(one.round.ref)
        assert view is not None
        assert (view.available, view.admitted, view.released) == (0, 500, 0)
    await check_admission_times(node, first, second, boundary_ms)
    await check_expiry_into_the_own_round(node, first, second)


async def check_admission_times(node: Node, first: Sale, second: Sale, boundary_ms: int) -> None:
    """By the gate's clock, everybody is in the round that was on."""
    for one, inside in ((first, range(boundary_ms)), (second, range(boundary_ms, boundary_ms + HOUR_MS))):
        held = await node.engine.ledger.holdings(one.round.id, "", 1000)
        numbers = [holding.number for mine in held.values() for holding in mine]
        orders = await node.engine.ledger.orders(numbers)
        assert len(orders) == 500
        assert all(order.created_ms in inside for order in orders)


async def check_expiry_into_the_own_round(node: Node, first: Sale, second: Sale) -> None:
    """Some of the second are paid, everything else expires: each unit comes back to the round it was taken from."""
    afterlife = Afterlife(node.engine.gate, node.engine.transport, node.engine.ledger)
    async with asyncio.timeout(60):
        expired = 0
        while expired < 1000:
            expired += await afterlife.expire()
            await asyncio.sleep(0.05)
    await afterlife.relay()
    for one in (first, second):
        found = await custody(node, one, one.round.id)
        assert (found["available"], found["unpaid"], found["returning"]) == (500, 0, 0)
    await node.refresh()
    late = await node.buy(shown(node, first), "somebody-new")
    assert (late.status_code, late.json()["round"]) == (202, str(second.round.id)), "the old round sells nothing"
    assert (await custody(node, first, first.round.id))["available"] == 500


async def test_the_same_buyer_in_the_next_round(node: Node) -> None:
    """F66, F68: the limit is of the round, and the list shows each order's round."""
    first, second, won = await ended_and_next(node, 0, units=1)
    bought = await node.buy(shown(node, first), "ann", key="another")
    assert (bought.status_code, bought.json()["round"]) == (202, str(second.round.id))
    assert (await node.buy(shown(node, first), "ann", key="a third")).json()["code"] == "limit_reached"
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    expected = [(bought.json()["order_id"], str(second.round.id)), (won["order_id"], str(first.round.id))]
    assert sorted((order["order_id"], order["round"]) for order in listed) == sorted(expected)
    await node.work()
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    assert sorted((order["order_id"], order["round"]) for order in listed) == sorted(expected)


async def test_a_winner_who_repeats_after_the_switch_finds_the_own_order(node: Node) -> None:
    """The answer was lost at the last moment: the same key must not buy in the next round."""
    _, second, won = await ended_and_next(node, 0, limit_per_buyer=2)
    again = await node.buy(shown(node, second), "ann", key="k")
    assert (again.status_code, again.json()) == (202, won)
    other = await node.buy(shown(node, second), "ann", key="k", quantity=2)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


async def test_a_round_that_is_just_over_stays_for_a_while_and_then_the_next_is_shown(node: Node) -> None:
    first, second, won = await ended_and_next(node, DAY_MS)
    stop_clock(node, first.round.ends_ms + AFTERGLOW_MS - 1)
    found = await look(node, first)
    assert (found["state"], found["round"]) == ("ended", str(first.round.id))
    assert (await node.buy(shown(node, first), "ann", key="k")).json() == won
    assert (await node.buy(shown(node, first), "bob", key="b")).json()["code"] == "ended"
    stop_clock(node, first.round.ends_ms + AFTERGLOW_MS)
    found = await look(node, first)
    assert (found["state"], found["round"]) == ("scheduled", str(second.round.id))
    assert found["begins_at"] == rfc3339(second.round.begins_ms)
    stop_clock(node, second.round.begins_ms - 1)
    assert (await look(node, first))["state"] == "scheduled"
    stop_clock(node, second.round.begins_ms)
    assert (await look(node, first))["state"] == "open"


async def test_a_node_that_is_ahead_of_the_gate_sends_nobody_away(node: Node) -> None:
    """Its idea of the time is off by less than a second; the gate's clock decides."""
    started_ms = await now_ms(node)
    first = await announce(node, started_ms - HOUR_MS, started_ms + HOUR_MS)
    second = await add(node, first, first.round.ends_ms, first.round.ends_ms + HOUR_MS)
    stop_clock(node, second.round.begins_ms + 500)
    assert (await look(node, first))["round"] == str(second.round.id)
    early = await node.buy(shown(node, first), "ann")
    assert (early.status_code, early.json()["round"]) == (202, str(first.round.id)), "for the gate that one is on"


async def test_a_node_that_is_behind_the_gate_sends_nobody_away(node: Node) -> None:
    first, second, _ = await ended_and_next(node, 0)
    stop_clock(node, first.round.ends_ms - 500)
    assert (await look(node, first))["round"] == str(first.round.id)
    for user in ("bob", "ann"):  # who has what the limit allows in the first
        late = await node.buy(shown(node, first), user)
        assert (late.status_code, late.json()["round"]) == (202, str(second.round.id))


async def test_at_the_limit_just_before_the_next_round_begins(node: Node) -> None:
    started_ms = await now_ms(node)
    first = await announce(node, started_ms - HOUR_MS, started_ms + HOUR_MS)
    second = await add(node, first, first.round.ends_ms, first.round.ends_ms + HOUR_MS)
    assert (await node.buy(shown(node, first), "ann")).status_code == 202
    stop_clock(node, second.round.begins_ms - 1)
    refused = await node.buy(shown(node, first), "ann")
    assert (refused.status_code, refused.json()["code"]) == (409, "limit_reached")


class Press(asyncio.Future[Answer]):
    sale: Sale

    def waits_for(self, sale: Sale) -> None:
        self.sale = sale


async def test_the_short_way_is_for_claims_that_one_round_decides(node: Node) -> None:
    """The protocol's own answers do not know of neighbours; whatever concerns two rounds takes the long way."""
    first, _, _ = await ended_and_next(node, 0)
    sale_id = shown(node, first)["id"]
    headers = {name.lower().encode(): value.encode() for name, value in buyer("ann", "k").items()}
    press = Press()
    assert node.api.claims.begin(sale_id, headers, b"{}", press) is False, "the key may be of the round before"
    stop_clock(node, first.round.ends_ms - 500)
    begun = node.api.claims.begin(sale_id, headers | {b"idempotency-key": b"new"}, b'{"quantity": 1}', press)
    assert begun is True
    answer = await press
    assert press.sale.round.id == first.round.id
    assert node.api.claims.finish(press.sale, answer, took_s=0.0) is None


async def test_yesterdays_round_is_rebuilt_when_its_releases_wait(node: Node, engine: Engine, redis_url: str) -> None:
    """It is over, so nobody watches it; but an order of it expires after the gate has lost everything."""
    first, second, _ = await ended_and_next(node, DAY_MS, ago_ms=10_000, units=2, pay_within_s=1)
    await node.work()
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    keeper = make_keeper(engine)
    assert await keeper.look_for_losses() == []
    afterlife = Afterlife(engine.gate, engine.transport, engine.ledger)
    async with asyncio.timeout(60):
        while not await afterlife.expire():
            await asyncio.sleep(0.05)
    assert await afterlife.relay() == 0, "there is nothing to give it back to"
    assert [round_.id for round_ in await keeper.look_for_losses()] == [first.round.id]
    assert await keeper.rebuild_losses() == 1
    assert await afterlife.relay() == 1
    view = await engine.gate.inspect(first.round.ref)
    assert view is not None
    assert (view.available, view.epoch) == (2, 2)
    assert await engine.gate.inspect(second.round.ref) is None, "that one is rebuilt when its time comes near"
