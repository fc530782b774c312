"""Every flaw that can be planted by hand turns exactly its invariants red and is called by its name; then what can be
mended safely is mended, and the rest is left to people."""

import pytest

from seckill.audit import Report, Verdict
from seckill.audit.invariants import INVARIANTS
from tests.audit.conftest import World
from tests.audit.mending import check_nothing_was_sold_twice, mend, order_rows, plan
from tests.audit.planting import FORGED, PLANTINGS, ROUND, Planting

pytestmark = pytest.mark.usefixtures("a_second_passes")


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("planting", PLANTINGS, ids=lambda planting: planting.name)
async def test_a_planted_flaw_is_named(busy: World, planting: Planting) -> None:
    assert await busy.found() == {}
    await planting.plant(busy)
    report = await busy.auditor.read(full=True)
    check_names(busy, planting, report)
    before = await order_rows(busy)
    wanted = await plan(busy, report)
    assert await order_rows(busy) == before, "a plan changes nothing"
    if not planting.mended:
        assert wanted.for_people
        assert wanted.steps == [], "nothing is done that is not safe"
        return
    await mend(busy, wanted)
    report = await busy.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())
    await check_nothing_was_sold_twice(busy)
    after = await order_rows(busy)
    changed = {number for number in before if before[number] != after.get(number)}
    assert changed == ({busy.numbers["ann"]} if "unpaid long" in planting.name else set()), "no other order was touched"


@pytest.mark.parametrize(
    ("ledger_url", "planting"),
    [("mariadb", planting) for planting in PLANTINGS[::6]] + [("postgres", planting) for planting in PLANTINGS[3::6]],
    ids=lambda value: getattr(value, "name", value),
    indirect=["ledger_url"],
)
async def test_a_planted_flaw_is_named_on_a_server(busy: World, planting: Planting) -> None:
    """Some of them: the statements are the same, and so are the conclusions."""
    await test_a_planted_flaw_is_named(busy, planting)


def check_names(world: World, planting: Planting, report: Report) -> None:
    assert report.verdict is Verdict.BROKEN
    assert set(report.broken()) == set(planting.breaks), report.findings
    assert bool(report.reasons()) == planting.unsure, report.reasons()
    for invariant, who in planting.breaks.items():
        assert _names(world, who) & {
            name
            for finding in report.findings
            if finding.invariant == invariant
            for name in (finding.round_id, finding.number, finding.user)
        }


def _names(world: World, who: str) -> set[object]:
    """Any of these will do: an order by its number; a buyer, where no single order is at fault."""
    if who == ROUND:
        return {world.round_id}
    return {None} if who == "nobody" else {world.numbers.get(who, FORGED), who}


def test_every_invariant_has_a_planting() -> None:
    """An invariant that nothing can break checks nothing."""
    assert {name for planting in PLANTINGS for name in planting.breaks} == {each.name for each in INVARIANTS}
