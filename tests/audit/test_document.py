"""The audit reports to operators over HTTP and on the command line, and through the keeper."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from seckill.domain.sale import RoundStatus
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.errors import LedgerUnavailable
from seckill.operations.audit_watchdog import Watchdog
from seckill.ports.ledger import Ledger
from seckill.telemetry import AUDIT_FINDINGS
from tests.api.conftest import OPERATOR, buyer
from tests.audit.conftest import World
from tests.audit.planting import delete_entry, forget_buyer, record
from tests.patience import PATIENCE_S


class Told(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.facts: list[Any] = []
        self.resolved: list[Any] = []

    async def raise_(self, what: str, facts: Any, *, lasting: bool = False) -> None:
        self.facts.append(facts)

    async def resolve(self, what: str, facts: Any, *, ends: str = "") -> None:
        self.resolved.append(facts)


async def test_operators_see_it_over_http(busy: World) -> None:
    sound = (await busy.node.http.get("/v1/admin/audit", headers=OPERATOR)).json()
    assert sound["verdict"] == "holds"
    await forget_buyer(busy)
    answer = await busy.node.http.get("/v1/admin/audit?full=true", headers=OPERATOR)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    said = answer.json()
    assert said["verdict"] == "broken"
    (admission,) = [each for each in said["invariants"] if each["name"] == "admission"]
    (finding,) = admission["findings"]
    assert finding["order_id"] == busy.engine.order_ids.encode(busy.numbers["ann"])
    assert (finding["user"], finding["sale_id"], finding["round"]) == ("ann", busy.sale["id"], busy.sale["round"])
    assert finding["order_number"] == str(busy.numbers["ann"])


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_a_finding_says_what_differs(busy: World) -> None:
    await record("ann", lambda text: ":".join([*text.split(":")[:4], "other", "1"]))(busy)
    await busy.sql("UPDATE orders SET slot = 9, active_slot = 9 WHERE id = :id", id=busy.numbers["bob"])
    [(request_id,)] = await busy.query("SELECT request_id FROM orders WHERE id = :id", id=busy.numbers["ann"])
    assert {finding.user: finding.says for finding in (await busy.found())["orders"]} == {
        "ann": f"has the request id {request_id} in the ledger, other in the gate",
        "bob": "has 1 units in slot 9 in the ledger, 1 in 1 in the gate",
    }


async def test_it_is_for_operators_only(busy: World) -> None:
    assert (await busy.node.http.get("/v1/admin/audit")).status_code == 401
    assert (await busy.node.http.get("/v1/admin/audit", headers=buyer("ann"))).status_code == 403


async def test_the_keeper_tells_once_and_pauses_if_it_is_told_to(busy: World) -> None:
    alarm, desk = Told(), OperatorDesk(busy.engine.ledger, busy.engine.gate)
    assert busy.engine.auditor is not None
    watchdog = Watchdog(busy.engine.auditor, alarm, busy.engine.ledger, desk, pauses=True)
    await watchdog.step()
    assert alarm.facts == []
    await delete_entry(busy)
    for _ in range(3):
        await watchdog.step()
    (facts,) = alarm.facts
    assert (facts["invariant"], facts["round"], facts["found"]) == ("lost", busy.round_id, 1)
    assert busy.engine.order_ids.encode(busy.numbers["fay"]) in facts["findings"][0]
    assert AUDIT_FINDINGS.labels("lost")._value.get() == 1
    (sale,) = await busy.engine.ledger.sales()
    assert sale.round.status is RoundStatus.PAUSED


class AwayOnce:
    """A ledger that does not answer the first question about a sale."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.asked = 0
        self.rounds_of_audit = ledger.rounds_of_audit

    async def sale(self, *arguments: Any) -> Any:
        self.asked += 1
        if self.asked == 1:
            raise LedgerUnavailable("The ledger does not answer.")
        return await self._ledger.sale(*arguments)


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_what_could_not_be_paused_is_paused_at_the_next_reading(busy: World) -> None:
    alarm, desk = Told(), OperatorDesk(busy.engine.ledger, busy.engine.gate)
    ledger: Any = AwayOnce(busy.engine.ledger)
    assert busy.engine.auditor is not None
    watchdog = Watchdog(busy.engine.auditor, alarm, ledger, desk, pauses=True)
    await delete_entry(busy)
    statuses = []
    for _ in range(3):
        await watchdog.step()
        statuses += [sale.round.status for sale in await busy.engine.ledger.sales()]
    assert statuses == [RoundStatus.OPEN, RoundStatus.PAUSED, RoundStatus.PAUSED]
    assert (ledger.asked, len(alarm.facts)) == (2, 1), "paused once, told once"


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_what_was_mended_before_it_could_be_paused_stays_open(busy: World) -> None:
    ledger: Any = AwayOnce(busy.engine.ledger)
    assert busy.engine.auditor is not None
    desk = OperatorDesk(busy.engine.ledger, busy.engine.gate)
    watchdog = Watchdog(busy.engine.auditor, Told(), ledger, desk, pauses=True)
    for by in (1, -1):
        await busy.redis.hincrby(await busy.round_key(), "available", by)
        await watchdog.step()
    (sale,) = await busy.engine.ledger.sales()
    assert (ledger.asked, sale.round.status) == (1, RoundStatus.OPEN)


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_the_sale_is_paused_before_anybody_is_told(busy: World) -> None:
    """Telling may take long."""
    statuses = []

    class Late(Alarm):
        async def raise_(self, what: str, facts: Any, *, lasting: bool = False) -> None:
            statuses.extend([sale.round.status for sale in await busy.engine.ledger.sales()])

    assert busy.engine.auditor is not None
    desk = OperatorDesk(busy.engine.ledger, busy.engine.gate)
    await delete_entry(busy)
    await Watchdog(busy.engine.auditor, Late(""), busy.engine.ledger, desk, pauses=True).step()
    assert statuses == [RoundStatus.PAUSED]


