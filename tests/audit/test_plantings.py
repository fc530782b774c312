"""Every flaw that can be planted by hand turns exactly its invariants red, and is called by its name."""

import pytest

from seckill.audit import Verdict
from seckill.audit.report import INVARIANTS
from tests.audit.conftest import World
from tests.audit.planting import FORGED, PLANTINGS, ROUND, Planting


@pytest.mark.parametrize("planting", PLANTINGS, ids=lambda planting: planting.name)
async def test_a_planted_flaw_is_named(busy: World, planting: Planting) -> None:
    assert await busy.found() == {}
    await planting.plant(busy)
    report = await busy.auditor.read(full=True)
    assert report.verdict is Verdict.BROKEN
    assert set(report.broken()) == set(planting.breaks), report.findings
    assert bool(report.reasons()) == planting.unsure, report.reasons()
    for invariant, who in planting.breaks.items():
        assert _names(busy, who) & {
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
