"""One key of the gate is gone, or the ledger is an older copy: the keeper notices and mends it by itself. No order that
somebody still knows of is lost, nobody gets a second one, and the audit holds at the end."""

import asyncio
from itertools import count
from typing import Any

import pytest
from sqlalchemy import delete, insert, select

from seckill.backends.redis import keys
from seckill.backends.sql.tables import metadata
from seckill.domain.dead_letter import LetterState
from seckill.engine.keeper import Keeper
from tests.api.conftest import OPERATOR, buyer, make_node, sale_body
from tests.audit.conftest import World
from tests.making import use_cases
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("a_second_passes")
ON_SQLITE = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)


def keeper_of(world: World) -> Keeper:
    """One that has waited long enough for workers."""
    ticks = count(step=60)
    use = use_cases(world.engine)
    use.recovery._rebuilder._monotonic = lambda: float(next(ticks))
    return use.keeper


async def keep(world: World, keeper: Keeper) -> None:
    """Does what the keeper's loops do, until there is nothing left to do."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await keeper.queues.measure_backlog()
            rebuilt = await keeper.recovery.rebuild_losses()
            written = await keeper.missing_orders.write()
            await world.release_desk.pass_on()
            if not (rebuilt or written or await keeper.recovery.losses.find()):
                break
    await world.node.refresh()
    while await world.node.worker.read_and_record(wait_s=0):
        pass
    await world.release_desk.pass_on()


async def open_sale(world: World, units: int, **changes: Any) -> None:
    world.sale = await world.node.create(units=units, **changes)
    world.numbers = {}


async def orders(world: World) -> dict[str, tuple[int, str]]:
    rows = await world.query("SELECT user_id, id, state FROM orders WHERE round_id = :round", round=world.round_id)
    assert len({row.user_id for row in rows}) == len(rows), "no buyer has two"
    return {row.user_id: (row.id, row.state) for row in rows}


async def sells_exactly(world: World, units: int) -> None:
    """Sells the units that are left, and not one more."""
    statuses = [(await world.node.buy(world.sale, f"late-{i}")).status_code for i in range(units + 1)]
    assert statuses == [202] * units + [409]
    await world.node.work()
    assert await world.found() == {}


async def press_again(world: World) -> set[int | str]:
    """Each buyer claims with a different key. Returns the orders that they are told of, or why there is none."""
    told: set[int | str] = set()
    for user in world.numbers:
        answer = await world.node.buy(world.sale, user, key=f"key of {user}")
        body = answer.json()
        told.add(world.engine.order_ids.decode(body["order_id"]) or 0 if "order_id" in body else body["code"])
    return told


def unpaid(world: World) -> dict[str, tuple[int, str]]:
    return {user: (number, "unpaid") for user, number in world.numbers.items()}


@ON_SQLITE
@pytest.mark.parametrize("noticed", ["by its count", "by its silence"])
async def test_a_lost_stream_with_60_queued_under_load(world: World, noticed: str) -> None:
    """It mends without a person, and while others buy. A keeper that has seen the stream before knows at once; any
    other as soon as the queue is empty."""
    await open_sale(world, units=100)
    keeper = keeper_of(world)
    await world.sell(*(f"u{i}" for i in range(60)))
    if noticed == "by its count":
        await keeper.recovery.losses.find()
        await keeper.missing_orders.write()
    assert await orders(world) == {}
    await world.redis.delete(await world.stream_key())
    await world.sell(*(f"v{i}" for i in range(20)))
    while noticed == "by its silence" and await world.redis.xlen(await world.stream_key()):
        await world.node.work()
    await keeper.recovery.losses.find()
    assert await keeper.missing_orders.write() >= 60
    await keep(world, keeper)
    assert await orders(world) == unpaid(world), "each 202 is a row, with its own id"
    assert await keeper.missing_orders.write() == 0
    assert await press_again(world) == set(world.numbers.values())
    await sells_exactly(world, 20)


@ON_SQLITE
async def test_a_lost_stream_while_workers_and_buyers_go_on(world: World) -> None:
    await open_sale(world, units=300)
    keeper = keeper_of(world)
    users = iter([f"u{i}" for i in range(200)])
    selling = asyncio.Event()

    async def buy() -> None:
        for user in users:
            await world.sell(user)
            if len(world.numbers) > 60:
                selling.set()

    async def work() -> None:
        await selling.wait()
        await world.redis.delete(await world.stream_key())
        while len(world.numbers) < 200 or await world.node.worker.read_and_record(wait_s=0):
            await world.node.worker.read_and_record(wait_s=0.01)

    await asyncio.gather(buy(), buy(), work())
    assert len(await orders(world)) < 200, "some were in the stream that is gone"
    await keep(world, keeper)
    assert await orders(world) == unpaid(world)
    await sells_exactly(world, 100)


@ON_SQLITE
@pytest.mark.parametrize("written", [0, 20, 40])
async def test_lost_records_of_40_buyers_at_the_limit_who_press_again(world: World, written: int) -> None:
    await open_sale(world, units=50)
    await world.sell(*(f"u{i}" for i in range(written)))
    await world.node.work()
    await world.sell(*(f"u{i}" for i in range(written, 40)))
    await world.redis.delete(await world.buyers_key())
    assert await press_again(world) == {"not_ready"}, "no second 202"
    keeper = keeper_of(world)
    await keep(world, keeper)
    assert await orders(world) == unpaid(world)
    assert await press_again(world) == set(world.numbers.values()), "the same key, the same order"
    again = [(await world.node.buy(world.sale, user)).json()["code"] for user in world.numbers]
    assert set(again) == {"limit_reached"}
    await sells_exactly(world, 10)


@ON_SQLITE
async def test_a_lost_stream_and_lost_records(world: World) -> None:
    """No store knows any more what was queued. What was written is kept, and no unit is lost or sold twice."""
    await open_sale(world, units=50)
    await world.sell(*(f"u{i}" for i in range(20)))
    await world.node.work()
    kept = unpaid(world)
    await world.sell(*(f"v{i}" for i in range(20)))
    await world.redis.delete(await world.buyers_key(), await world.stream_key())
    assert await press_again(world) == {"not_ready"}
    await keep(world, keeper_of(world))
    assert await orders(world) == kept
    await sells_exactly(world, 30)


@ON_SQLITE
async def test_a_lost_counter(world: World) -> None:
    await open_sale(world, units=50)
    await world.sell(*(f"u{i}" for i in range(20)))
    await world.redis.delete(keys.days((await world.ref()).lane))
    keeper = keeper_of(world)
    async with asyncio.timeout(PATIENCE_S):
        for i in count():
            answer = await world.node.buy(world.sale, f"v{i}")
            assert await keeper.recovery.losses.find() == [], "it passes with the second"
            if answer.status_code == 202:
                break
            assert answer.json()["code"] == "not_ready"
    world.numbers[f"v{i}"] = world.engine.order_ids.decode(answer.json()["order_id"]) or 0
    await world.node.work()
    assert len(set(world.numbers.values())) == 21
    assert await orders(world) == unpaid(world)
    await sells_exactly(world, 29)


@ON_SQLITE
@pytest.mark.parametrize("gone", ["round", "past", "available", "admitted", "epoch", "total", "released", "opened_ms"])
async def test_a_lost_round_or_a_field_of_it(world: World, gone: str) -> None:
    await open_sale(world, units=50)
    await world.sell(*(f"u{i}" for i in range(20)))
    await world.node.work()
    await world.act("cancel", "u0")
    await world.release_desk.pass_on()
    await world.sell(*(f"v{i}" for i in range(10)))  # and no worker writes them
    if gone == "round":
        await world.redis.delete(await world.round_key())
    elif gone == "past":
        await world.redis.delete(await world.past_key())
    else:
        await world.redis.hdel(await world.round_key(), gone)
    await keep(world, keeper_of(world))
    assert await orders(world) == unpaid(world) | {"u0": (world.numbers["u0"], "cancelled")}
    assert await press_again(world) == set(world.numbers.values())
    await sells_exactly(world, 21)


@ON_SQLITE
async def test_a_rebuild_keeps_what_nobody_has_written(world: World) -> None:
    """It keeps orders in the stream, in a worker's hand, or set aside, as far as there is room."""
    await open_sale(world, units=3)
    await world.sell("ann", "bob", "cid")
    in_hand = await world.engine.transport.read(1, PATIENCE_S)
    (found,) = [sale for sale in await world.engine.ledger.sales() if sale.round.id == world.round_id]
    await world.engine.ledger.set_aside(in_hand[0], "refused", 3600)
    await world.redis.hdel(await world.round_key(), "available")
    await keep(world, keeper_of(world))
    assert await orders(world) == unpaid(world)
    assert {row.epoch for row in await world.query("SELECT epoch FROM orders")} == {found.round.epoch + 1}
    late = await world.node.worker.record(in_hand)
    assert (late.repeated, late.refused) == (1, 0), "of an epoch that is over, but it is the same order"
    assert await world.engine.ledger.letters(LetterState.DEAD, 10) == []
    assert (await world.node.buy(world.sale, "dan")).json()["code"] == "sold_out"
    assert await world.found() == {}


