"""Something that none of our programs writes stands in the gate: the sale whose it is stops, is told of and mended, and
no other sale notices."""

import asyncio
from collections.abc import Mapping
from itertools import count, islice
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.domain.sale import RoundRef
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.keeper import Keeper
from tests.api.conftest import buyer, keeping
from tests.audit.conftest import World
from tests.audit.mending import mend, plan
from tests.audit.test_lost_keys import keep, keeper_of, open_sale, orders, press_again, sells_exactly, unpaid
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)

OF_ROUND = ["round", "buyers", "past", "available", "admitted", "epoch", "limit", "status"]
OF_LANE = ["orders", "days", "today"]


@pytest.fixture(autouse=True)
def in_a_hurry(request: pytest.FixtureRequest) -> None:
    """Except where the lane's counter may be lost."""
    if request.node.callspec.params.get("what") not in OF_LANE:
        request.getfixturevalue("a_second_passes")


class Raised(Alarm):
    """Remembers what people were told."""

    def __init__(self) -> None:
        super().__init__("")
        self.all: list[str] = []

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        self.all.append(f"{what} {facts}")


def listening(keeper: Keeper) -> Raised:
    raised = Raised()
    keeper.recovery.losses._alarm = keeper.lane_damage._alarm = keeper.missing_orders._alarm = raised
    return raised


async def damage(world: World, what: str) -> str:
    """Returns the key."""
    ref = await world.ref()
    if what == "today":
        (day,) = await world.redis.hkeys(keys.days(ref.lane))
        await world.redis.hset(keys.days(ref.lane), day, "x")
        return keys.days(ref.lane)
    places = {"round": keys.round_(ref), "buyers": keys.buyers(ref), "past": keys.past(ref)}
    places |= {"orders": keys.orders(ref.lane), "days": keys.days(ref.lane)}
    if what in places:
        await world.redis.delete(places[what])
        await world.redis.set(places[what], "x")
        return places[what]
    await world.redis.hset(keys.round_(ref), what, "" if what == "limit" else "x")
    return keys.round_(ref)


async def two_sales(world: World) -> tuple[dict[str, Any], Any]:
    """The world's, in which 15 are written and 5 queued, and another one in a lane of its own."""
    await open_sale(world, units=5)
    other, its_ref = world.sale, await world.ref()
    await open_sale(world, units=50)
    assert (await world.ref()).lane != its_ref.lane
    await world.sell(*(f"u{i}" for i in range(15)))
    await world.node.work()
    await world.sell(*(f"v{i}" for i in range(5)))
    return other, its_ref


@pytest.mark.parametrize("what", [*OF_ROUND, *OF_LANE])
async def test_damage_is_mended_and_holds_up_no_other_sale(world: World, what: str) -> None:
    other, its_ref = await two_sales(world)
    keeper = keeper_of(world)
    alarm = listening(keeper)
    await keep_looking(keeper)
    key = await damage(world, what)
    await world.redis.delete(keys.round_(its_ref))  # which the keeper has to rebuild meanwhile
    assert (await world.node.buy(other, "zoe")).json()["code"] == "not_ready"
    async with asyncio.timeout(PATIENCE_S):
        while (await world.node.buy(other, "zoe")).status_code != 202:
            await keep_looking(keeper)
            await keep(world, keeper)
        while (again := await press_again(world)) == {"not_ready"}:
            await keep_looking(keeper)
            await keep(world, keeper)
    assert again == set(world.numbers.values()), "the same keys, the same orders"
    await world.node.work()
    assert await orders(world) == unpaid(world)
    await sells_exactly(world, 30)
    told = "queues of these lanes were lost" if what == "orders" else key
    assert any(told in each or key in each for each in alarm.all), alarm.all


@pytest.mark.parametrize("what", ["round", "orders", "days"])
async def test_a_keeper_with_all_its_loops_mends_it(world: World, what: str) -> None:
    await two_sales(world)
    await world.node.work()
    alarm = Raised()
    lane = (await world.ref()).lane
    async with keeping(world.settings, world.engine, alarm) as keeper, asyncio.timeout(PATIENCE_S):
        while lane not in keeper.missing_orders._added:  # it has seen the queue before
            await asyncio.sleep(0.05)
        await until_told(alarm, await damage(world, what), what)
        while (await world.node.buy(world.sale, "zoe")).status_code != 202:
            await asyncio.sleep(0.05)
        while len(await orders(world)) < 21:
            await world.node.work()
    assert await world.found() == {}


async def test_a_keeper_that_finds_no_queue_when_it_starts_tells_people(world: World) -> None:
    """It makes the queues at first, and what stands in the place of one has to go for that."""
    await two_sales(world)
    await world.node.work()
    key = await damage(world, "orders")
    keeper = keeper_of(world)
    alarm = listening(keeper)
    await keeper.queues.measure_backlog()
    assert any(key in each for each in alarm.all), alarm.all


