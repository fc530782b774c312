"""The auditor behind Sentinel: a primary that was replaced may go on answering as one, with what it had then."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from seckill.audit import Auditor, Report, Verdict, auditor, open_auditor
from seckill.audit.lane_shares import read_rounds
from seckill.backends.redis import keys
from seckill.domain.sale import RoundStatus
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.lab.servers.cluster import LocalCluster
from seckill.lab.servers.replicated import until
from seckill.lab.servers.sentinel import LocalSentinel
from seckill.operations.audit_watchdog import Watchdog
from seckill.settings import Settings
from tests.api.conftest import keeping
from tests.audit.test_document import Told
from tests.cluster.conftest import Shop, make_settings, open_shop, working
from tests.fixtures.valkey import valkey_program
from tests.patience import PATIENCE_S

SOLD_BEFORE = 20


class Watch:
    """A keeper's audit, one reading after the other."""

    def __init__(self) -> None:
        self.alarm = Told()
        self.verdicts: list[Verdict] = []

    async def run(self, settings: Settings, shop: Shop) -> None:
        desk = OperatorDesk(shop.engine.ledger, shop.engine.gate)
        async with open_auditor(settings) as mine:
            watchdog = Watchdog(mine, self.alarm, shop.engine.ledger, desk, pauses=True)
            while True:
                self.verdicts.append((await watchdog.step()).verdict)
                await asyncio.sleep(0.1)

    async def until_it_holds_again(self) -> None:
        """Waits for two readings that begin from now on and find that everything holds."""
        begun = len(self.verdicts) + 1
        async with asyncio.timeout(PATIENCE_S):
            while self.verdicts[begun:].count(Verdict.HOLDS) < 2:
                assert Verdict.BROKEN not in self.verdicts, self.alarm.facts
                await asyncio.sleep(0.05)


@asynccontextmanager
async def watching(settings: Settings, shop: Shop) -> AsyncIterator[Watch]:
    watch = Watch()
    task = asyncio.create_task(watch.run(settings, shop))
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_told(looking: Auditor) -> Report:
    """The first reading that tells, whatever it tells."""
    async with asyncio.timeout(PATIENCE_S):
        while (report := await looking.read(full=True)).verdict is Verdict.UNKNOWN:
            await asyncio.sleep(0.05)
    return report


async def admitted_by_deposed(shop: Shop, sentinel: LocalSentinel) -> int:
    """Returns how many orders the first primary counts, while it still says that it is one."""
    primary, _ = sentinel.nodes
    assert (await primary.facts("replication"))["role"] == "master"
    (sale,) = await shop.engine.ledger.sales()
    return int(await primary.ask("HGET", keys.round_(sale.round.ref), "admitted"))


async def sell_some(shop: Shop, sentinel: LocalSentinel) -> None:
    for i in range(SOLD_BEFORE):
        assert await shop.insist(f"before{i}") == 202
    await shop.until_settled()
    primary, replica = sentinel.nodes
    await until("the replica has all", lambda: replica.has_all_of(primary))


async def depose(shop: Shop, sentinel: LocalSentinel, sells: int = 20) -> None:
    """The primary is silent until another one has taken its place and sold some, and then goes on as before."""
    # Sentinel tells it after eight seconds at the earliest. Here it never can, however long the test takes.
    primary, replica = sentinel.nodes
    await primary.ask("ACL", "SETUSER", "default", "-replicaof", "-slaveof")
    primary.pause()

    async def is_replaced() -> bool:
        return await sentinel.primary_of() is replica

    try:
        async with sentinel.noticing():
            await until("Sentinel names the replica", is_replaced)
        for i in range(sells):
            assert await shop.insist(f"after{i}") == 202
        await shop.until_settled()
    finally:
        primary.resume()  # otherwise a failure here leaves keeper and workers waiting for it


