"""A backup in the middle of a rush, and what becomes of it in an empty folder."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis as Client

from seckill.local import backup
from seckill.local.backup import back_up
from seckill.local.gate_file import GateFile, gate_file
from seckill.local.restore import restore
from tests.e2e.checks import check_conservation, until_drained
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running

# How long the worker gets to spoil the copy. It must not be able to in any time.
CHANCE_S = 2.0


async def test_a_copy_made_under_load_is_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that was accepted before it is in it: written, or queued. The worker has orders in hand at that
    moment, and wakes up between the ledger's copy and the gate's."""
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    async with running(Stack(folder / "a")) as stack:
        sale = await stack.create_sale(units=150)
        crowd = Crowd(stack, sale)
        await asyncio.gather(*(crowd.buy(f"early-{i}") for i in range(50)))
        async with stack.engine() as engine:
            await until_drained(engine)
            (worker,) = stack.pids("worker")
            os.kill(worker, signal.SIGSTOP)
            await asyncio.gather(*(crowd.buy(f"queued-{i}") for i in range(20)))
            accepted = dict(crowd.orders)
            assert len(accepted) == 70

            @contextlib.asynccontextmanager
            async def after_the_worker(home: Path, client: Client | None) -> AsyncIterator[GateFile]:
                os.kill(worker, signal.SIGCONT)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CHANCE_S):
                        await until_drained(engine)
                async with gate_file(home, client) as found:
                    yield found

            monkeypatch.setattr(backup, "gate_file", after_the_worker)
            rush = asyncio.gather(*(crowd.buy(f"meanwhile-{i}") for i in range(50)))
            manifest, _ = await back_up(stack.data, folder / "copy")
            await rush
            assert 50 <= manifest.orders < 70, "nothing was queued"
        stack.kill_everything()

    again = Stack(folder / "b")
    restore(folder / "copy", again.data)
    async with running(again):
        late = Crowd(again, sale)
        response = await late.press("queued-7", key="key of queued-7")
        assert (response.status_code, response.json()["order_id"]) == (202, accepted["queued-7"])
        await asyncio.gather(*(late.buy(f"late-{i}") for i in range(150)))
        async with again.engine() as engine:
            await until_drained(engine)
            (found,) = await engine.ledger.sales()
            assert found.round.epoch == 1, "the two copies contradicted each other"
            view = await check_conservation(engine, found, again.settings.database_url, accepted | late.orders)
            assert view.available == 0
        # Nor was anything mended: what only the gate's records know of is written without what the shop said of it.
        assert not again.logged("were not in the ledger")
        assert again.stop() == 0
