"""Rounds with items: stock of each, one limit over all, whatever is given back, moved, lost or rebuilt."""

from dataclasses import replace
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim, Holding
from seckill.domain.item import ItemUnits
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round
from seckill.engine.rounds.shared_gate import SharedGate
from seckill.ports.gate import Gate, GateView, Release, Released
from seckill.ports.queue_entry import read_entry
from tests.backends.gate.conftest import OpenedRound, give_back, held_by, open_round, outcomes, rebuild
from tests.fixtures.backends import Backend, RedisBackend
from tests.making import make_round

SMALL, LARGE = 7, 17
ADMITTED, SOLD_OUT, NOT_READY = Outcome.ADMITTED, Outcome.SOLD_OUT, Outcome.NOT_READY


def with_items(small: int = 1, large: int = 3, **changes: Any) -> Round:
    items = (ItemUnits(SMALL, small), ItemUnits(LARGE, large))
    return make_round(**({"total": small + large, "items": items, "limit_per_buyer": 2} | changes))


async def stocks(gate: Gate, round_: Round) -> dict[int, tuple[int, int, int, int]]:
    view = await gate.inspect(round_.ref)
    assert view is not None
    return {item: _counts(view, item) for item in view.items}


def _counts(view: GateView, item: int) -> tuple[int, int, int, int]:
    stock = view.items[item]
    return stock.total, stock.available, stock.admitted, stock.released