async def test_a_deposed_primary_that_still_answers_raises_no_alarm(sentinel: LocalSentinel, tmp_path: Path) -> None:
    settings = make_settings(sentinel.url, tmp_path, durability="fast")
    async with (
        open_shop(settings, units=1000) as shop,
        keeping(settings, shop.engine),
        working(shop),
        open_auditor(settings) as early,
        watching(settings, shop) as watch,
    ):
        await sell_some(shop, sentinel)
        assert (await until_told(early)).verdict is Verdict.HOLDS, "it is connected to the primary"
        await depose(shop, sentinel)
        assert await admitted_by_deposed(shop, sentinel) < len(await shop.rows()), "the window"
        await watch.until_it_holds_again()
        assert (await until_told(early)).verdict is Verdict.HOLDS
        assert await admitted_by_deposed(shop, sentinel) < len(await shop.rows()), "still open"
        assert Verdict.BROKEN not in watch.verdicts
        assert watch.alarm.facts == []
        (sale,) = await shop.engine.ledger.sales()
        assert sale.round.status is RoundStatus.OPEN
        assert await shop.insist("last") == 202


async def test_a_server_that_takes_over_again_is_not_believed_before_it_was_compared(
    sentinel: LocalSentinel, tmp_path: Path
) -> None:
    """It has the name that the keeper has vouched for, and the data of the server that was in its place."""
    settings = make_settings(sentinel.url, tmp_path, durability="fast")
    async with open_shop(settings, units=10) as shop, open_auditor(settings) as looking:
        assert (await until_told(looking)).verdict is Verdict.HOLDS
        primary = sentinel.nodes[0]
        home = keys.home(await shop.lane())
        vouched = (await primary.ask("GET", home)).decode()
        await primary.ask("SET", home, f"{vouched.partition(' ')[0]} {'0' * 40}")
        report = await looking.read(full=True)
        assert report.verdict is Verdict.UNKNOWN
        assert any("compare first" in reason for reason in report.reasons())
        await primary.ask("SET", home, vouched + keys.COMPARED_ONCE)
        report = await looking.read(full=True)
        assert report.verdict is Verdict.UNKNOWN, "a worker may still write what it had read from the server before"
        assert any("compares it once more" in reason for reason in report.reasons())
        await primary.ask("SET", home, vouched)
        assert (await until_told(looking)).verdict is Verdict.HOLDS


@pytest.fixture
async def torn_cluster() -> AsyncIterator[LocalCluster]:
    """One that need not be whole again afterwards."""
    with tempfile.TemporaryDirectory(prefix="sk") as folder:
        # No node takes another for dead by itself.
        made = LocalCluster(Path(folder), durability="fast", node_timeout_s=3600, program=valkey_program())
        try:
            await made.start()
            yield made
        finally:
            await made.stop()


async def test_a_node_of_a_cluster_that_was_deposed_and_cut_off_raises_no_alarm(
    torn_cluster: LocalCluster, tmp_path: Path
) -> None:
    settings = make_settings(torn_cluster.url, tmp_path, durability="fast")
    async with (
        open_shop(settings, units=1000) as shop,
        keeping(settings, shop.engine),
        working(shop),
        open_auditor(settings) as early,
        watching(settings, shop) as watch,
    ):
        (sale,) = await shop.engine.ledger.sales()
        key = keys.round_(sale.round.ref)
        primary = await torn_cluster.primary_of(key)
        replica = await torn_cluster.replica_of(primary)
        for i in range(SOLD_BEFORE):
            assert await shop.insist(f"before{i}") == 202
        await shop.until_settled()
        await until("the replica has all", lambda: replica.has_all_of(primary))
        assert (await until_told(early)).verdict is Verdict.HOLDS
        await torn_cluster.depose(primary)
        for i in range(20):
            assert await shop.insist(f"after{i}") == 202
        await shop.until_settled()
        primary.resume()
        assert int(await primary.ask("HGET", key, "admitted")) < len(await shop.rows()), "the window: it answers"
        await watch.until_it_holds_again()
        assert (await until_told(early)).verdict is Verdict.HOLDS
        assert int(await primary.ask("HGET", key, "admitted")) < len(await shop.rows()), "still open"
        assert Verdict.BROKEN not in watch.verdicts
        assert watch.alarm.facts == []


