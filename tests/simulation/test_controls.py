"""Flaws that the simulation must notice, or it proves nothing."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from seckill.afterlife import Afterlife
from seckill.domain import Answer, Claim, RoundRef
from seckill.fulfilment import Result, Worker
from seckill.gates.memory import MemoryGate
from seckill.outcomes import Outcome
from seckill.ports import Delivery, GateReply, Release, Released
from tests.simulation import Plant, simulate

SEEDS = range(1, 60)


def ack_before_commit() -> AbstractContextManager[object]:
    """F35, I13: a worker that dies in between has lost the order."""
    right = Worker.record

    async def record(worker: Any, deliveries: Sequence[Delivery]) -> Result:
        await worker._transport.settle(deliveries)
        return await right(worker, deliveries)

    return patch.object(Worker, "record", record)


def release_without_looking() -> AbstractContextManager[object]:
    """F62: a release that is repeated counts again."""

    def release(gate: MemoryGate, ref: RoundRef, release: Release) -> Released:
        held = gate._round(ref)
        if held is None or held.status == "preparing":
            return Released.NOT_YET
        changed = replace(held, available=held.available + 1, released=held.released + 1, version=held.version + 1)
        gate._put(ref, changed)
        return Released.RELEASED

    return patch.object(MemoryGate, "_release", release)


def missing_is_sold_out() -> AbstractContextManager[object]:
    """F3: after the gate has lost its memory the sale is silently over."""
    right = MemoryGate._decide

    def decide(gate: MemoryGate, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        reply = right(gate, ref, claims)
        answers = [Answer(Outcome.SOLD_OUT) if a.outcome is Outcome.NOT_READY else a for a in reply.answers]
        return replace(reply, answers=answers)

    return patch.object(MemoryGate, "_decide", decide)


def stock_copied_in_flight() -> AbstractContextManager[object]:
    """F51: what the ledger has not sold yet is put on sale, also what is on its way there."""
    right = Afterlife.relay

    async def relay(self: Any) -> int:
        relayed = await right(self)
        for sale in await self._ledger.sales():
            tally = await self._ledger.tally(sale.round.id)
            held = self._gate._round(sale.round.ref)
            if held is not None and held.status != "preparing":
                available = tally.total - tally.sold
                self._gate._put(sale.round.ref, replace(held, available=available, version=held.version + 1))
        return relayed

    return patch.object(Afterlife, "relay", relay)


PLANTS = [ack_before_commit, release_without_looking, missing_is_sold_out, stock_copied_in_flight]


@pytest.mark.parametrize("plant", PLANTS)
def test_control_a_flaw_is_noticed(plant: Plant) -> None:
    assert any(not simulate(seed, plant).held for seed in SEEDS)
