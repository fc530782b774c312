"""The audit finds a sound sale sound, also at odd moments, and calls what it cannot see unknown."""

from dataclasses import replace

import pytest

from seckill.audit import Auditor, Verdict, open_auditor
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.orders.dead_letters import DeadLetterDesk
from tests.api.conftest import OPERATOR, buyer
from tests.audit.conftest import World
from tests.backends.sql.making import draft
from tests.making import use_cases


async def test_orders_in_every_state(busy: World) -> None:
    assert await busy.found() == {}
    report = await busy.auditor.read(full=True)
    (units,) = report.units
    assert (units.total, units.available, units.queued, units.live, units.returning) == (20, 16, 1, 2, 1)
    assert {result.figures for result in report.results} >= {"5 orders", "6 buyers", "1 entry", "1 round"}


async def test_free_orders(world: World) -> None:
    world.sale = await world.node.create(units=5, price_cents=0)
    await world.node.refresh()
    await world.sell("ann", "bob")
    await world.node.work()
    assert await world.found() == {}


async def test_a_limit_that_was_lowered_later(busy: World) -> None:
    """A buyer who bought when the limit was higher is not above it."""
    await busy.sell("gil", quantity=2)
    await busy.node.work()
    for limit in (1, 3, 1):
        changed = await busy.node.http.patch(
            f"/v1/sales/{busy.sale['id']}", json={"limit_per_buyer": limit}, headers=OPERATOR
        )
        assert changed.status_code == 200
        assert await busy.found() == {}


async def test_changed_by_operators(busy: World) -> None:
    changed = await busy.node.http.patch(f"/v1/sales/{busy.sale['id']}", json={"add_units": 3}, headers=OPERATOR)
    assert changed.status_code == 200
    for verb in ("pause", "resume", "close"):
        assert (await busy.node.http.post(f"/v1/sales/{busy.sale['id']}/{verb}", headers=OPERATOR)).status_code == 200
        assert await busy.found() == {}


async def test_a_window_that_is_being_changed(busy: World) -> None:
    """The ledger knows it first, the gate a moment later: neither moment is a finding."""
    for field, value in (("ends_at", "2100-01-01T00:00:00Z"), ("ends_at", "2099-01-01T00:00:00Z"), ("cool_down_s", 5)):
        changed = await busy.node.http.patch(f"/v1/sales/{busy.sale['id']}", json={field: value}, headers=OPERATOR)
        assert changed.status_code == 200, changed.text
        assert await busy.found() == {}
    await busy.sql("UPDATE rounds SET ends_ms = ends_ms + 1000, revision = revision + 1")
    assert await busy.found() == {}, "on its way to the gate"


async def test_lapses_of_every_kind(busy: World) -> None:
    """A second one of the same buyer, decided and not relayed, then relayed."""
    await busy.sql("UPDATE rounds SET cool_down_s = 1, revision = revision + 1")
    await busy.redis.hset(await busy.round_key(), mapping={"cool_down_s": 1, "revision": 2})
    await busy.redis.hset(await busy.buyers_key(), "cid", "~1:1:0")
    await busy.sql("UPDATE orders SET closed_ms = 1 WHERE user_id = 'cid'")
    assert await busy.found() == {}
    response = await busy.node.buy(busy.sale, "cid", key="again")
    assert response.status_code == 202, response.text
    await busy.node.work()
    await busy.node.http.post(f"/v1/orders/{response.json()['order_id']}/cancel", headers=buyer("cid"))
    assert await busy.found() == {}, "decided, not relayed"
    await busy.release_desk.pass_on()
    assert await busy.found() == {}


async def test_a_round_that_nobody_has_opened_yet(world: World) -> None:
    await world.engine.ledger.create_sale(draft(), lane=1)
    assert await world.found() == {}