async def copy_of(world: World) -> dict[str, list[Any]]:
    async with world.ledger.database.readers.connect() as connection:
        return {
            table.name: [dict(row._mapping) for row in await connection.execute(select(table))]
            for table in metadata.sorted_tables
        }


async def restore(world: World, copy: dict[str, list[Any]]) -> None:
    async with world.ledger.database.writers.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            await connection.execute(delete(table))
        for table in metadata.sorted_tables:
            if copy[table.name]:
                await connection.execute(insert(table), copy[table.name])


@pytest.mark.parametrize("rebuilt", [False, True])
async def test_an_older_copy_of_the_ledger(world: World, rebuilt: bool) -> None:
    """The gate knows what was sold and given back since: that is written, no unit is sold twice. Payments since then
    are not known to it."""
    await open_sale(world, units=10)
    await world.sell(*(f"u{i}" for i in range(6)))
    await world.node.work()
    copy = await copy_of(world)
    if rebuilt:
        await world.redis.hdel(await world.round_key(), "total")
        await keep(world, keeper_of(world))
    await world.sell(*(f"v{i}" for i in range(4)))
    await world.node.work()
    for user in ("u0", "v0"):
        await world.act("cancel", user)
    await world.act("pay", "u1")
    await world.release_desk.pass_on()
    await world.node.refresh()
    await world.sell("w0", "w1")
    await world.node.work()
    assert await world.found() == {}
    before = await orders(world)
    await restore(world, copy)
    assert len(await orders(world)) == 6
    keeper = keeper_of(world)
    await keep(world, keeper)
    assert await world.found() == {}
    after = await orders(world)
    live = {user: number for user, (number, state) in before.items() if state in ("unpaid", "paid")}
    assert {user: number for user, (number, state) in after.items() if state == "unpaid"} == live
    assert after["u0"][1] == "cancelled"
    assert after["v0"] == (before["v0"][0], "failed"), "it was over: how, is no longer known"
    assert await press_again(world) == set(world.numbers.values())
    assert (await world.node.buy(world.sale, "zoe")).json()["code"] == "sold_out"
    order_id = world.engine.order_ids.encode(world.numbers["w1"])
    assert (await world.node.http.get(f"/v1/orders/{order_id}", headers=buyer("w1"))).json()["state"] == "unpaid"