async def test_one_item_sells_out_and_the_other_goes_on(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(with_items())
    claims = [Claim("ann", 1, "a", item=SMALL), Claim("bob", 1, item=SMALL), Claim("bob", 1, item=LARGE)]
    reply = await gate.admit(round_.ref, claims)
    assert [answer.outcome for answer in reply.answers] == [ADMITTED, SOLD_OUT, ADMITTED]
    assert reply.available == 2
    assert reply.gone == {SMALL}
    assert [held.item for answer in reply.answers for held in answer.holdings] == [SMALL, LARGE]
    assert await stocks(gate, round_) == {SMALL: (1, 0, 1, 0), LARGE: (3, 2, 1, 0)}
    again = [Claim("ann", 1, "a", item=SMALL), Claim("ann", 1, "a", item=LARGE)]
    assert await outcomes(gate, round_.ref, again) == [Outcome.REPEATED, Outcome.KEY_REUSED]


async def test_the_limit_counts_over_all_items(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(with_items(5, 5))
    both = [Claim("ann", 1, item=SMALL), Claim("ann", 1, item=LARGE), Claim("ann", 1, item=LARGE)]
    assert await outcomes(gate, round_.ref, both) == [ADMITTED, ADMITTED, Outcome.LIMIT_REACHED]


async def test_too_few_are_left_for_a_claim_that_wants_more(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(with_items(1, 9))
    reply = await gate.admit(round_.ref, [Claim("ann", 2, item=SMALL)])
    assert [answer.outcome for answer in reply.answers] == [SOLD_OUT], "no unit of another item stands in"
    assert not reply.gone, "one is left for a buyer who wants one"


async def test_a_claim_names_an_item_of_its_round(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(with_items())
    claims = [Claim("ann", 1), Claim("ann", 1, item=99), Claim("ann", 1, item=1)]
    assert await outcomes(gate, round_.ref, claims) == [Outcome.INVALID] * 3
    plain = await opened(make_round(id=2))
    answers = await outcomes(gate, plain.ref, [Claim("ann", 1, item=SMALL), Claim("ann", 1)])
    assert answers == [NOT_READY, ADMITTED], "who names one knows the sale: then this round has lost its items"


async def test_a_unit_comes_back_to_its_item(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(with_items())
    await gate.admit(round_.ref, [Claim("ann", 1, "123", item=SMALL), Claim("bob", 2, item=LARGE)])
    releases = [
        Release((await held_by(gate, round_.ref, "ann"))[0].number, "ann", 1, "123"),
        Release((await held_by(gate, round_.ref, "bob"))[0].number, "bob", 1),
    ]
    assert await give_back(gate, round_.ref, releases) == [Released.RELEASED] * 2
    assert await give_back(gate, round_.ref, releases) == [Released.ALREADY] * 2
    assert await stocks(gate, round_) == {SMALL: (1, 1, 1, 1), LARGE: (3, 3, 2, 2)}
    again = [Claim("ann", 1, "123", item=SMALL), Claim("ann", 1, "123", item=LARGE), Claim("cid", 1, item=SMALL)]
    assert await outcomes(gate, round_.ref, again) == [Outcome.REPEATED, Outcome.KEY_REUSED, ADMITTED]


async def test_units_are_added_to_an_item(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(with_items())
    await gate.admit(round_.ref, [Claim("ann", 1, item=SMALL)])
    more = replace(round_, revision=2, total=6, items=(ItemUnits(SMALL, 3), ItemUnits(LARGE, 3)))
    await gate.update_round(more)
    await gate.update_round(more)
    assert await stocks(gate, round_) == {SMALL: (3, 2, 1, 0), LARGE: (3, 3, 0, 0)}


def held(counter: int, item: int, *, live: bool = True, lane: int = 3) -> Holding:
    return Holding(OrderNumber(1000, lane, counter), 1, 1, "k", live, item=item)


async def test_a_rebuilt_round_has_each_items_units(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(with_items(3, 3))
    await gate.fence(round_)
    orders = {"ann": [held(1, SMALL), held(2, LARGE)], "bob": [held(3, SMALL, live=False)]}
    round_ = await rebuild(gate, replace(round_, epoch=2), orders)
    assert await stocks(gate, round_) == {SMALL: (3, 2, 2, 1), LARGE: (3, 2, 1, 0)}
    claims = [Claim("bob", 1, "k", item=SMALL), Claim("ann", 1, item=SMALL), Claim("cid", 2, item=SMALL)]
    assert await outcomes(gate, round_.ref, claims) == [Outcome.REPEATED, Outcome.LIMIT_REACHED, ADMITTED]


async def test_over_several_lanes_each_item_sells_to_the_last_unit(backend: Backend) -> None:
    """They do so after a rebuild, too, which deals the units of each item again."""
    gate = SharedGate(backend.gate())
    round_ = await open_round(gate, with_items(5, 7, lanes=3, limit_per_buyer=1))
    sold = await _sell_out(gate, round_)
    assert sold == {SMALL: 5, LARGE: 7}
    assert await stocks(gate, round_) == {SMALL: (5, 0, 5, 0), LARGE: (7, 0, 7, 0)}
    await gate.fence(round_)
    orders = {f"b{i}": [held(i, SMALL, lane=round_.ref.lane_of(f"b{i}"))] for i in range(3)}
    round_ = await rebuild(gate, replace(round_, epoch=2), orders)
    assert await stocks(gate, round_) == {SMALL: (5, 2, 3, 0), LARGE: (7, 7, 0, 0)}
    assert await _sell_out(gate, round_) == {SMALL: 2, LARGE: 7}


async def _sell_out(gate: SharedGate, round_: Round) -> dict[int, int]:
    sold = {SMALL: 0, LARGE: 0}
    for i in range(100, 140):
        item = (SMALL, LARGE)[i % 2]
        reply = await gate.admit(round_.ref, [Claim(f"x{i}", 1, item=item)])
        sold[item] += reply.answers[0].outcome is ADMITTED
        assert reply.answers[0].outcome is ADMITTED or reply.gone == {item}
    return sold


@pytest.mark.parametrize("lost", ["available:7", "admitted:17", "total:7", "dealt:17", "released:7", "items"])
async def test_a_lost_count_of_an_item_is_noticed(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, lost: str
) -> None:
    for place, left in enumerate([None, "nan", "x", "-1"]):
        round_ = await open_round(redis_gate, with_items(3, 3, id=1 + place))
        await redis_gate.admit(round_.ref, [Claim("ann", 1, item=SMALL)])
        key = keys.round_(round_.ref)
        await (client.hdel(key, lost) if left is None else client.hset(key, lost, left))
        _, (pulse,) = await redis_gate.pulses([round_.ref])
        assert pulse is None or pulse.items.keys() != {SMALL, LARGE}, "so the keeper rebuilds it"
        if lost == "items" or lost.startswith(("available", "admitted")):
            before = await redis_backend.contents()
            assert await outcomes(redis_gate, round_.ref, [Claim("bob", 1, item=SMALL)]) == [NOT_READY]
            assert await redis_backend.contents() == before, "nothing was written"


async def test_an_order_without_its_item_gives_nothing_back(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    """A unit given back to no item, or to one that the round does not have, would be missing from all of them
    together."""
    round_ = await open_round(redis_gate, with_items(3, 3))
    await redis_gate.admit(round_.ref, [Claim("ann", 1, "k", item=SMALL)])
    (order,) = await held_by(redis_gate, round_.ref, "ann")
    number = f"{order.number.seconds}:{order.number.counter}"
    for record in (f"{number}:1:1:k:1", f"{number}:1:1:99:k:1"):
        await client.hset(keys.buyers(round_.ref), "ann", record)
        await client.hset(keys.round_(round_.ref), "status", "open")
        before: Any = await redis_backend.contents()
        assert await give_back(redis_gate, round_.ref, [Release(order.number, "ann", 1, "k")]) == [Released.NOT_YET]
        key = keys.round_(round_.ref).encode()
        fenced = before[key] | {b"status": b"preparing", b"opened_ms": b"0"}
        assert await redis_backend.contents() == before | {key: fenced}


async def test_the_entry_names_the_item_and_one_without_items_does_not(redis_gate: RedisGate, client: Any) -> None:
    round_ = await open_round(redis_gate, with_items())
    plain = await open_round(redis_gate, make_round(id=2))
    await redis_gate.admit(round_.ref, [Claim("ann", 1, "k", '{"a":"}"}', item=LARGE)])
    await redis_gate.admit(plain.ref, [Claim("bob", 1, "k")])
    (_, first), (_, second) = await client.xrange(keys.orders(3))
    entry = read_entry(3, "1-1", first[b"order"]).admission
    assert entry is not None
    assert (entry.item, entry.metadata) == (LARGE, '{"a":"}"}')
    assert b"item" not in second[b"order"]
    assert await client.hget(keys.buyers(plain.ref), "bob") == _as_before(second[b"order"])


def _as_before(entry: bytes) -> bytes:
    """Returns the record of a buyer as it was written before there were items."""
    order = read_entry(3, "1-1", entry).admission
    assert order is not None
    return f"{order.number.seconds}:{order.number.counter}:1:1:k:1".encode()
