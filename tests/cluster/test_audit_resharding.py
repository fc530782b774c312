"""While slots move, and while the cluster is down, all that read it say that they cannot tell. Then they tell."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import exceptions

from seckill.audit import Auditor, Verdict, open_auditor
from seckill.backends.redis import keys
from seckill.errors import SeckillError
from seckill.lab.servers.cluster import LocalCluster
from seckill.lab.servers.replicated import until
from seckill.operations.audit_watchdog import Watchdog
from seckill.operations.doctor.gate import examine_gate
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, buyer, keeping
from tests.audit.test_document import Told
from tests.cluster.conftest import Shop, make_settings, open_shop, working
from tests.e2e.test_up import seckill
from tests.making import use_cases
from tests.patience import PATIENCE_S

Ask = Callable[[], Awaitable[object]]


class Askers:
    """Everything that reads the gate by itself or because it is asked to."""

    def __init__(self, shop: Shop, auditor: Auditor) -> None:
        engine = shop.engine
        use = use_cases(engine)
        self.sale_cache = use.sale_cache
        self.shop = shop
        self.auditor = auditor
        self.alarm = Told()
        self.watchdog = Watchdog(auditor, self.alarm, engine.ledger, use.operator_desk, pauses=True)
        self.keeper = use.keeper
        self.release_desk = use.release_desk

    async def ask_all(self) -> None:
        """If one of them fails, it is with an error that we know."""
        for ask in self._by_themselves():
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await ask()
            except SeckillError:
                pass
        for path, statuses in self._over_http():
            method = "POST" if path.endswith("repair") else "GET"
            headers = buyer("queued") if "/orders" in path else OPERATOR
            response = await self.shop.node.http.request(method, path, headers=headers)
            assert response.status_code in statuses, (path, response.text)
        assert await self.shop.buy("queued") in (202, 503)

    def _by_themselves(self) -> list[Ask]:
        keeper, engine = self.keeper, self.shop.engine
        lane = range(self.shop.settings.lanes)
        return [
            self.watchdog.step,
            self.sale_cache.refresh_sales,
            keeper.opener.step,
            keeper.recovery.losses.find,
            keeper.recovery.look_after_lanes,
            keeper.queues.measure_backlog,
            keeper.queues.retire_consumers,
            keeper.sale_cache.gate_time_ms,
            lambda: keeper.retirement.step(keeper.sale_cache.now_ms()),
            self.release_desk.pass_on,
            lambda: engine.transport.read(10, 0.05),
            lambda: engine.transport.take_over(3600, 10),
            lambda: engine.board.waiting(lane),
            engine.board.reports,
            engine.gate.ping,
            lambda: engine.gate.check("fast"),
            lambda: examine_gate(self.shop.settings.redis_url, "fast"),
        ]

    def _over_http(self) -> list[tuple[str, tuple[int, ...]]]:
        sale, order = self.shop.sale["id"], self.shop.accepted["queued"]
        return [
            ("/v1/admin/audit?full=true", (200,)),
            ("/v1/admin/repair", (200, 503)),
            (f"/v1/sales/{sale}/custody", (200, 503)),
            ("/v1/admin/live", (200, 503)),
            ("/readyz", (200, 503)),
            (f"/v1/orders/{order}", (200, 503)),
            ("/v1/orders", (200, 503)),
        ]

    async def verdict(self) -> Verdict:
        report = await self.auditor.read(full=True)
        assert report.findings == []
        return report.verdict

    async def until_told(self) -> None:
        """Waits until the audit says that everything holds."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.verdict() is Verdict.UNKNOWN:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def asked_shop(settings: Settings) -> AsyncIterator[Askers]:
    """A shop with orders that are written and one that is queued."""
    async with open_shop(settings, units=100) as shop, open_auditor(settings) as auditor:
        for i in range(10):
            assert await shop.insist(f"early{i}") == 202
        await shop.node.work()
        assert await shop.insist("queued") == 202
        askers = Askers(shop, auditor)
        await askers.ask_all()
        await askers.until_told()
        yield askers
        assert askers.alarm.facts == []
        (sale,) = await shop.engine.ledger.sales()
        assert (sale.round.epoch, sale.round.status) == (1, "open"), "nothing was taken for lost"


