"""A round over several lanes: the auditor adds up its shares, and names what is wrong with one."""

from collections.abc import Awaitable, Callable

import pytest

from seckill.audit import Verdict
from seckill.backends.redis import keys
from seckill.domain.sale import Round, RoundRef
from tests.audit.conftest import World
from tests.audit.mending import mend, plan

LANES = 4
UNITS = 10


@pytest.fixture
def ledger_url(sqlite_database: str) -> str:
    """Shares are in the gate: one ledger shows it all."""
    return sqlite_database


Plant = Callable[[World, Round], Awaitable[None]]


async def spread(world: World) -> Round:
    """Orders in every state in all lanes, and units that have moved: one lane has sold more than it was dealt."""
    world.sale = await world.node.create(units=UNITS, limit_per_buyer=2, lanes=LANES)
    await world.node.refresh()
    sale = await world.engine.ledger.sale((await world.engine.ledger.sales())[-1].id)
    assert sale is not None
    first = [user for user in (f"u{i}" for i in range(100)) if sale.round.ref.lane_of(user) == sale.round.lane]
    await world.sell(*first[:4], "ann", "bob", "cid", "dan")
    await world.node.work()
    await world.act("pay", "bob")
    await world.act("cancel", "cid")
    await world.release_desk.pass_on()
    await world.sell("fay")
    world.numbers["first"] = world.numbers[first[0]]
    return sale.round


def of_lane(round_: Round, place: int) -> str:
    return keys.round_(RoundRef(id=round_.id, lane=round_.lane + place))


async def gift(world: World, round_: Round) -> tuple[str, str, str, str]:
    """Two shares of which one has sent something to the other: their keys, and the fields that say so."""
    for place in range(LANES):
        for field in await world.redis.hkeys(of_lane(round_, place)):
            if field.startswith(b"sent:"):
                to = int(field.removeprefix(b"sent:"))
                there = keys.round_(RoundRef(id=round_.id, lane=to))
                return of_lane(round_, place), there, field.decode(), f"got:{round_.lane + place}"
    raise AssertionError("nothing has moved")


async def lost(world: World, round_: Round) -> None:
    """Said to have come, and put on sale nowhere."""
    _, there, _, _ = await gift(world, round_)
    for name in ("total", "available"):
        await world.redis.hincrby(there, name, -1)


async def taken_twice(world: World, round_: Round) -> None:
    _, there, _, _ = await gift(world, round_)
    for name in ("total", "available"):
        await world.redis.hincrby(there, name, 1)


async def taken_and_never_sent(world: World, round_: Round) -> None:
    here, _, sent, _ = await gift(world, round_)
    for name, by in ((sent, -1), ("total", 1), ("available", 1)):
        await world.redis.hincrby(here, name, by)


async def dealt_too_much(world: World, round_: Round) -> None:
    for name in ("dealt", "total", "available"):
        await world.redis.hincrby(of_lane(round_, 1), name, 1)


async def in_the_wrong_lane(world: World, round_: Round) -> None:
    """A buyer who is in two lanes may buy twice."""
    lane = round_.ref.lane_of("ann")
    other = RoundRef(id=round_.id, lane=next(each for each in round_.every_lane if each != lane))
    await world.redis.hset(keys.buyers(other), "ann", "1:999999:1:1::1")


@pytest.mark.parametrize(
    ("plant", "kinds", "says"),
    [
        (lost, {("stock", "units")}, "but was dealt"),
        (taken_twice, {("stock", "units")}, "but was dealt"),
        (taken_and_never_sent, {("stock", "gift")}, "which has sent only"),
        (dealt_too_much, {("epoch", "other_rules")}, "its share is"),
        (in_the_wrong_lane, {("buyers", "lane"), ("buyers", "admitted"), ("lost", "nowhere")}, "belongs to lane"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_what_is_wrong_with_a_share_is_named(
    world: World, plant: Plant, kinds: set[tuple[str, str]], says: str
) -> None:
    round_ = await spread(world)
    assert await world.found() == {}
    await plant(world, round_)
    report = await world.auditor.read(full=True)
    assert report.verdict is Verdict.BROKEN
    assert {(finding.invariant, finding.kind) for finding in report.findings} >= kinds, report.findings
    assert any(says in finding.says for finding in report.findings)
    assert {finding.round_id for finding in report.findings} == {round_.id}
    if plant is in_the_wrong_lane:
        assert (await plan(world)).for_people, "an order that only the gate knows is not forgotten by rebuilding it"
        return
    await mend(world)
    report = await world.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())
    view = await world.engine.gate.inspect(round_.ref)
    assert view is not None
    assert (view.total, view.available, view.epoch) == (UNITS, UNITS - 8, 2), "dealt anew"


async def test_units_on_their_way_are_in_order(world: World) -> None:
    round_ = await spread(world)
    left = [int(await world.redis.hget(of_lane(round_, place), "available")) for place in range(LANES)]
    giver = left.index(max(left))
    to = round_.lane + (giver + 1) % LANES
    ref = RoundRef(id=round_.id, lane=round_.lane + giver)
    sent = int(await world.redis.hget(of_lane(round_, giver), f"sent:{to}") or 0)
    assert await world.engine.gate._gate.give(ref, 1, to, sent, 1) == sent + 1  # type: ignore[attr-defined]
    assert await world.found() == {}
    (units,) = [each for each in (await world.auditor.read()).units if each.round_id == round_.id]
    assert (units.total, units.available) == (UNITS, UNITS - 8)
