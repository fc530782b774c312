from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from seckill.domain import Round
from seckill.gates.redis import RedisGate, connect

OpenedRound = Callable[[Round], Awaitable[Round]]


@pytest.fixture
async def gate(redis_url: str) -> AsyncIterator[RedisGate]:
    gate = RedisGate(redis_url, timeout_s=5, backlog_max=1_000_000)
    yield gate
    await gate.close()


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[object]:
    client = connect(redis_url)
    yield client
    await client.aclose()


@pytest.fixture
def opened(gate: RedisGate) -> OpenedRound:
    async def open_(round_: Round) -> Round:
        opening = await gate.open_round(round_)
        round_ = replace(round_, opened_ms=opening.opened_ms)
        await gate.update_round(round_)
        return round_

    return open_