@pytest.mark.parametrize("last", ["home", "days", "buyers"])
async def test_audits_in_every_state_of_a_slot_that_moves(cluster: LocalCluster, tmp_path: Path, last: str) -> None:
    """Whatever goes last. A write to the place that a key is to have would stop the move."""
    settings = make_settings(cluster.url, tmp_path, durability="fast")
    async with asked_shop(settings) as askers:
        shop = askers.shop
        key = keys.orders(await shop.lane())
        source = await cluster.primary_of(key)
        (target, *_) = [node for node in await cluster.primaries() if node is not source]
        states: list[tuple[int, Verdict]] = []
        lane = await shop.lane()
        (sale,) = await shop.engine.ledger.sales()
        goes_last = {"home": keys.home(lane), "days": keys.days(lane), "buyers": keys.buyers(sale.round.ref)}[last]
        async for moved in cluster.moves_of_slot(key, target, last=goes_last):
            states.append((len(moved), await askers.verdict()))
            await askers.ask_all()
            if len(states) == 3:
                assert_the_command_cannot_tell(settings, tmp_path)
        assert [moved for moved, _ in states] == [0, *[1] * (len(states) - 1)]
        assert len(states) >= 5, "announced, and one state more for each key"
        assert {verdict for _, verdict in states[1:]} == {Verdict.UNKNOWN}, "half of it is elsewhere, then all of it"
        assert await askers.verdict() is Verdict.UNKNOWN, "it is there, and the keeper has not compared it yet"
        await askers.ask_all()
        async with keeping(settings, shop.engine), working(shop):
            await shop.until_settled()
            await askers.until_told()
            await askers.ask_all()
            assert await shop.insist("late") == 202
        assert await cluster.move_slot(key, source) >= 4


def assert_the_command_cannot_tell(settings: Settings, folder: Path) -> None:
    environ = {"SECKILL_REDIS_URL": settings.redis_url, "SECKILL_DATABASE_URL": settings.database_url}
    done = seckill("audit", cwd=folder, **environ)
    assert (done.returncode, done.stderr) == (2, "")
    assert "could not tell" in done.stdout
    assert "on its way to another server of the cluster" in " ".join(done.stdout.split())


@pytest.fixture
async def strict_about_slots(cluster: LocalCluster) -> AsyncIterator[int]:
    """One slot more or less, and all nodes refuse everything. Afterwards they are as before."""
    slot = next(slot for slot in range(16384) if slot not in {keys.slot(keys.tag(lane)) for lane in range(256)})
    owners = [node for node in cluster.nodes if await has(node, slot)]
    for node in cluster.nodes:
        await node.ask("CONFIG", "SET", "cluster-require-full-coverage", "yes")
    yield slot
    for node in cluster.nodes:
        await node.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
    for node in owners:
        if not await has(node, slot):
            await node.ask("CLUSTER", "ADDSLOTS", slot)
    await cluster.settle()


async def has(node: Any, slot: int) -> bool:
    name = (await node.ask("CLUSTER", "MYID")).decode()
    slots = await node.ask("CLUSTER", "SLOTS")
    return any(first <= slot <= last and primary[2].decode() == name for first, last, primary, *_ in slots)


async def test_audits_while_the_cluster_is_down(cluster: LocalCluster, strict_about_slots: int, tmp_path: Path) -> None:
    settings = make_settings(cluster.url, tmp_path, durability="fast")
    async with asked_shop(settings) as askers:
        for node in cluster.nodes:
            with contextlib.suppress(exceptions.ResponseError):  # it may have heard of it already
                await node.ask("CLUSTER", "DELSLOTS", strict_about_slots)
        key = keys.orders(await askers.shop.lane())

        async def is_down() -> bool:
            facts = (await (await cluster.primary_of(key)).ask("CLUSTER", "INFO")).decode()
            return "cluster_state:fail" in facts

        await until("the cluster is down", is_down)
        assert await askers.verdict() is Verdict.UNKNOWN
        await askers.ask_all()
        assert await is_down(), "all of that was while it was down"
