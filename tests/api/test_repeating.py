"""Repeating sales over HTTP, on a real gate: one round ends, the next begins, nothing passes from one to the other."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.domain.admission import Answer
from seckill.domain.current_round import AFTERGLOW_MS
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Sale
from seckill.engine.claims.admission_desk import ClaimInProgress
from seckill.engine.orders.releases import ReleaseDesk
from seckill.settings import Settings
from seckill.web.schemas import rfc3339
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
from tests.backends.sql.making import HOUR_MS
from tests.patience import PATIENCE_S


@pytest.fixture
def settings(settings: Settings, ledger_url: str) -> Settings:
    """Settings for each database in turn."""
    return replace(settings, database_url=ledger_url)


async def test_five_hundred_in_flight_while_one_round_follows_the_other(node: Node) -> None:
    """A crowd presses without pause. When the first round ends, all its orders are queued and none is written (F67)."""
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

    async with asyncio.timeout(PATIENCE_S):
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
    """Checks that all orders are in the round that was on by the gate's clock."""
    for one, inside in ((first, range(boundary_ms)), (second, range(boundary_ms, boundary_ms + HOUR_MS))):
        held = await node.engine.ledger.holdings(one.round.id, "", 1000)
        numbers = [holding.number for mine in held.values() for holding in mine]
        orders = await node.engine.ledger.orders(numbers)
        assert len(orders) == 500
        assert all(order.created_ms in inside for order in orders)


async def check_expiry_into_the_own_round(node: Node, first: Sale, second: Sale) -> None:
    """Some of the second are paid, everything else expires: each unit comes back to the round it was taken from."""
    release_desk = ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger)
    async with asyncio.timeout(PATIENCE_S):
        expired = 0
        while expired < 1000:
            expired += await release_desk.expire()
            await asyncio.sleep(0.05)
    await release_desk.pass_on()
    for one in (first, second):
        found = await custody(node, one, one.round.id)
        assert (found["available"], found["unpaid"], found["returning"]) == (500, 0, 0)
    await node.refresh()
    late = await node.buy(shown(node, first), "somebody-new")
    assert (late.status_code, late.json()["round"]) == (202, str(second.round.id)), "the old round sells nothing"
    assert (await custody(node, first, first.round.id))["available"] == 500


async def test_the_same_buyer_in_the_next_round(node: Node) -> None:
    """The limit is of the round, and the list shows each order's round (F66, F68)."""
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


async def test_a_winner_who_repeats_after_the_switch_finds_their_order(node: Node) -> None:
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


class Press(ClaimInProgress):
    def __init__(self) -> None:
        self.heard: asyncio.Future[tuple[Outcome, int]] = asyncio.get_running_loop().create_future()

    def done(self) -> bool:
        return False

    def decided(self, sale: Sale, answer: Answer) -> None:
        self.heard.set_result((answer.outcome, sale.round.id))


async def test_a_claim_from_its_bytes_asks_the_same_rounds_in_the_same_order(node: Node) -> None:
    """Those that the framework would ask: the round before for a key that it may know, the next for who comes late."""
    first, second, won = await ended_and_next(node, 0)
    sale_id = shown(node, first)["id"]
    headers = {name.lower().encode(): value.encode() for name, value in buyer("ann", "k").items()}

    async def begin(key: bytes) -> tuple[Outcome, int]:
        press = Press()
        assert node.api.claims.begin(sale_id, "", headers | {b"idempotency-key": key}, b"{}", press) is True
        async with asyncio.timeout(PATIENCE_S):
            return await press.heard

    assert await begin(b"k") == (Outcome.REPEATED, first.round.id)
    assert await begin(b"new") == (Outcome.ADMITTED, second.round.id), "the round before is over"
    stop_clock(node, first.round.ends_ms - 500)
    assert await begin(b"new") == (Outcome.REPEATED, second.round.id), "at the limit in the first, which is over"
    assert await begin(b"k") == (Outcome.REPEATED, first.round.id)
    assert won["round"] == str(first.round.id)


async def test_yesterdays_round_is_rebuilt_when_its_releases_wait(node: Node, engine: Engine, redis_url: str) -> None:
    """The round is over, so no node watches it, but one of its orders expires after the gate has lost everything."""
    first, second, _ = await ended_and_next(node, DAY_MS, ago_ms=10_000, units=2, pay_within_s=1)
    await node.work()
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    keeper = make_keeper(engine)
    assert await keeper.recovery.losses.find() == []
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    async with asyncio.timeout(PATIENCE_S):
        while not await release_desk.expire():
            await asyncio.sleep(0.05)
    assert await release_desk.pass_on() == 0, "there is nothing to give it back to"
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [first.round.id]
    assert await keeper.recovery.rebuild_losses() == 1
    assert await release_desk.pass_on() == 1
    view = await engine.gate.inspect(first.round.ref)
    assert view is not None
    assert (view.available, view.epoch) == (2, 2)
    assert await engine.gate.inspect(second.round.ref) is None, "that one is rebuilt when its time comes near"
