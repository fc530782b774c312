"""A slow machine is no leak, but a unit that no one can buy is one."""

import asyncio
import itertools
from dataclasses import replace
from typing import Any

import pytest

from seckill.audit.report import Verdict
from seckill.lab.chaos import sell_out
from seckill.lab.chaos.buyers import Offer, OnSale
from seckill.lab.chaos.evidence import Evidence
from seckill.lab.chaos.sell_out import SellOut
from tests.lab.chaos.evidence import good
from tests.lab.chaos.test_judgement import wrong

SALE = OnSale("s", Offer("few", 3, limit=1, price_cents=0, pay_within_s=60, weight=1, wanted=True))


class Shelf:
    """Buyers and ledger in one: it sells what is left to any buyer who asks, if the machine answers at all."""

    def __init__(self, units: int, *, answers: bool = True) -> None:
        self.units = units
        self.sold = 0
        self._answers = answers
        self.evidence = good()
        clock = itertools.count()  # each look at it is a second later
        self.selling = SellOut(self, [SALE], [1], self.paid, self.evidence, lambda: float(next(clock)))  # type: ignore[arg-type]

    async def buy(self, *_: Any) -> str | None:
        while not self._answers and SALE.offer.title not in self.evidence.unclear:
            await asyncio.sleep(0)
        if not self.units or not self._answers:
            return None
        self.units -= 1
        self.sold += 1
        return "order"

    async def paid(self, _: OnSale) -> int:
        return self.sold

    def judged(self) -> Verdict:
        """Judges by the books that this run would have made."""
        evidence: Evidence = self.evidence
        (round_,) = evidence.books.rounds
        left = 3 - self.sold
        evidence.books.rounds = [replace(round_, total=3 + left, available=left)]
        return wrong(evidence).get("leaked", Verdict.HOLDS)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sell_out, "POLL_S", 0.0)


async def test_what_comes_back_when_all_is_at_rest_is_sold() -> None:
    shelf = Shelf(2)
    await shelf.selling.sell()
    assert (shelf.sold, shelf.judged()) == (2, Verdict.BROKEN), "so it would be judged without another turn"
    shelf.units += 1  # a keeper needed so long to bring it back

    async def rest() -> None: ...

    await shelf.selling.sell_what_came_back(rest)
    assert shelf.sold == 3
    assert "few" not in shelf.evidence.unclear


async def test_what_nobody_can_buy_is_a_leak() -> None:
    shelf = Shelf(2)
    turns = []

    async def rest() -> None:
        turns.append(shelf.sold)

    await shelf.selling.sell()
    await shelf.selling.sell_what_came_back(rest)
    assert turns == [2], "once more, and not again and again"
    assert shelf.judged() is Verdict.BROKEN


async def test_buyers_who_get_no_answers_can_tell_nothing() -> None:
    shelf = Shelf(3, answers=False)
    await shelf.selling.sell()
    assert shelf.judged() is Verdict.UNKNOWN
    assert "few" in shelf.evidence.unclear