async def test_what_was_read_while_a_server_was_replaced_tells_nothing(
    sentinel: LocalSentinel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(sentinel.url, tmp_path, durability="fast")
    async with (
        open_shop(settings, units=1000) as shop,
        keeping(settings, shop.engine),
        working(shop),
        open_auditor(settings) as mine,
    ):
        await sell_some(shop, sentinel)

        async def late(*arguments: Any) -> Any:
            monkeypatch.setattr(auditor, "read_rounds", read_rounds)
            await depose(shop, sentinel)
            return await read_rounds(*arguments)

        monkeypatch.setattr(auditor, "read_rounds", late)
        assert (await mine.read()).verdict is Verdict.UNKNOWN
        assert (await until_told(mine)).verdict is Verdict.HOLDS


async def test_a_server_that_no_keeper_has_vouched_for_tells_nothing(sentinel: LocalSentinel, tmp_path: Path) -> None:
    """The replica lacks the newest orders when it takes over. It admits no one before the round is rebuilt."""
    settings = make_settings(sentinel.url, tmp_path, durability="fast")
    async with open_shop(settings, units=100) as shop, open_auditor(settings) as mine:
        primary, replica = sentinel.nodes
        for i in range(5):
            assert await shop.insist(f"early{i}") == 202
        await until("the replica has all", lambda: replica.has_all_of(primary))
        await sentinel.silence(primary)
        for i in range(5):
            assert await shop.insist(f"late{i}") == 202
        await shop.node.work()
        assert (await until_told(mine)).verdict is Verdict.HOLDS
        await sentinel.fail_over(primary)
        (sale,) = await shop.engine.ledger.sales()
        has = await replica.ask("HGET", keys.round_(sale.round.ref), "admitted")
        assert int(has) == 5 < len(await shop.rows()), "the window"
        async with asyncio.timeout(PATIENCE_S):
            while not any("which the keeper has to compare first" in each for each in (await read(mine)).reasons()):
                await asyncio.sleep(0.05)
        async with keeping(settings, shop.engine), working(shop):
            assert await shop.insist("new") == 202
            await shop.until_settled()
            assert (await until_told(mine)).verdict is Verdict.HOLDS


async def read(mine: Auditor) -> Report:
    report = await mine.read(full=True)
    assert report.verdict is Verdict.UNKNOWN, report.findings
    return report


@pytest.fixture
async def three_sentinels() -> AsyncIterator[LocalSentinel]:
    with tempfile.TemporaryDirectory(prefix="sk") as folder:
        made = LocalSentinel(Path(folder), sentinels=3, calm=True, program=valkey_program())
        try:
            await made.start()
            yield made
        finally:
            await made.stop()


async def test_a_minority_of_the_sentinels_is_not_believed(three_sentinels: LocalSentinel, tmp_path: Path) -> None:
    settings = make_settings(three_sentinels.url, tmp_path, durability="fast")
    async with open_shop(settings, units=100) as shop, open_auditor(settings) as mine:
        assert await shop.insist("ann") == 202
        await shop.node.work()
        assert (await until_told(mine)).verdict is Verdict.HOLDS
        pids = [sentinel.pid for sentinel in three_sentinels.sentinels]
        try:
            os.kill(pids[0], signal.SIGSTOP)
            assert (await until_told(mine)).verdict is Verdict.HOLDS, "two of three"
            os.kill(pids[1], signal.SIGSTOP)
            reasons = (await read(mine)).reasons()
            assert any("of 3 Sentinels, 1 answer" in reason for reason in reasons), reasons
        finally:
            for pid in pids[:2]:
                os.kill(pid, signal.SIGCONT)
        assert (await until_told(mine)).verdict is Verdict.HOLDS
