"""What is sound is found to be sound, also in the odd moments."""

from seckill.audit import Verdict
from tests.audit.conftest import World


async def test_orders_in_every_state(busy: World) -> None:
    report = await busy.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())
    (units,) = report.units
    assert (units.total, units.available, units.queued, units.live, units.returning) == (20, 16, 1, 2, 1)
