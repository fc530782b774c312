"""The rebuild against a ledger whose order of names is not Python's."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from seckill.domain.admission import Holding
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Round
from seckill.engine.orders.order_recovery import Unwritten
from seckill.engine.rounds import rebuild
from seckill.engine.rounds.rebuild import Rebuilder
from seckill.ports.gate import Update
from tests.making import make_round

# As a database in English sorts them; to Python, capitals come first.
NAMES = ["ann", "Bob", "cid", "Dan"]


class Ledger:
    async def next_epoch(self, known: Round, gate_epoch: int) -> Round:
        return replace(known, epoch=known.epoch + 1)

    async def letters_in(self, round_id: int) -> list[object]:
        return []

    async def holdings(self, round_id: int, after: str, count: int) -> dict[str, list[Holding]]:
        begins = NAMES.index(after) + 1 if after else 0
        portion = NAMES[begins : begins + count]
        return {name: [Holding(OrderNumber(1, 3, NAMES.index(name)), 1, 1, "", True)] for name in portion}

    async def mark_opened(self, round_id: int, epoch: int, opened_ms: int) -> int:
        return opened_ms

    async def mark_synced(self, round_id: int, epoch: int, revision: int) -> None: ...


class Transport:
    async def entries(self, lanes: object) -> AsyncIterator[list[object]]:
        if lanes is None:
            yield []


class Gate:
    def __init__(self) -> None:
        self.filled: list[str] = []
        self.admitted = 0

    async def inspect(self, ref: object) -> None:
        return None

    async def orders(self, ref: object) -> AsyncIterator[dict[str, list[Holding]]]:
        if ref is None:
            yield {}

    async def fence(self, round_: Round) -> None: ...

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        return True

    async def fill(self, ref: object, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool:
        self.filled += holdings
        return True

    async def finish_rebuild(self, ref: object, token: str, admitted: int, released: int, items: object) -> int:
        self.admitted = admitted
        return 7

    async def update_round(self, round_: Round) -> Update:
        return Update.APPLIED


@pytest.mark.parametrize("portion", [1, 2, 3])
async def test_nobody_is_counted_twice_or_left_out(portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "PORTION", portion)
    gate: Any = Gate()
    ledger: Any = Ledger()
    transport: Any = Transport()
    assert await Rebuilder(gate, transport, ledger, Unwritten(gate, transport, ledger)).step(
        replace(make_round(), epoch=2)
    )
    assert gate.filled == NAMES
    assert gate.admitted == len(NAMES)