async def test_what_only_waits_pauses_nothing(busy: World) -> None:
    await busy.sql("UPDATE outbox SET created_ms = 0 WHERE done_ms IS NULL")
    alarm = Told()
    desk = OperatorDesk(busy.engine.ledger, busy.engine.gate)
    assert busy.engine.auditor is not None
    await Watchdog(busy.engine.auditor, alarm, busy.engine.ledger, desk, pauses=True).step()
    assert [facts["invariant"] for facts in alarm.facts] == ["progress"]
    (sale,) = await busy.engine.ledger.sales()
    assert sale.round.status is RoundStatus.OPEN


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)  # what they print is the same on both
async def test_the_commands(busy: World) -> None:
    await busy.release_desk.pass_on()  # so that nothing waits for long, however long this takes
    assert run(busy, "audit")[0] == 0
    code, output = run(busy, "repair")
    assert (code, "Nothing to mend." in output) == (0, True)
    await delete_entry(busy)
    order_id = busy.engine.order_ids.encode(busy.numbers["fay"])
    code, output = run(busy, "audit")
    assert (code, order_id in output, "BROKEN" in output) == (1, True, True)
    code, output = run(busy, "repair", "--json")
    assert (code, json.loads(output)["done"]) == (1, [])
    assert order_id in json.loads(output)["to_do"][0]
    assert run(busy, "audit")[0] == 1, "saying is not doing"
    code, output = run(busy, "repair", "--apply")
    assert (code, "Mended." in output) == (0, True)
    code, output = run(busy, "audit", "--json")
    assert (code, json.loads(output)["verdict"]) == (0, "holds")
    await busy.redis.delete(await busy.round_key())
    code, output = run(busy, "audit")
    assert (code, "could not tell" in output) == (2, True)


def run(world: World, *arguments: str) -> tuple[int, str]:
    settings = world.settings
    environ = {
        "SECKILL_REDIS_URL": settings.redis_url,
        "SECKILL_DATABASE_URL": settings.database_url,
        "SECKILL_DURABILITY": "fast",
    }
    done = subprocess.run(
        [sys.executable, "-m", "seckill", *arguments],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout
