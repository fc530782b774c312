"""A version that cannot read entries of several orders never meets one: before an upgrade is finished none is written,
and before the way back is free none is left."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seckill.backends.redis import format_stamp, keys
from seckill.backends.redis.board import RedisBoard
from seckill.backends.redis.gate import RedisGate, connect
from seckill.backends.redis.queue_entry_forms import RedisEntryForms
from seckill.backends.redis.streams import StreamTransport
from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.migration import migrate
from seckill.domain.admission import Claim
from seckill.errors import NotPossible, StartError
from seckill.operations.presence import identify
from seckill.operations.upgrade_finish import finish_upgrade, prepare_downgrade
from seckill.ports.board import NodeReport
from seckill.ports.queue_entry import TOGETHER, VERSION
from tests.backends.gate.conftest import open_round
from tests.making import make_round
from tests.patience import PATIENCE_S
from tests.upgrades.test_kept_versions import put_back_ledger

LANE = 3


@dataclass
class Upgraded:
    """The stores as 0.2.0 has left them, after `seckill migrate`."""

    gate: RedisGate
    redis: Any
    ledger: SqlLedger
    worker: StreamTransport
    forms: RedisEntryForms
    board: RedisBoard

    async def sell(self, prefix: str) -> int:
        """Five orders by one call. How many entries that makes."""
        before = await self.redis.xlen(keys.orders(LANE))
        claims = [Claim(f"{prefix}{i}", 1) for i in range(5)]
        await self.gate.admit(make_round(id=LANE, lane=LANE).ref, claims)
        return int(await self.redis.xlen(keys.orders(LANE)) - before)

    async def finish(self) -> None:
        await finish_upgrade(self.ledger, self.forms, self.board, [LANE], report_within_s=0)

    async def drain(self) -> None:
        while found := await self.worker.read(100, 0):
            await self.worker.settle(found)


@pytest.fixture
async def upgraded(redis_url: str, tmp_path: Path) -> AsyncIterator[Upgraded]:
    url = put_back_ledger("0.2.0", "streams", tmp_path / "ledger.db")
    await migrate(url)
    ledger = open_ledger(url)
    gate = RedisGate(redis_url, timeout_s=PATIENCE_S, backlog_max=1000)
    worker = StreamTransport(redis_url, entry_form=ledger.entry_form)
    forms, board = RedisEntryForms(redis_url), RedisBoard(redis_url)
    redis = connect(redis_url)
    await open_round(gate, make_round(id=LANE, lane=LANE, total=1000))
    await gate.bind("a ledger")
    await worker.prepare([LANE])
    yield Upgraded(gate, redis, ledger, worker, forms, board)
    for part in (gate, worker, forms, board, ledger):
        await part.close()
    await redis.aclose()


async def earlier_version_may_start(gate: RedisGate, monkeypatch: pytest.MonkeyPatch) -> bool:
    with monkeypatch.context() as patch:
        patch.setattr(format_stamp, "FORMAT", 1)  # all that 0.2.0 knows
        try:
            await gate.bind("a ledger")
        except StartError:
            return False
    return True


async def test_a_ledger_of_our_own_needs_no_permission(redis_url: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    await migrate(url)
    await migrate(url)  # harmless to repeat
    ledger, redis = open_ledger(url), connect(redis_url)
    worker = StreamTransport(redis_url, entry_form=ledger.entry_form)
    assert await ledger.entry_form() == TOGETHER
    await worker.prepare([LANE])
    assert await redis.hget(keys.queue(LANE), "form") == b"2"
    assert await redis.hget(keys.FORMAT, "needs") == b"2"
    await redis.flushall()
    await worker.read(1, 0)  # finds its group gone
    assert await redis.hget(keys.queue(LANE), "form") == b"2"
    assert await redis.hget(keys.FORMAT, "needs") == b"2"
    for part in (worker, ledger):
        await part.close()
    await redis.aclose()


async def test_beside_an_earlier_version_each_has_its_own(upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await upgraded.ledger.entry_form() == VERSION
    assert await upgraded.sell("a") == 5
    assert await earlier_version_may_start(upgraded.gate, monkeypatch)


async def test_who_comes_while_it_is_looked_who_is_there_is_refused(
    upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = upgraded.board.reports
    came: list[bool] = []

    async def looking() -> Any:
        came.append(await earlier_version_may_start(upgraded.gate, monkeypatch))
        return await reports()

    monkeypatch.setattr(upgraded.board, "reports", looking)
    await upgraded.finish()
    assert came == [False], "the door was shut before anybody looked"


async def test_with_a_broker_each_order_keeps_an_entry_of_its_own(upgraded: Upgraded) -> None:
    await finish_upgrade(upgraded.ledger, upgraded.forms, upgraded.board, [LANE], broker=True, report_within_s=0)
    assert await upgraded.ledger.entry_form() == TOGETHER
    assert await upgraded.sell("a") == 5


async def test_an_upgrade_is_not_finished_while_an_earlier_version_is_there(
    upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = NodeReport(node="w-1", role="worker", host="h", pid=1, version="0.2.0", started_ms=1)
    await upgraded.board.post(older)
    await upgraded.board.post(identify("api"))
    with pytest.raises(NotPossible, match=r"of an older version: worker w-1\. Replace them"):
        await upgraded.finish()
    assert await upgraded.sell("a") == 5
    assert await earlier_version_may_start(upgraded.gate, monkeypatch), "the door is open again"
    await upgraded.board.remove("w-1")
    await upgraded.finish()
    assert await upgraded.sell("b") == 1


async def test_finished_and_back_again(upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch) -> None:
    await upgraded.finish()
    assert not await earlier_version_may_start(upgraded.gate, monkeypatch)
    assert await upgraded.sell("a") == 1
    with pytest.raises(NotPossible, match="5 orders are queued in a form that the version before cannot read"):
        await prepare_downgrade(upgraded.ledger, upgraded.forms, [LANE], within_s=0)
    assert not await earlier_version_may_start(upgraded.gate, monkeypatch), "what it cannot read is there"
    assert await upgraded.sell("b") == 5, "none is added"
    back = asyncio.create_task(prepare_downgrade(upgraded.ledger, upgraded.forms, [LANE], within_s=PATIENCE_S))
    await upgraded.drain()
    await back
    assert await earlier_version_may_start(upgraded.gate, monkeypatch)
    assert await upgraded.sell("c") == 5
    await upgraded.finish()
    assert await upgraded.sell("d") == 1


async def test_a_worker_that_has_not_heard_of_the_way_back_allows_nothing(upgraded: Upgraded, redis_url: str) -> None:
    """It had asked the ledger just before."""
    await upgraded.finish()
    await prepare_downgrade(upgraded.ledger, upgraded.forms, [LANE])

    async def said_before() -> int:
        return TOGETHER

    late = StreamTransport(redis_url, entry_form=said_before)
    await late.prepare([LANE])
    assert await upgraded.sell("a") == 5
    await late.close()
