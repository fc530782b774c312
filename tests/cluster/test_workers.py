"""Workers share the lanes of a cluster, and what one of them leaves behind is done by the others."""

import asyncio
from pathlib import Path
from typing import Any

from seckill.backends.redis import keys
from seckill.backends.redis.streams import StreamTransport, parse
from seckill.domain.admission import Claim
from seckill.engine.orders.worker import Worker
from seckill.lab.servers.cluster import LocalCluster
from seckill.loops import Stop
from tests.cluster.conftest import make_settings, open_shop, working
from tests.patience import PATIENCE_S

SALES = 4


async def test_what_a_dead_worker_had_in_hand_is_written_by_another(cluster: LocalCluster, tmp_path: Path) -> None:
    settings = make_settings(cluster.url, tmp_path, durability="fast")
    async with open_shop(settings, units=20) as shop:
        for _ in range(SALES - 1):
            await shop.node.create(units=20)
        refs = [sale.round.ref for sale in await shop.engine.ledger.sales()]
        homes = {(await cluster.primary_of(keys.orders(ref.lane))).port for ref in refs}
        assert len(homes) == 3, "every primary has one or two of the sales"
        for ref in refs:
            await shop.engine.gate.admit(ref, [Claim(f"u{i}", 1) for i in range(20)])

        dead = StreamTransport(settings.redis_url)
        try:
            worker = Worker(dead, NeverAnswers(), Stop(), lanes=range(4), claim_idle_s=60.0, retry_delay_s=1.0)  # type: ignore[arg-type]
            await dead.prepare(range(4))
            writing = [asyncio.create_task(worker.read_and_record()) for _ in range(SALES)]
            async with asyncio.timeout(PATIENCE_S):
                while await pending_under(cluster, dead.consumer) < SALES * 20:
                    await asyncio.sleep(0.02)
            for task in writing:
                task.cancel()
            async with working(shop), asyncio.timeout(PATIENCE_S):
                while await shop.engine.transport.backlog([ref.lane for ref in refs]):
                    await asyncio.sleep(0.02)
        finally:
            await dead.close()
        counted = await shop.engine.ledger.counted([ref.id for ref in refs])
        assert {round_id: units.written for round_id, units in counted.items()} == {ref.id: 20 for ref in refs}
        assert await shop.broken() == {}


class NeverAnswers:
    """A ledger whose worker dies before it gets an answer."""

    async def record(self, _: Any) -> None:
        await asyncio.Event().wait()


async def pending_under(cluster: LocalCluster, consumer: str) -> int:
    """Returns how many orders are pending: an entry may have several."""
    found = 0
    for lane in range(4):
        key = keys.orders(lane)
        node = await cluster.primary_of(key)
        for entry, name, *_ in await node.ask("XPENDING", key, keys.WORKERS_GROUP, "-", "+", 100):
            if name.decode() == consumer:
                [(_, fields)] = await node.ask("XRANGE", key, entry, entry)
                found += len(parse(lane, entry, fields))
    return found