@ON_SQLITE
async def test_a_sale_that_gets_the_id_of_one_that_the_ledger_has_forgotten(world: World) -> None:
    """The new sale must not sell the old one's stock, nor take its buyers for its own."""
    copy = await copy_of(world)
    await open_sale(world, units=3)
    await world.sell("ann")
    await world.node.work()
    forgotten = world.sale
    await restore(world, copy)
    for table in ("sales", "rounds"):
        await world.sql(f"UPDATE sqlite_sequence SET seq = (SELECT max(id) FROM {table}) WHERE name = '{table}'")
    other = await make_node(world.settings, world.engine)
    response = await other.http.post("/v1/sales", json=sale_body(units=5), headers=OPERATOR)
    assert response.status_code == 503, "stored, and not open yet"
    (world.sale,) = (sale for sale in (await other.http.get("/v1/sales")).json()["sales"] if sale["units"] == 5)
    assert world.sale["round"] == forgotten["round"]
    world.numbers, world.node = {}, other
    keeper = keeper_of(world)
    await keeper.opener.step()
    await keep(world, keeper)
    await world.sell("ann")
    await world.node.work()
    await sells_exactly(world, 4)
    await other.http.aclose()


@ON_SQLITE
async def test_records_that_the_gate_has_not_counted_are_not_believed(world: World) -> None:
    """They may be forged."""
    await open_sale(world, units=10)
    await world.sell("ann")
    await world.node.work()
    await world.redis.hset(await world.buyers_key(), "zoe", "1:1:1:1::1")
    await world.redis.hset(await world.round_key(), "revision", 0)  # so that it has to be rebuilt
    await keep(world, keeper_of(world))
    assert await orders(world) == unpaid(world)
    await sells_exactly(world, 9)