async def test_given_up_orders(busy: World) -> None:
    """Refused by the ledger: tried again, failed, released; and one that cannot even be read."""
    await busy.sql("UPDATE rounds SET epoch = 9")
    await busy.redis.xadd(await busy.stream_key(), {"order": "{"})
    await busy.node.work()
    await busy.sql("UPDATE rounds SET epoch = 1")
    assert await busy.found() == {}, "set aside, and tried again"
    await busy.sql("UPDATE dead_letters SET payload = replace(payload, :old, :new)", old='"epoch":1', new='"epoch":7')
    failures = DeadLetterDesk(busy.engine.ledger, Alarm(""), (0.0,))
    while await failures.retry_due():
        pass
    assert await busy.found() == {}, "given up, not relayed"
    await busy.release_desk.pass_on()
    assert await busy.found() == {}
    [(failed,)] = await busy.query("SELECT count(*) FROM orders WHERE state = 'failed'")
    assert failed == 1


async def test_a_rebuilt_gate_and_what_was_queued_before(busy: World) -> None:
    """Entries of the old epoch are void. Those given up afterwards have a row that the gate knows nothing of."""
    in_hand = await busy.engine.transport.read(10, 0)
    await busy.redis.flushall()
    engine = busy.engine
    keeper = use_cases(engine).keeper
    report = await busy.auditor.read(full=True)
    assert (report.verdict, report.findings) == (Verdict.UNKNOWN, [])
    while not await keeper.recovery.rebuild_losses():
        await keeper.queues.measure_backlog()
    await busy.node.refresh()
    assert await busy.found() == {}
    await busy.node.worker.record(in_hand)
    assert await busy.found() == {}
    failures = DeadLetterDesk(engine.ledger, Alarm(""), (0.0,))
    while await failures.retry_due():
        pass
    await busy.release_desk.pass_on()
    await busy.sell("gil")
    assert await busy.found() == {}
    await busy.node.work()
    assert await busy.found() == {}


async def test_a_fenced_round_cannot_be_judged(busy: World) -> None:
    (sale,) = await busy.engine.ledger.sales()
    await busy.engine.gate.fence(sale.round)
    report = await busy.auditor.read(full=True)
    assert (report.verdict, report.findings) == (Verdict.UNKNOWN, [])
    assert report.reasons() == [f"round {busy.round_id} is being opened or rebuilt: the gate admits nobody"]
    assert {result.invariant.name for result in report.results if result.verdict is Verdict.HOLDS} >= {
        "counters",
        "history",
        "time",
    }


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)  # it is about the gate
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (b"sent:x", b"1", "has sent:x in the gate, which names no lane"),
        (b"got:" + b"1" * 5000, b"1", "in the gate, which names no lane"),
        (b"sent:\xff", b"1", "has sent:\ufffd in the gate, which names no lane"),
        (b"sent:1", b"\xff", "has something else as its sent:1 in the gate"),
        (b"total", b"\xff", "has something else as its total in the gate"),
        (b"total", b"1" * 5000, "has something else as its total in the gate"),
    ],
)
async def test_a_round_that_cannot_be_read_cannot_be_judged(
    busy: World, name: bytes, value: bytes, reason: str
) -> None:
    await busy.redis.hset(await busy.round_key(), name, value)
    report = await busy.auditor.read(full=True)
    (finding,) = report.findings
    assert (finding.invariant, finding.kind, finding.round_id) == ("progress", "damaged", busy.round_id)
    (said,) = report.reasons()
    assert said.startswith(f"round {busy.round_id} ")
    assert said.endswith(reason)
    assert finding.says.startswith(said)
    assert "history" not in {result.invariant.name for result in report.results if result.reasons}


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
async def test_what_no_round_has_harms_nobody(busy: World) -> None:
    await busy.redis.hset(await busy.round_key(), b"\xff", b"\xfe")
    assert await busy.found() == {}
    await busy.redis.set("seckill:ledger", b"\xff")
    assert "another database" in (await busy.auditor.read(full=True)).reasons()[0]


