from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim, Holding
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundRef
from seckill.ports.gate import Gate, Release, Released, Sold, Update
from tests.fixtures.backends import Backend, RedisBackend

OpenedRound = Callable[[Round], Awaitable[Round]]


@pytest.fixture
def gate(backend: Backend) -> Gate:
    return backend.gate()


@pytest.fixture
def opened(gate: Gate) -> OpenedRound:
    async def open_(round_: Round) -> Round:
        return await open_round(gate, round_)

    return open_


@pytest.fixture
def redis_gate(redis_backend: RedisBackend) -> RedisGate:
    gate = redis_backend.gate()
    assert isinstance(gate, RedisGate)
    return gate


@pytest.fixture
def client(redis_backend: RedisBackend) -> Any:
    return redis_backend.client


async def open_round(gate: Gate, round_: Round) -> Round:
    opening = await gate.open_round(round_)
    round_ = replace(round_, opened_ms=opening.opened_ms)
    await gate.update_round(round_)
    return round_


async def outcomes(gate: Gate, ref: RoundRef, claims: Sequence[Claim]) -> list[Outcome]:
    return [answer.outcome for answer in (await gate.admit(ref, claims)).answers]


async def held_by(gate: Gate, ref: RoundRef, user: str) -> tuple[Holding, ...]:
    (held,) = await gate.holdings([ref], user)
    assert held is not None, "the gate knows"
    return held


async def give_back(gate: Gate, ref: RoundRef, releases: Sequence[Release]) -> list[Released]:
    return list((await gate.release(ref, releases)).results)


async def rebuild(gate: Gate, round_: Round, holdings: Mapping[str, Sequence[Holding]]) -> Round:
    """Rebuilds as the keeper does, from holdings that it has read in the ledger."""
    held = [holding for mine in holdings.values() for holding in mine]
    assert await gate.begin_rebuild(round_, "token")
    assert await gate.fill(round_.ref, "token", holdings)
    admitted = sum(holding.quantity for holding in held)
    released = sum(holding.quantity for holding in held if not holding.live)
    items = {item.id: Sold() for item in round_.items}
    for holding in held if items else ():
        items[holding.item] = items[holding.item].and_of(holding)
    opened_ms = await gate.finish_rebuild(round_.ref, "token", admitted, released, items)
    round_ = replace(round_, opened_ms=opened_ms)
    assert await gate.update_round(round_) is Update.APPLIED
    return round_
