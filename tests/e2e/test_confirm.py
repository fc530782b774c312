"""The gate loses its memory under load: what a sale that confirms in the ledger has answered is all there."""

import asyncio
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from seckill.backends.redis.gate import connect
from seckill.domain.sale import Confirm
from seckill.errors import TransportUnavailable
from tests.e2e.checks import rows, until_drained
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S, STORY_PATIENCE_S

BUYERS_AT_ONCE = 16
Loss = Callable[[Stack], Awaitable[None]]


async def flushall(stack: Stack) -> None:
    client = connect(stack.settings.redis_url)
    await client.flushall()
    await client.aclose()


async def restart_empty(stack: Stack) -> None:
    """Its files are gone before it is started again."""
    os.kill(stack.process.pid, signal.SIGSTOP)
    try:
        (valkey,) = stack.pids("valkey")
        os.kill(valkey, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            while _runs(valkey):
                await asyncio.sleep(0.01)
        shutil.rmtree(stack.data / "valkey")
    finally:
        os.kill(stack.process.pid, signal.SIGCONT)


def _runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def until(reached: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(STORY_PATIENCE_S):
        while not await reached():
            await asyncio.sleep(0.05)


async def lose_what_nobody_has_written(stack: Stack, crowd: Crowd, lose: Loss) -> None:
    """Loses it in the middle of the crowd, and waits until the crowd is served again."""
    (worker,) = stack.pids("worker")
    os.kill(worker, signal.SIGSTOP)
    try:
        answered = len(crowd.orders)
        async with stack.engine() as engine:
            lanes = await engine.ledger.lanes_in_use()

            async def enough_waits() -> bool:
                told = crowd.sale["confirm"] == Confirm.LEDGER or len(crowd.orders) > answered + BUYERS_AT_ONCE
                with suppress(TransportUnavailable):  # with too much to do
                    return told and await engine.transport.backlog(lanes) > BUYERS_AT_ONCE // 2
                return False

            await until(enough_waits)
        await lose(stack)
    finally:
        os.kill(worker, signal.SIGCONT)
    answered = len(crowd.orders)

    async def is_served() -> bool:
        return len(crowd.orders) > answered + 2 * BUYERS_AT_ONCE

    await until(is_served)


async def sell_and_forget(stack: Stack, confirm: Confirm, lose: Loss) -> tuple[Crowd, list[str]]:
    """The crowd, and which of the orders that it was told of are not in the ledger."""
    crowd = Crowd(stack, await stack.create_sale(units=1_000_000, confirm=confirm))
    enough = asyncio.Event()
    buying = asyncio.create_task(crowd.keep_buying(enough, BUYERS_AT_ONCE))
    await lose_what_nobody_has_written(stack, crowd, lose)
    await lose_what_nobody_has_written(stack, crowd, lose)
    enough.set()
    await buying
    async with stack.engine() as engine:
        await until_drained(engine)
        written = await rows(stack.settings.database_url, "SELECT id, user_id FROM orders")
        owners = {engine.order_ids.encode(row.id): row.user_id for row in written}
    return crowd, [order_id for user, order_id in crowd.orders.items() if owners.get(order_id) != user]


# Every loss and every ledger once: the two have nothing to do with each other.
LOSSES = pytest.mark.parametrize(
    ("database_url", "lose"), [("sqlite", flushall), ("postgres", restart_empty)], indirect=["database_url"]
)


@LOSSES
async def test_a_gate_that_forgets_loses_no_yes(folder: Path, database_url: str, lose: Loss) -> None:
    async with running(Stack(folder, database_url=database_url)) as stack:
        crowd, lost = await sell_and_forget(stack, Confirm.LEDGER, lose)
        assert crowd.statuses == {201}
        assert lost == []
        assert crowd.changed == []
        assert stack.logged("round rebuilt from the ledger") >= 2, "it was lost, and lost again"


@LOSSES
async def test_control_a_gate_that_forgets_loses_what_it_answered(folder: Path, database_url: str, lose: Loss) -> None:
    """The same crowd and the same losses, where the gate says yes."""
    async with running(Stack(folder, database_url=database_url)) as stack:
        crowd, lost = await sell_and_forget(stack, Confirm.GATE, lose)
        assert crowd.statuses == {202}
        assert len(lost) > BUYERS_AT_ONCE