async def test_servers_that_do_not_answer(busy: World) -> None:
    gone = "redis://127.0.0.1:1/0"
    async with open_auditor(replace(busy.settings, redis_url=gone)) as auditor:
        report = await auditor.read(full=True)
        assert (report.verdict, report.findings) == (Verdict.UNKNOWN, [])
        assert "The gate does not answer" in report.reasons()[0]
        (progress,) = [result for result in report.results if result.invariant.name == "progress"]
        assert progress.verdict is Verdict.UNKNOWN, "what waits in the queue cannot be known"
    async with open_auditor(replace(busy.settings, database_url="sqlite:////nowhere/ledger.db")) as auditor:
        report = await auditor.read(full=True)
        assert (report.verdict, report.findings) == (Verdict.UNKNOWN, [])
        assert "The ledger does not answer" in report.reasons()[0]


async def test_a_gate_that_does_not_answer_is_said_also_when_nothing_is_on_sale(busy: World) -> None:
    await busy.sql("UPDATE rounds SET opened_ms = NULL, retired_ms = 1")
    async with open_auditor(replace(busy.settings, redis_url="redis://127.0.0.1:1/0")) as auditor:
        report = await auditor.read(full=True)
    assert (report.units, report.verdict) == ((), Verdict.UNKNOWN)
    assert "does not answer" in report.reasons()[0]


async def test_it_is_told_as_soon_as_the_gate_is_back(busy: World) -> None:
    """Although what waits for long is not looked for at every reading."""
    kept = await busy.redis.hgetall(await busy.round_key())
    await busy.redis.delete(await busy.round_key())
    verdicts = []
    for _ in range(2):
        report = await busy.auditor.read()
        verdicts += [result.verdict for result in report.results if result.invariant.name == "progress"]
        await busy.redis.hset(await busy.round_key(), mapping=kept)
    assert verdicts == [Verdict.UNKNOWN, Verdict.HOLDS]


async def test_a_gate_of_another_ledger_is_not_compared(busy: World) -> None:
    await busy.redis.set("seckill:ledger", "another")
    report = await busy.auditor.read(full=True)
    assert (report.verdict, report.findings) == (Verdict.UNKNOWN, [])
    assert "another database" in report.reasons()[0]


async def test_the_auditor_cannot_write(busy: World) -> None:
    """It cannot even by mistake."""
    database = busy.auditor._ledger.database
    for statement in ("DELETE FROM orders", "UPDATE rounds SET sold = 0"):
        try:
            async with database.snapshot() as connection:
                await connection.exec_driver_sql(statement)
        except Exception as error:
            assert "read" in str(error)  # noqa: PT017 (each database has an error of its own)
        else:
            raise AssertionError(statement)
    assert await busy.found() == {}


async def test_readings_without_a_change_compare_the_orders_seldom(busy: World) -> None:
    """A hundredth of the time: not again at once, and again when the time has come."""
    now_s = 0.0
    auditor = Auditor(busy.auditor._ledger, busy.auditor._gate, monotonic=lambda: now_s)
    first = await auditor.read()
    again = await auditor.read()
    assert again.orders_at_ms == first.orders_at_ms
    await busy.sql("DELETE FROM order_events WHERE order_id = :id", id=busy.numbers["ann"])
    assert (await auditor.read()).verdict is Verdict.HOLDS, "no counter tells of it"
    now_s += 3600
    assert (await auditor.read()).broken() == ["history"]
    await busy.redis.hincrby(await busy.round_key(), "available", 1)
    assert (await auditor.read()).broken() == ["stock", "history"], "counters are read every time"


async def test_a_round_that_was_closed_while_the_gate_kept_it_shut(world: World) -> None:
    """No keeper rebuilds a closed round in which nothing moves, and nothing of it can be wrong."""
    (sale,) = await world.engine.ledger.sales()
    await world.engine.gate.fence(sale.round)
    report = await world.auditor.read(full=True)
    assert report.verdict is Verdict.UNKNOWN
    assert report.lost == ((sale.round.id, sale.id),)
    await world.node.http.post(f"/v1/sales/{world.sale['id']}/close", headers=OPERATOR)
    report = await world.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS
    assert report.lost == ()
