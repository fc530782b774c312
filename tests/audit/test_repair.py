"""Repairs in odd places: a gate that forgot everything, an order that is refused, a kill in the middle."""

import os
import subprocess
import sys
from typing import Any

import pytest

from seckill.audit import Verdict
from tests.api.conftest import OPERATOR, buyer
from tests.audit.conftest import World
from tests.audit.mending import check_nothing_was_sold_twice, mend, mender, plan
from tests.audit.planting import both, delete_entry, in_gate, record, sql
from tests.patience import PATIENCE_S


async def test_a_gate_that_lost_everything_is_rebuilt(busy: World) -> None:
    await busy.node.work()
    await busy.redis.flushall()
    report = await busy.auditor.read(full=True)
    assert report.verdict is Verdict.UNKNOWN
    assert report.reasons() == [f"the gate does not have round {busy.round_id}"]
    assert len(await mend(busy)) == 1
    report = await busy.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())
    await check_nothing_was_sold_twice(busy)


async def test_an_order_that_the_ledger_refuses_goes_the_way_of_all(busy: World) -> None:
    """Lost, and in the meantime there is no room for it in the ledger."""
    await delete_entry(busy)
    await busy.sql("UPDATE orders SET quantity = 19 WHERE id = :id", id=busy.numbers["ann"])
    await busy.sql("UPDATE rounds SET sold = sold + 18, written = written + 18")
    report = await busy.auditor.read(full=True)
    (lost,) = [finding for finding in report.findings if finding.invariant == "lost"]
    await mender(busy)._write(lost)
    [(number, state)] = await busy.query("SELECT order_id, state FROM dead_letters")
    assert (number, state) == (busy.numbers["fay"], "retrying")


@pytest.mark.parametrize("wrong", ["sold = sold + 1", "written = written - 1", "written = written + 1"])
async def test_a_wrong_counter_is_no_reason_to_rebuild(busy: World, wrong: str) -> None:
    """Beside it the gate looks wrong: it seems to have given back or admitted what the ledger has not."""
    await busy.node.work()
    await busy.release_desk.pass_on()
    await busy.sql(f"UPDATE rounds SET {wrong}")
    found = await busy.found()
    assert found.keys() == {"counters", "give_back" if wrong != "written = written + 1" else "admission"}
    wanted = await plan(busy)
    assert wanted.for_people == []
    (says,) = await mend(busy)
    assert "Set the counters" in says
    assert await busy.found() == {}
    (sale,) = await busy.engine.ledger.sales()
    assert sale.round.epoch == 1, "it sold on all the time"


async def test_a_gate_that_is_wrong_as_well_is_rebuilt_all_the_same(busy: World) -> None:
    await busy.node.work()
    await busy.release_desk.pass_on()
    await in_gate(admitted=-3, available=3)(busy)
    await busy.sql("UPDATE rounds SET sold = sold + 1")
    assert [says.split()[0] for says in await mend(busy)] == ["Set", "Close"]
    assert await busy.found() == {}
    await check_nothing_was_sold_twice(busy)


WINDOWS = [
    "repair.step.before",
    "repair.step.after",
    "repair.record.after",
    "repair.fence.after",
    "keeper.epoch.after",
    "keeper.fill.before",
]


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)  # which database it is makes no difference here
@pytest.mark.parametrize("window", WINDOWS)
async def test_a_repair_that_is_killed_is_begun_again(busy: World, window: str) -> None:
    several = both(
        delete_entry,
        in_gate(available=1),
        sql("UPDATE outbox SET done_ms = 1 WHERE order_id = :id", of="eve"),
        record("zoe", lambda _: "x"),
    )
    await several(busy)
    await busy.sql("UPDATE rounds SET sold = sold + 1")
    assert _repair(busy, SECKILL_FAILPOINTS=f"{window}=kill") == -9, "the window was hit"
    assert _repair(busy) == 0
    report = await busy.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())
    await check_nothing_was_sold_twice(busy)


def _repair(world: World, **environ: str) -> int:
    settings = world.settings
    environ |= {
        "SECKILL_REDIS_URL": settings.redis_url,
        "SECKILL_DATABASE_URL": settings.database_url,
        "SECKILL_DURABILITY": "fast",
        "SECKILL_CLAIM_IDLE_S": "0.1",
    }
    command = [sys.executable, "-m", "seckill", "repair", "--apply"]
    done = subprocess.run(
        command, env=os.environ | environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    print(done.stdout, done.stderr)  # noqa: T201 (shown if the test fails)
    return done.returncode


async def test_operators_repair_over_http_when_they_say_so(busy: World) -> None:
    await busy.node.work()
    await in_gate(available=-1)(busy)

    async def repair(**body: bool) -> dict[str, Any]:
        response = await busy.node.http.post("/v1/admin/repair", json=body, headers=OPERATOR)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    for _ in range(2):
        would = await repair()
        assert (would["done"], len(would["to_do"]), would["audit"]["verdict"]) == ([], 1, "broken")
    done = await repair(apply=True)
    assert (done["done"], done["to_do"], done["audit"]["verdict"]) == (would["to_do"], [], "holds")
    assert await busy.found() == {}
    for headers, status in (({}, 401), (buyer("ann"), 403)):
        assert (await busy.node.http.post("/v1/admin/repair", headers=headers)).status_code == status
    assert (await busy.node.http.post("/v1/admin/repair", json={"apply": 1}, headers=OPERATOR)).status_code == 422
