"""Which rounds are compared order by order, and when. Told by what was read, not by how long it took."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from seckill.audit import Auditor, Verdict, comparison_schedule, order_comparison
from seckill.audit import ledger as ledger_reader
from seckill.audit.counter_checks import Reading
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.errors import GateUnavailable
from seckill.operations.audit_watchdog import Watchdog
from tests.audit.conftest import World
from tests.audit.test_document import Told


class Watched:
    """An auditor with a clock of ours, and what it has compared since we last looked."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self._seen: list[int] = []
        self._portions = 0
        self.auditor = Auditor(world.auditor._ledger, world.auditor._gate, monotonic=lambda: self.now_s)
        right = order_comparison.compare_orders

        async def compare_orders(readings: Sequence[Reading], *args: Any) -> AsyncIterator[None]:
            self._seen += [reading.id for reading in readings]
            async for _ in right(readings, *args):
                self._portions += 1
                yield

        monkeypatch.setattr(comparison_schedule, "compare_orders", compare_orders)

    def compared(self) -> list[int]:
        seen, self._seen = self._seen, []
        return seen

    def portions(self) -> int:
        seen, self._portions = self._portions, 0
        return seen


@pytest.fixture
def ledger_url(sqlite_database: str) -> str:
    """It is about time, not about SQL."""
    return sqlite_database


