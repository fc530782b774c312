from dataclasses import replace

import pytest

from seckill.domain.admission import Claim
from seckill.domain.order_number import OrderNumber
from seckill.ports.gate import Gate
from seckill.ports.transport import Transport
from tests.fixtures.backends import Backend
from tests.making import make_round

LANES = [3, 4]


@pytest.fixture
async def gate(backend: Backend) -> Gate:
    """A gate with a round in each lane."""
    gate = backend.gate()
    await open_rounds(gate)
    return gate


@pytest.fixture
def transports(backend: Backend) -> list[Transport]:
    return [backend.transport() for _ in range(2)]


async def open_rounds(gate: Gate) -> None:
    for lane in LANES:
        round_ = make_round(id=lane, lane=lane, total=10_000)
        opening = await gate.open_round(round_)
        await gate.update_round(replace(round_, opened_ms=opening.opened_ms))


async def admit(gate: Gate, count: int, prefix: str = "u", lane: int = 3) -> list[OrderNumber]:
    ref = make_round(id=lane, lane=lane).ref
    reply = await gate.admit(ref, [Claim(f"{prefix}{i}", 1, "k") for i in range(count)])
    return [answer.holdings[0].number for answer in reply.answers]
