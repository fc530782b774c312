"""The rebuild against a ledger whose order of names is not Python's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from seckill import rebuilding
from seckill.domain import Holding, Round
from seckill.numbers import OrderNumber
from seckill.ports import Update
from seckill.rebuilding import Rebuilder
from tests.making import make_round

# As a database in English sorts them; to Python, capitals come first.
NAMES = ["ann", "Bob", "cid", "Dan"]


class Ledger:
    async def holdings(self, round_id: int, after: str, count: int) -> dict[str, list[Holding]]:
        begins = NAMES.index(after) + 1 if after else 0
        portion = NAMES[begins : begins + count]
        return {name: [Holding(OrderNumber(1, 3, NAMES.index(name)), 1, 1, "", True)] for name in portion}

    async def mark_opened(self, round_id: int, epoch: int, opened_ms: int) -> int:
        return opened_ms

    async def mark_synced(self, round_id: int, epoch: int, revision: int) -> None: ...


class Gate:
    def __init__(self) -> None:
        self.filled: list[str] = []
        self.admitted = 0

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        return True

    async def fill(self, ref: object, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool:
        self.filled += holdings
        return True

    async def finish_rebuild(self, ref: object, token: str, admitted: int, released: int) -> int:
        self.admitted = admitted
        return 7

    async def update_round(self, round_: Round) -> Update:
        return Update.APPLIED


@pytest.mark.parametrize("portion", [1, 2, 3])
async def test_nobody_is_counted_twice_or_left_out(portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "PORTION", portion)
    gate: Any = Gate()
    ledger: Any = Ledger()
    assert await Rebuilder(gate, None, ledger).step(replace(make_round(), epoch=2))  # type: ignore[arg-type]
    assert gate.filled == NAMES
    assert gate.admitted == len(NAMES)
