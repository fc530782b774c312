"""A node lets claims in at the pace of its ledger, if the sale has more units than the queue has room for."""

import asyncio
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from seckill.engine.claims.writing_pace import FEW, WINDOW_S
from seckill.settings import Settings
from tests.api.conftest import Node, settings_of_a_node

ROOM = 3 * FEW
PEOPLE = 2 * FEW


@pytest.fixture
def settings(redis_url: str, sqlite_database: str) -> Settings:
    return replace(settings_of_a_node(redis_url, sqlite_database), backlog_max=ROOM)


async def write_some(node: Node) -> None:
    """One entry of many, whatever it has in it."""
    deliveries = await node.engine.transport.read(1, 0)
    await node.worker.record([each for each in deliveries if each.entry_id == deliveries[0].entry_id])


@pytest.mark.parametrize(("units", "paced"), [(ROOM, 0), (1_000_000, 1)], ids=["fits", "does not fit"])
async def test_a_node_keeps_the_pace_of_its_ledger(node: Node, units: int, paced: int) -> None:
    await node.create(units=units)
    await node.refresh()
    desk = node.api.context.desk
    [sale] = node.api.context.sale_cache.sales()

    async def press(first: int, many: int) -> set[Outcome]:
        claims = [desk.claim(sale, Claim(f"u{number}", 1)) for number in range(first, first + many)]
        return {answer.outcome for _, answer in await asyncio.gather(*claims)}

    assert await press(0, 1) == {Outcome.ADMITTED}
    await desk.keep_pace()
    assert await press(1, PEOPLE) == {Outcome.ADMITTED}
    await write_some(node)
    await asyncio.sleep(WINDOW_S)
    await node.refresh()
    await desk.keep_pace()
    assert REGISTRY.get_sample_value("seckill_paced_lanes") == paced
    assert await press(PEOPLE + 1, 1) == {Outcome.ADMITTED}, "who comes alone goes at once"
