"""Flaws of single items, planted by hand in gate and ledger: each is named, and what is safe to mend is mended."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from seckill.audit import Verdict
from seckill.backends.redis import keys
from seckill.domain.sale import RoundRef
from tests.audit.conftest import World
from tests.audit.mending import mend, plan

pytestmark = pytest.mark.usefixtures("a_second_passes")

Plant = Callable[[World], Awaitable[None]]
SIZES = [{"title": "S", "units": 6, "price_cents": 100}, {"title": "L", "units": 6, "price_cents": 100}]


async def sell_sizes(world: World, lanes: int) -> None:
    """One is queued, one unpaid, one paid, one cancelled and given back."""
    world.sale = await world.node.create(units=12, price_cents=None, items=SIZES, limit_per_buyer=3, lanes=lanes)
    await world.node.refresh()
    small, large = (item["item_id"] for item in world.sale["items"])
    await world.sell("ann", "bob", item_id=small)
    await world.sell("cid", "dan", item_id=large)
    await world.node.work()
    await world.act("pay", "bob")
    await world.act("cancel", "cid")
    await world.release_desk.pass_on()
    await world.sell("eve", item_id=small)


async def items(world: World) -> list[int]:
    return [row.id for row in await world.query("SELECT id FROM items ORDER BY place")]


def in_gate(*changes: tuple[str, int, int]) -> Plant:
    """Adds to the counts of the first or the second item, or (-1) of the round."""

    async def plant(world: World) -> None:
        ids = await items(world)
        for name, which, by in changes:
            field = name if which < 0 else f"{name}:{ids[which]}"
            await world.redis.hincrby(await world.round_key(), field, by)

    return plant


async def other_item_in_record(world: World) -> None:
    small, large = await items(world)
    key = await world.buyers_key()
    *number, quantity, slot, item, request_id, live = (await world.redis.hget(key, "ann")).decode().split(":")
    assert item == str(small)
    await world.redis.hset(key, "ann", ":".join([*number, quantity, slot, str(large), request_id, live]))


async def other_item_in_row(world: World) -> None:
    _, large = await items(world)
    await world.sql("UPDATE orders SET item_id = :item WHERE id = :id", item=large, id=world.numbers["ann"])


async def no_item_in_row(world: World) -> None:
    await world.sql("UPDATE orders SET item_id = NULL WHERE id = :id", id=world.numbers["ann"])


async def counted_wrong(world: World) -> None:
    small, large = await items(world)
    await world.sql("UPDATE round_items SET sold = sold - 1 WHERE item_id = :item", item=small)
    await world.sql("UPDATE round_items SET sold = sold + 1 WHERE item_id = :item", item=large)


PLANTINGS: list[tuple[str, Plant, set[tuple[str, str]], bool]] = [
    ("a unit of another item", in_gate(("available", 0, 1), ("available", 1, -1)), {("items", "stock")}, True),
    (
        "more of one, and of all",
        in_gate(("available", 0, 1), ("available", -1, 1)),
        {("items", "stock"), ("stock", "sum")},
        True,
    ),
    (
        "dealt to another item",
        in_gate(*[(name, which, by) for name in ("total", "dealt", "available") for which, by in ((0, 1), (1, -1))]),
        {("items", "missing")},
        True,
    ),
    (
        "sold as another item",
        in_gate(("admitted", 0, 1), ("available", 0, -1), ("admitted", 1, -1), ("available", 1, 1)),
        {("items", "records")},
        True,
    ),
    ("another item in the record", other_item_in_record, {("items", "records"), ("orders", "content")}, True),
    ("another item in the row", other_item_in_row, {("items", "sold"), ("orders", "content")}, False),
    ("no item in the row", no_item_in_row, {("items", "sold"), ("items", "order"), ("orders", "content")}, False),
    ("counted as another item", counted_wrong, {("items", "sold")}, True),
]


@pytest.mark.parametrize(("name", "plant", "kinds", "mended"), PLANTINGS, ids=[each[0] for each in PLANTINGS])
async def test_what_is_wrong_with_an_item_is_named(
    world: World, name: str, plant: Plant, kinds: set[tuple[str, str]], mended: bool
) -> None:
    await sell_sizes(world, 1)
    assert await world.found() == {}
    await plant(world)
    report = await world.auditor.read(full=True)
    assert {(finding.invariant, finding.kind) for finding in report.findings} == kinds, report.findings
    assert {finding.round_id for finding in report.findings} == {world.round_id}
    wanted = await plan(world, report)
    if not mended:
        assert wanted.for_people
        return
    await mend(world, wanted)
    report = await world.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())
    view = await world.engine.gate.inspect(await world.ref())
    assert view is not None
    small, large = await items(world)
    assert {item: stock.available for item, stock in view.items.items()} == {small: 3, large: 5}


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)  # which database it is makes no difference here
async def test_what_is_wrong_with_an_item_in_a_lane_is_named(world: World) -> None:
    await sell_sizes(world, 2)
    assert await world.found() == {}
    small, _ = await items(world)
    first: RoundRef = await world.ref()
    here, there = (keys.round_(RoundRef(id=first.id, lane=lane)) for lane in first.every_lane)
    to = first.lane + 1
    # Got, and never sent: the unit is there twice.
    for key, field in ((there, f"got:{first.lane}:{small}"), *((there, name) for name in ("total", "available"))):
        await world.redis.hincrby(key, field, 1)
    for name in ("total", "available"):
        await world.redis.hincrby(there, f"{name}:{small}", 1)
    report = await world.auditor.read(full=True)
    assert ("items", "lane") in {(finding.invariant, finding.kind) for finding in report.findings}
    assert any("have come from lane" in finding.says for finding in report.findings)
    await world.redis.hincrby(here, f"sent:{to}:{small}", 1)
    assert any("but was dealt" in finding.says for finding in (await world.auditor.read(full=True)).findings)
    await mend(world)
    report = await world.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())


async def test_a_sale_with_items_over_lanes_is_sound(world: World) -> None:
    await sell_sizes(world, 3)
    report: Any = await world.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())
    (told,) = [result for result in report.results if result.invariant.name == "items"]
    assert told.figures == "2 items"