async def until_told(alarm: Raised, key: str, what: str) -> None:
    """Whichever process removes a foreign value from a queue's key, the keeper knows that the queue was lost."""
    while not any(key in each or (what == "orders" and "queues" in each) for each in alarm.all):
        await asyncio.sleep(0.05)


async def keep_looking(keeper: Keeper) -> None:
    """Does what the keeper's loops do."""
    await keeper.lane_damage.discard()
    await keeper.queues.measure_backlog()
    await keeper.recovery.losses.find()
    await keeper.missing_orders.write()


@pytest.mark.parametrize("what", [*OF_ROUND, *OF_LANE])
async def test_the_audit_names_it_and_a_repair_mends_it(world: World, what: str) -> None:
    await two_sales(world)
    await world.node.work()
    key = await damage(world, what)
    report = await world.auditor.read(full=True)
    says = [finding.says for finding in report.findings if finding.round_id == world.round_id]
    named = key if what in ("round", "buyers", "past", *OF_LANE) else f"something else as its {what}"
    assert any(named in each for each in says), (says, report.reasons())
    assert await mend(world, await plan(world, report))
    async with asyncio.timeout(PATIENCE_S):
        while "not_ready" in await press_again(world):  # without its counter, until the next second
            pass
    assert await orders(world) == unpaid(world)
    await sells_exactly(world, 30)


@pytest.mark.parametrize("what", ["damaged", "lost", "round and records lost"])
async def test_no_buyer_is_told_that_an_accepted_order_is_none(world: World, what: str) -> None:
    """While the gate has lost the records, nobody can know whether there is such an order."""
    await open_sale(world, units=5)
    await world.sell("ann")
    http = world.node.http
    order_id = world.engine.order_ids.encode(world.numbers["ann"])
    places = (f"/v1/orders/{order_id}", "/v1/orders", f"/v1/orders/{order_id}/events")
    if what == "damaged":
        await damage(world, "buyers")
    else:
        await world.redis.delete(await world.buyers_key())
    if what == "round and records lost":
        await world.redis.delete(await world.round_key())
    for place in places:
        answer = await http.get(place, headers=buyer("ann"))
        assert (answer.status_code, answer.json()["code"]) == (503, "not_ready"), place
    await keep(world, keeper_of(world))
    answer = await http.get(places[0], headers=buyer("ann"))
    assert (answer.status_code, answer.json()["state"]) == (200, "unpaid")
    unknown = world.engine.order_ids.encode(world.numbers["ann"] + 1)
    assert (await http.get(f"/v1/orders/{unknown}", headers=buyer("ann"))).status_code == 404


def of_lane(ref: Any, lane: int, many: int, name: str) -> list[str]:
    users = (f"{name}{i}" for i in count())
    return list(islice((user for user in users if ref.lane_of(user) == lane), many))


@pytest.mark.parametrize("field", ["got", "sent", "dealt"])
async def test_a_share_that_forgot_what_it_sent_or_got_sells_nothing_twice(world: World, field: str) -> None:
    """Units that a lane has got would come again; units that it has sent would vanish, or be sent again."""
    await open_sale(world, units=24, lanes=4)
    ref = await world.ref()
    hot, cold = ref.every_lane[:2]
    await world.sell(*of_lane(ref, hot, 24, "hot"))
    await world.node.work()
    over = list(world.numbers)[:6]
    for user in over:
        await world.act("cancel", user)
    await world.release_desk.pass_on()
    await world.node.refresh()
    share = RoundRef(id=ref.id, lane=cold if field == "sent" else hot)
    names = [name.decode() for name in await world.redis.hkeys(keys.round_(share))]
    lost = next(name for name in names if name.startswith(field))
    await world.redis.hdel(keys.round_(share), lost)
    sold: list[str] = []
    for user in of_lane(ref, cold, 20, "cold"):
        answer = await world.node.buy(world.sale, user)
        sold += [user] if answer.status_code == 202 else []
    assert len(sold) <= 6, "as many as came back"
    keeper = keeper_of(world)
    assert [round_.id for round_ in await keeper.recovery.losses.find()] == [ref.id]
    await keep(world, keeper)
    await world.node.work()
    await sells_exactly(world, 6 - len(sold))


@pytest.mark.parametrize("queued", [True, False])
async def test_a_buyer_whose_record_is_damaged_gets_no_second_order(world: World, queued: bool) -> None:
    await open_sale(world, units=5)
    await world.sell("ann", "bob")
    if not queued:
        await world.node.work()
    await world.redis.hset(await world.buyers_key(), "ann", "garbage")
    order_id = world.engine.order_ids.encode(world.numbers["ann"])
    shown = await world.node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))
    assert shown.status_code == (503 if queued else 200)
    assert (await world.node.buy(world.sale, "ann", key="another")).json()["code"] == "not_ready"
    await keep(world, keeper_of(world))
    assert (await world.node.buy(world.sale, "ann", key="another")).json()["code"] == "limit_reached"
    assert await press_again(world) == set(world.numbers.values())
    assert await orders(world) == unpaid(world)
    await sells_exactly(world, 3)
