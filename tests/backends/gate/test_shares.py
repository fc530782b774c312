"""A round over several lanes: it decides as one of one lane would, and units find those who want them."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from seckill.backends.redis import keys
from seckill.domain.admission import Claim
from seckill.domain.lane_shares import deal
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundRef
from seckill.engine.rounds import shared_gate
from seckill.engine.rounds.shared_gate import SharedGate
from seckill.lab.servers.proxy import Trouble
from seckill.ports.gate import Found, GateView, Opening, Release, Released, Update
from seckill.ports.share_gate import ShareGate
from tests.backends.gate.conftest import open_round, outcomes, rebuild
from tests.fixtures.backends import Backend, RedisBackend
from tests.making import make_round

LANES = 4


@pytest.fixture
def shares(backend: Backend) -> ShareGate:
    return backend.gate()


@pytest.fixture
def gate(shares: ShareGate) -> SharedGate:
    return SharedGate(shares)


class Death(BaseException):
    """A process dies."""


def lane_ref(round_: Round, place: int) -> RoundRef:
    return RoundRef(id=round_.id, lane=round_.lane + place)


def of_lane(round_: Round, place: int, count: int, prefix: str = "u") -> list[str]:
    """Returns that many buyers of the share."""
    users = (f"{prefix}{i}" for i in itertools.count())
    return list(itertools.islice((user for user in users if round_.ref.lane_of(user) == round_.lane + place), count))


async def views(gate: ShareGate, round_: Round) -> list[GateView]:
    found = [await gate.inspect(lane_ref(round_, place)) for place in range(round_.lanes)]
    assert all(view is not None for view in found)
    return [view for view in found if view is not None]


@pytest.mark.parametrize("lost", ["sent", "got"])
async def test_a_share_that_has_lost_count_of_what_it_sent_or_got_moves_nothing(
    redis_backend: RedisBackend, lost: str
) -> None:
    """It would send again what it has sent, and get again what it has got."""
    shares: ShareGate = redis_backend.gate()
    client: Any = redis_backend.client
    gate = SharedGate(shares)
    round_ = await open_round(gate, make_round(total=8, lanes=2))
    donor, taker = lane_ref(round_, 0), lane_ref(round_, 1)
    assert await shares.give(donor, 1, taker.lane, 0, 2) == 2
    assert await shares.take(taker, 1, donor.lane, 2) == 2
    _, (pulse,) = await gate.pulses([round_.ref])
    assert pulse is not None
    share, field = (donor, f"sent:{taker.lane}") if lost == "sent" else (taker, f"got:{donor.lane}")
    await client.hdel(keys.round_(share), field)
    if lost == "sent":
        assert await shares.give(donor, 1, taker.lane, 0, 2) is None
    else:
        assert await shares.take(taker, 1, donor.lane, 2) is None
    view = await shares.inspect(share)
    assert view is not None
    assert not view.whole
    _, (pulse,) = await gate.pulses([round_.ref])
    assert pulse is None, "so it is rebuilt"


async def check_units(gate: ShareGate, round_: Round) -> None:
    """Every unit is in one share, sold or not, or on its way between two."""
    all_ = await views(gate, round_)
    sent = sum(sum(view.sent.values()) for view in all_)
    got = sum(sum(view.got.values()) for view in all_)
    assert sum(view.dealt for view in all_) == round_.total
    assert sum(view.total for view in all_) + sent - got == round_.total
    for view in all_:
        assert view.total == view.dealt - sum(view.sent.values()) + sum(view.got.values())
        assert view.available == view.total - view.admitted + view.released
        assert view.available >= 0


async def test_what_is_sent_is_got_once_however_often_and_in_whatever_order(
    shares: ShareGate, gate: SharedGate, backend: Backend
) -> None:
    round_ = await open_round(gate, make_round(total=40, lanes=LANES))
    here, there = lane_ref(round_, 0), lane_ref(round_, 1)
    assert await shares.give(here, 1, there.lane, 0, 3) == 3
    assert await shares.give(here, 1, there.lane, 0, 3) == 3, "a repeated call gives nothing"
    assert await shares.give(here, 1, there.lane, 3, 2) == 5
    await check_units(shares, round_)
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.available, view.total) == (40, 40), "what is on its way is still on sale"
    assert await shares.take(there, 1, here.lane, 5) == 5
    before = await backend.contents()
    assert await shares.take(there, 1, here.lane, 3) == 0, "late: all of it has come with the later call"
    assert await shares.take(there, 1, here.lane, 5) == 0
    assert await backend.contents() == before
    assert [view.available for view in await views(shares, round_)] == [5, 15, 10, 10]
    assert await shares.give(here, 1, there.lane, 5, 100) == 10, "what it has, and no more"
    assert await shares.give(here, 1, there.lane, 10, 1) == 10
    await check_units(shares, round_)


async def test_nothing_is_sent_or_got_in_another_epoch_or_while_nobody_is_admitted(
    shares: ShareGate, gate: SharedGate, backend: Backend
) -> None:
    round_ = await open_round(gate, make_round(total=40, lanes=LANES))
    here, there = lane_ref(round_, 0), lane_ref(round_, 1)
    assert await shares.give(here, 1, there.lane, 0, 3) == 3
    before = await backend.contents()
    assert await shares.give(here, 2, there.lane, 3, 1) is None
    assert await shares.take(there, 2, here.lane, 3) is None
    missing = RoundRef(id=99, lane=here.lane)
    assert await shares.give(missing, 1, there.lane, 0, 1) is None
    assert await shares.take(missing, 1, there.lane, 1) is None
    assert await backend.contents() == before
    await gate.fence(round_)
    assert await shares.give(here, 1, there.lane, 3, 1) is None
    assert await shares.take(there, 1, here.lane, 3) is None
    await rebuild(gate, replace(round_, epoch=2), {})
    assert await shares.take(there, 1, here.lane, 3) is None, "sent in an epoch that is over"
    assert [view.available for view in await views(shares, round_)] == [10] * LANES


async def test_opening_is_one_step_for_all_shares_and_can_be_repeated(
    shares: ShareGate, gate: SharedGate, backend: Backend
) -> None:
    round_ = make_round(total=10, lanes=LANES)
    opening = await gate.open_round(round_)
    assert opening.found is Found.NOTHING
    assert await gate.open_round(round_) == Opening(Found.ROUND, opening.opened_ms)
    assert [view.total for view in await views(shares, round_)] == deal(10, LANES) == [3, 3, 2, 2]
    round_ = replace(round_, opened_ms=opening.opened_ms)
    assert await shares.update_round(replace(round_, lanes=1, total=3)) is Update.APPLIED, "then the keeper died"
    assert (await gate.pulses([round_.ref]))[1] == [None]
    (user,) = of_lane(round_, 1, 1)
    assert await outcomes(gate, round_.ref, [Claim(user, 1)]) == [Outcome.NOT_READY]
    assert await gate.update_round(round_) is Update.APPLIED
    assert await gate.update_round(round_) is Update.CURRENT
    ((now_ms, (pulse,)), view) = (await gate.pulses([round_.ref]), await gate.inspect(round_.ref))
    assert now_ms
    assert pulse is not None
    assert view is not None
    assert (pulse.available, pulse.admitted, pulse.epoch) == (view.available, 0, 1) == (10, 0, 1)


async def test_a_lost_share_makes_the_round_a_lost_one(shares: ShareGate, gate: SharedGate) -> None:
    round_ = await open_round(gate, make_round(total=10, lanes=LANES))
    await shares.forget(lane_ref(round_, 2))
    assert await gate.inspect(round_.ref) is None
    assert (await gate.pulses([round_.ref]))[1] == [None]
    assert await gate.update_round(replace(round_, revision=9)) is Update.MISSING
    # The other lanes sell what they have. Whether there is more cannot be told now.
    users = of_lane(round_, 0, 4)
    found = await outcomes(gate, round_.ref, [Claim(user, 1) for user in users])
    assert found == [Outcome.ADMITTED] * 3 + [Outcome.NOT_READY]


async def test_a_lane_that_went_back_in_time_makes_the_round_a_lost_one(shares: ShareGate, gate: SharedGate) -> None:
    """Its share has sent units, and then forgets it: they are there twice."""
    round_ = await open_round(gate, make_round(total=8, lanes=LANES))
    here, there = lane_ref(round_, 0), lane_ref(round_, 1)
    assert await shares.give(here, 1, there.lane, 0, 2) == 2
    assert await shares.take(there, 1, here.lane, 2) == 2
    assert (await gate.pulses([round_.ref]))[1] != [None]
    await shares.forget(here)
    await shares.open_round(replace(round_, lanes=1, total=2), round_.opened_ms or 0)
    await shares.update_round(replace(round_, lanes=1, total=2))
    assert sum(view.available for view in await views(shares, round_)) == 10, "the window was hit"
    assert (await gate.pulses([round_.ref]))[1] == [None]
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert view.available == 8


async def sell(gates: Sequence[SharedGate], round_: Round, users: Sequence[str], quantity: int = 1) -> Counter[Outcome]:
    """All at once, each buyer over one of the nodes, in batches of one lane, as the desk makes them."""
    by_batch: dict[tuple[int, int], list[Claim]] = {}
    for i, user in enumerate(users):
        by_batch.setdefault((i % len(gates), round_.ref.lane_of(user)), []).append(Claim(user, quantity, f"k{i}"))

    async def buy(node: int, claims: list[Claim]) -> list[Outcome]:
        found = []
        for start in range(0, len(claims), 20):
            found += await outcomes(gates[node], round_.ref, claims[start : start + 20])
        return found

    return Counter(
        outcome
        for batch in await asyncio.gather(*[buy(node, claims) for (node, _), claims in by_batch.items()])
        for outcome in batch
    )


async def test_few_units_over_many_lanes_are_all_sold_and_nobody_is_refused_before(
    backend: Backend, shares: ShareGate
) -> None:
    """A lane that runs dry must not refuse while others have units. Buyers of three lanes want all that eight have,
    over several nodes at once."""
    round_ = await open_round(SharedGate(shares), make_round(total=30, lanes=8, limit_per_buyer=2))
    users = [user for trio in zip(*[of_lane(round_, place, 666) for place in (0, 3, 6)], strict=True) for user in trio]
    nodes = [SharedGate(backend.gate()) for _ in range(3)]
    found = await sell(nodes, round_, users)
    assert found == {Outcome.ADMITTED: 30, Outcome.SOLD_OUT: 1968}
    await check_units(shares, round_)
    assert any(view.sent for view in await views(shares, round_)), "units have moved"
    view = await nodes[0].inspect(round_.ref)
    assert view is not None
    assert (view.available, view.admitted, view.buyers, view.backlog) == (0, 30, 30, 30)


async def test_without_transfers_units_stay_unsold(shares: ShareGate) -> None:
    """The control: buyers of one lane are refused while other lanes have units."""
    round_ = await open_round(SharedGate(shares), make_round(total=30, lanes=8))
    users = of_lane(round_, 0, 20)
    reply = await shares.admit(lane_ref(round_, 0), [Claim(user, 1) for user in users])
    assert Counter(answer.outcome for answer in reply.answers) == {Outcome.ADMITTED: 4, Outcome.SOLD_OUT: 16}
    again = await outcomes(SharedGate(shares), round_.ref, [Claim(user, 1) for user in users[4:]])
    assert again == [Outcome.ADMITTED] * 16


async def test_a_buyer_of_several_collects_units_from_several_lanes(shares: ShareGate, gate: SharedGate) -> None:
    round_ = await open_round(gate, make_round(total=8, lanes=8, limit_per_buyer=5))
    assert [view.available for view in await views(shares, round_)] == [1] * 8
    assert await outcomes(gate, round_.ref, [Claim("ann", 5)]) == [Outcome.ADMITTED]
    assert await outcomes(gate, round_.ref, [Claim("bob", 4)]) == [Outcome.SOLD_OUT], "3 are left"
    assert await outcomes(gate, round_.ref, [Claim("bob", 3)]) == [Outcome.ADMITTED]
    assert await outcomes(gate, round_.ref, [Claim("cid", 1)]) == [Outcome.SOLD_OUT]
    await check_units(shares, round_)


async def test_the_limit_holds_over_nodes_and_lanes(backend: Backend, shares: ShareGate) -> None:
    round_ = await open_round(SharedGate(shares), make_round(total=100, lanes=8, limit_per_buyer=2))
    nodes = [SharedGate(backend.gate()) for _ in range(4)]
    claims = [[Claim(f"u{i}", 1)] for i in range(10)]
    await asyncio.gather(*[node.admit(round_.ref, claim) for node in nodes for claim in claims])
    view = await nodes[0].inspect(round_.ref)
    assert view is not None
    assert (view.admitted, view.buyers) == (20, 10)


async def test_claims_of_several_lanes_are_not_taken_together(gate: SharedGate) -> None:
    """Deciding them in the first one's lane would give a buyer two records."""
    round_ = await open_round(gate, make_round(lanes=LANES))
    with pytest.raises(ValueError, match="several lanes"):
        await gate.admit(round_.ref, [Claim(f"u{i}", 1) for i in range(50)])


