"""The audit and limits that several share: no buyer is above it, and the audit finds nothing where they are kept."""

from dataclasses import dataclass
from typing import Any

import pytest

from seckill.audit import Verdict
from tests.api.test_audience import press
from tests.audit.conftest import World


@dataclass
class Mugs:
    world: World
    sales: dict[str, dict[str, Any]]

    async def sell(self, *orders: tuple[str, str, str]) -> None:
        """Each: the sale, the buyer, the buyer's household."""
        for sale, user, home in orders:
            assert (await press(self.world.node.http, self.sales[sale], user, household=home)).status_code == 202
        await self.world.node.work()

    async def findings(self) -> set[tuple[str, str, str | None]]:
        report = await self.world.auditor.read(full=True)
        assert report.verdict is not Verdict.UNKNOWN
        return {(each.invariant, each.kind, each.user) for result in report.results for each in result.findings}


@pytest.fixture
async def mugs(world: World) -> Mugs:
    """Two sales that share a limit of two, by household, and one alone."""
    facts: dict[str, Any] = {"units": 20, "limit_per_buyer": 2, "limit_by": "household"}
    shared = facts | {"limit_group": "mug"}
    create = world.node.create
    sales = {"red": await create(**shared), "blue": await create(**shared), "alone": await create(**facts)}
    mugs = Mugs(world, sales)
    await mugs.sell(("red", "ann", "h"), ("blue", "bob", "h"), ("red", "cid", "i"), ("alone", "ann", "h"))
    return mugs


async def test_what_is_shared_and_kept_is_sound(mugs: Mugs) -> None:
    await mugs.sell(("blue", "cid", "i"))
    assert await mugs.findings() == set()


async def test_a_person_with_too_much_in_several_sales_is_named(mugs: Mugs) -> None:
    """cid turns out to have been of ann's and bob's house all along."""
    await mugs.world.sql("UPDATE orders SET person = 'h' WHERE user_id = 'cid'")
    assert await mugs.findings() == {("limit", "shared", "ann")}, "who comes first by name stands for all"


async def test_a_person_with_too_much_in_one_sale_is_named(mugs: Mugs) -> None:
    await mugs.sell(("alone", "dan", "j"), ("alone", "eve", "j"))
    await mugs.world.sql("UPDATE orders SET person = 'h' WHERE person = 'j'")
    assert await mugs.findings() == {("limit", "shared", "ann")}


async def test_a_buyer_with_too_much_in_several_sales_is_named(mugs: Mugs) -> None:
    """A sale was put into a group to which it did not belong."""
    await mugs.sell(("alone", "cid", "k"), ("blue", "cid", "i"))
    alone = int(mugs.sales["alone"]["round"])
    await mugs.world.sql("UPDATE rounds SET limit_group = 'mug' WHERE id = :id", id=alone)
    assert ("limit", "shared", "cid") in await mugs.findings()