@pytest.fixture
def watched(busy: World, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(busy, monkeypatch)


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of orders is not few, and each reading takes one step."""
    monkeypatch.setattr(comparison_schedule, "FEW", -1)
    monkeypatch.setattr(comparison_schedule, "AHEAD_S", 0.0)


async def open_another(world: World, *users: str) -> int:
    sale = await world.node.create(units=3)
    await world.node.refresh()
    for user in users:
        assert (await world.node.buy(sale, user)).status_code == 202
    await world.node.work()
    return int(sale["round"])


@pytest.mark.parametrize("gently", [False, True])
async def test_a_new_opening_compares_its_round_and_no_other(
    busy: World, watched: Watched, monkeypatch: pytest.MonkeyPatch, gently: bool
) -> None:
    monkeypatch.setattr(comparison_schedule, "AHEAD_S", 0.0)  # nothing but what there is a reason for
    await busy.sql("DELETE FROM order_events WHERE order_id = :id", id=busy.numbers["ann"])
    first = await watched.auditor.read(gently=gently)
    assert first.broken() == ["history"]
    assert watched.compared() == [busy.round_id] * 2, "and once more, because something was wrong"
    other = await open_another(busy)
    again = await watched.auditor.read(gently=gently)
    looked_wrong = {busy.round_id} if gently else set()  # whose step does not wait for its time
    assert set(watched.compared()) == {other} | looked_wrong
    assert again.findings == first.findings, "what is known of the others is kept"
    assert {each.figures for each in again.results} >= {"5 orders", "6 buyers", "2 rounds"}


async def test_what_has_vanished_vanishes(busy: World, watched: Watched) -> None:
    await open_another(busy)
    assert (await watched.auditor.read()).verdict is Verdict.HOLDS
    watched.compared()
    await busy.redis.hincrby(await busy.round_key(), "available", 1)
    await busy.sql("UPDATE rounds SET sold = sold + 1 WHERE id = :id", id=busy.round_id)
    assert (await watched.auditor.read()).broken() == ["stock", "counters"]
    assert set(watched.compared()) == {busy.round_id}, "only the one that looks wrong"
    await busy.redis.hincrby(await busy.round_key(), "available", -1)
    await busy.sql("UPDATE rounds SET sold = sold - 1 WHERE id = :id", id=busy.round_id)
    assert (await watched.auditor.read()).broken() == ["counters"], "known from the orders, until they are compared"
    watched.now_s += 3600
    assert (await watched.auditor.read()).verdict is Verdict.HOLDS


async def test_a_round_that_is_not_read_any_more_is_forgotten(busy: World, watched: Watched) -> None:
    await busy.sql("DELETE FROM order_events WHERE order_id = :id", id=busy.numbers["bob"])
    assert (await watched.auditor.read()).broken() == ["history"]
    await busy.sql("UPDATE rounds SET opened_ms = NULL")  # as if there had never been such a round
    report = await watched.auditor.read()
    assert (report.findings, report.units) == ([], ())


@pytest.mark.usefixtures("all_are_large")
async def test_in_small_steps_a_large_round_is_compared_to_its_end(
    busy: World, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A portion with each reading, and until all are through nothing is said of it."""
    monkeypatch.setattr(ledger_reader, "PORTION", 2)
    busy.auditor._ledger._portion = ledger_reader._select_portion()
    await busy.sql("DELETE FROM order_events WHERE order_id = :id", id=busy.numbers["ann"])
    verdicts = []
    for _ in range(20):
        watched.now_s += 3600
        report = await watched.auditor.read(gently=True)
        assert watched.portions() <= 1 or report.findings, "not more in one piece; a second look is not in pieces"
        verdicts.append(report.verdict)
        if report.verdict is Verdict.BROKEN:
            break
        assert report.reasons() == [f"the orders of round {busy.round_id} have not all been compared yet"]
        assert report.orders_at_ms == 0
    assert verdicts[0] is Verdict.UNKNOWN
    assert verdicts[-1] is Verdict.BROKEN
    assert len(verdicts) > 4, "of two orders each"
    await busy.redis.hdel(await busy.buyers_key(), "bob")
    assert set((await watched.auditor.read(gently=True)).broken()) >= {"admission"}, "what looks wrong is looked at now"


@pytest.mark.usefixtures("all_are_large")
async def test_a_comparison_that_is_not_through_yet_is_nothing_to_warn_of(
    busy: World, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_reader, "PORTION", 2)
    busy.auditor._ledger._portion = ledger_reader._select_portion()
    alarm = Told()
    desk = OperatorDesk(busy.engine.ledger, busy.engine.gate)
    watchdog = Watchdog(watched.auditor, alarm, busy.engine.ledger, desk)
    with capture_logs() as logs:
        assert (await watchdog.step()).verdict is Verdict.UNKNOWN
        assert (logs, alarm.facts) == ([], [])
        await busy.redis.delete(await busy.round_key())
        assert (await watchdog.step()).verdict is Verdict.UNKNOWN
    (warning,) = logs
    assert warning["event"] == "the audit could not tell", "of a round that is lost"
    assert not [reason for reason in warning["reasons"] if "compared yet" in reason]


@pytest.mark.usefixtures("all_are_large")
async def test_in_small_steps_a_small_round_does_not_wait_for_a_large_one(
    busy: World, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await open_another(busy)
    await watched.auditor.read()  # both are known
    monkeypatch.setattr(ledger_reader, "PORTION", 1)
    busy.auditor._ledger._portion = ledger_reader._select_portion()
    watched.compared()
    for _ in range(12):
        watched.now_s += 3600
        await watched.auditor.read(gently=True)
    compared = watched.compared()
    assert compared.count(busy.round_id) >= 1
    assert compared.count(other) > compared.count(busy.round_id)


@pytest.mark.parametrize("rest_s", [comparison_schedule.REST_S, 0.0])
async def test_what_was_compared_and_looked_right_rests_for_a_while(
    busy: World, watched: Watched, rest_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_schedule, "PARTS_OF_TIME", 0)  # so time is no reason to wait
    monkeypatch.setattr(comparison_schedule, "REST_S", rest_s)
    await watched.auditor.read()
    watched.compared()
    for _ in range(4):
        watched.now_s += 1
        await watched.auditor.read(gently=True)
    assert watched.compared() == ([] if rest_s else [busy.round_id] * 4)
    watched.now_s += 1
    await watched.auditor.read(gently=True)
    assert watched.compared() == [busy.round_id]


@pytest.mark.usefixtures("all_are_large")
async def test_few_rounds_are_being_compared_at_a_time_however_many_there_are(
    busy: World, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was begun holds some of its orders until its end. A keeper that had begun all would grow with them."""
    rounds = [busy.round_id, *[await open_another(busy, "gus", "hal", "ida") for _ in range(7)]]
    monkeypatch.setattr(ledger_reader, "PORTION", 1)
    busy.auditor._ledger._portion = ledger_reader._select_portion()
    under_way, compared = set(), set()
    for _ in range(60):
        watched.now_s += 3600
        await watched.auditor.read(gently=True)
        under_way.add(len(watched.auditor._schedule._walks))
        compared |= set(watched.compared())
    assert compared == set(rounds)
    assert max(under_way) <= 3


@pytest.mark.usefixtures("all_are_large")
async def test_a_round_that_is_rebuilt_while_it_is_compared_in_steps_is_begun_again(
    busy: World, watched: Watched
) -> None:
    await watched.auditor.read(gently=True)
    assert watched.compared() == [busy.round_id]
    await busy.sql("UPDATE rounds SET opened_ms = opened_ms + 1")
    await busy.redis.hincrby(await busy.round_key(), "opened_ms", 1)
    report = await watched.auditor.read(gently=True)
    while report.reasons():
        watched.now_s += 3600
        report = await watched.auditor.read(gently=True)
    assert report.verdict is Verdict.HOLDS
    assert len(watched.compared()) >= 1


@pytest.mark.usefixtures("all_are_large")
async def test_a_server_that_goes_away_in_the_middle_is_asked_again(
    busy: World, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = busy.auditor._gate
    right = gone.all_records

    def cut(_: Any) -> Any:
        raise GateUnavailable("The gate does not answer.")

    for gently in (False, True):
        monkeypatch.setattr(gone, "all_records", cut)
        for _ in range(3):
            watched.now_s += 3600
            report = await watched.auditor.read(gently=gently)
        assert (report.verdict, report.findings) == (Verdict.UNKNOWN, [])
        assert "The gate does not answer." in report.reasons()
        monkeypatch.setattr(gone, "all_records", right)
        for _ in range(5):
            watched.now_s += 3600
            report = await watched.auditor.read(gently=gently)
        assert report.verdict is Verdict.HOLDS


async def test_what_nobody_has_thought_of_is_no_verdict(
    busy: World, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds up no other round: only the one that it is about cannot be judged."""
    other = await open_another(busy)
    await busy.sql("DELETE FROM order_events WHERE order_id = :id", id=busy.numbers["ann"])
    right = order_comparison.compare_orders

    async def stumbles(readings: Sequence[Reading], *args: Any) -> AsyncIterator[None]:
        if any(reading.id == other for reading in readings):
            raise TypeError("of a kind that was never seen")
        async for _ in right(readings, *args):
            yield

    for gently in (False, True):
        monkeypatch.setattr(comparison_schedule, "compare_orders", stumbles)
        for _ in range(3):  # what has stumbled has not come to its end
            watched.now_s += 3600
            report = await watched.auditor.read(gently=gently)
            assert report.broken() == ["history"], "the other round is compared all the same"
            assert any("of a kind that was never seen" in reason for reason in report.reasons())
        monkeypatch.setattr(comparison_schedule, "compare_orders", right)
        watched.now_s += 3600
        assert not (await watched.auditor.read(gently=gently)).reasons()


async def test_a_suspicion_does_not_hold_up_the_others_for_long(
    busy: World, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watched.auditor.read(gently=True)
    costs = iter([0.0, 3600.0])  # an hour of CPU time
    monkeypatch.setattr("seckill.audit.comparison_schedule.time.process_time", lambda: next(costs, 3600.0))
    await busy.redis.hincrby(await busy.round_key(), "available", 1)
    await watched.auditor.read(gently=True)
    await busy.redis.hincrby(await busy.round_key(), "available", -1)
    monkeypatch.setattr(comparison_schedule, "FEW", -1)
    other = await open_another(busy)
    watched.compared()
    await watched.auditor.read(gently=True)
    assert watched.compared() == [other], "what is new goes on whatever was spent"
    watched.now_s += comparison_schedule.DEBT_S_MAX + 1
    await watched.auditor.read(gently=True)
    assert busy.round_id in watched.compared(), "and everything else soon after"


async def test_a_reason_counts_once_also_when_it_cannot_be_seen_meanwhile(busy: World, watched: Watched) -> None:
    """While something is queued, nobody can tell whether an admitted order is on its way or lost."""
    await watched.auditor.read(gently=True)
    for name in ("admitted", "total"):
        await busy.redis.hincrby(await busy.round_key(), name, 1)
    await watched.auditor.read(gently=True)
    assert watched.compared(), "the control: it is a reason"
    for _ in range(3):
        entry = await busy.redis.xadd(await busy.stream_key(), {"order": "being written"})
        await watched.auditor.read(gently=True)
        await busy.redis.xdel(await busy.stream_key(), entry)
        seen = len(watched.auditor._suspects(await watched.auditor._count_twice()))
        assert seen == 0