@pytest.mark.parametrize("point", ["lanes.give.after", "lanes.take.after"])
async def test_who_dies_while_units_move_costs_nobody_a_unit(
    shares: ShareGate, gate: SharedGate, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Again and again, at each step. What is on its way then is found by the next who needs it, whatever its lane."""
    round_ = await open_round(gate, make_round(total=24, lanes=LANES))
    deaths = 0

    def die(name: str) -> None:
        nonlocal deaths
        if name == point and deaths < 12:
            deaths += 1
            raise Death

    monkeypatch.setattr(shared_gate, "reached", die)
    admitted = 0
    users = of_lane(round_, 0, 24) + of_lane(round_, 3, 10)
    for user in users:
        for _ in range(30):  # the buyer repeats, with the same key
            try:
                (answer,) = (await gate.admit(round_.ref, [Claim(user, 1, "k")])).answers
            except Death:
                await check_units(shares, round_)
                continue
            break
        admitted += answer.outcome in (Outcome.ADMITTED, Outcome.REPEATED)
    assert deaths, "the window was hit"
    assert admitted == 24
    await check_units(shares, round_)


async def test_a_gift_or_its_arrival_whose_answer_is_lost_counts_once(backend: Backend, shares: ShareGate) -> None:
    round_ = await open_round(SharedGate(shares), make_round(total=40, lanes=LANES))
    here, there = lane_ref(round_, 0), lane_ref(round_, 1)
    async with backend.node() as node:
        assert await node.gate.give(here, 1, there.lane, 0, 1) == 1
        assert await node.gate.take(there, 1, here.lane, 1) == 1
        with node.in_trouble(Trouble.REPLY_LOST), pytest.raises(Exception, match="answer"):
            await node.gate.give(here, 1, there.lane, 1, 4)
        assert await node.gate.give(here, 1, there.lane, 1, 4) == 5
        with node.in_trouble(Trouble.REPLY_LOST), pytest.raises(Exception, match="answer"):
            await node.gate.take(there, 1, here.lane, 5)
        assert [view.available for view in await views(shares, round_)] == [5, 15, 10, 10], "both were carried out"
        assert await node.gate.take(there, 1, here.lane, 5) == 0
    await check_units(shares, round_)


async def test_units_that_are_added_are_dealt_once(shares: ShareGate, gate: SharedGate) -> None:
    round_ = await open_round(gate, make_round(total=5, lanes=LANES))
    users = of_lane(round_, 3, 5)
    assert await outcomes(gate, round_.ref, [Claim(user, 1) for user in users]) == [Outcome.ADMITTED] * 5
    more = replace(round_, revision=2, total=12)
    first_share = replace(more, lanes=1, total=deal(12, LANES)[0])
    assert await shares.update_round(first_share) is Update.APPLIED, "then the keeper died"
    assert await gate.update_round(more) is Update.APPLIED
    assert await gate.update_round(more) is Update.CURRENT
    await check_units(shares, more)
    found = await outcomes(gate, round_.ref, [Claim(user, 1) for user in of_lane(round_, 1, 8, prefix="x")])
    assert found == [Outcome.ADMITTED] * 7 + [Outcome.SOLD_OUT]


async def test_a_unit_that_comes_back_to_another_lane_is_sold_again(shares: ShareGate, gate: SharedGate) -> None:
    round_ = await open_round(gate, make_round(total=2, lanes=LANES))
    (one,), (other,) = of_lane(round_, 0, 1), of_lane(round_, 1, 1)
    held = [(await gate.admit(round_.ref, [Claim(user, 1)])).answers[0].holdings[0] for user in (one, other)]
    (late,) = of_lane(round_, 3, 1)
    refused = await gate.admit(round_.ref, [Claim(late, 1)])
    assert (refused.answers[0].outcome, refused.available) == (Outcome.SOLD_OUT, 0)
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert refused.version == view.version, "so that a flag can be raised for it"
    strange = Release(structs.replace(held[0].number, lane=200), one, 1)
    reply = await gate.release(
        round_.ref, [strange, Release(held[1].number, other, 1), Release(held[1].number, other, 1)]
    )
    assert list(reply.results) == [Released.UNKNOWN, Released.RELEASED, Released.ALREADY]
    assert reply.version > refused.version, "and withdrawn"
    assert await outcomes(gate, round_.ref, [Claim(late, 1)]) == [Outcome.ADMITTED]
    await check_units(shares, round_)


async def test_a_rebuilt_round_covers_what_every_lane_has_sold(shares: ShareGate, gate: SharedGate) -> None:
    """Most was sold in one lane, with units of others: they are dealt anew so that no share is overdrawn."""
    round_ = await open_round(gate, make_round(total=20, lanes=LANES))
    users = of_lane(round_, 2, 15)
    answers = (await gate.admit(round_.ref, [Claim(user, 1, "k") for user in users])).answers
    held = {user: [answer.holdings[0]] for user, answer in zip(users, answers, strict=True)}
    held[users[0]] = [structs.replace(held[users[0]][0], live=False)]
    await gate.fence(round_)
    round_ = await rebuild(gate, replace(round_, epoch=2), held)
    await check_units(shares, round_)
    assert [view.available for view in await views(shares, round_)] == deal(6, LANES)
    assert len({view.version for view in await views(shares, round_)}) == 1
    again = (await gate.admit(round_.ref, [Claim(user, 1, "k") for user in users])).answers
    assert {answer.outcome for answer in again} == {Outcome.REPEATED}
    rest = await sell([gate], round_, [f"x{i}" for i in range(50)])
    assert rest == {Outcome.ADMITTED: 6, Outcome.SOLD_OUT: 44}
    assert [user async for portion in gate.buyers(round_.ref) for user in portion]
    await gate.forget(round_.ref)
    assert await gate.inspect(round_.ref) is None
