"""Asks a broker's delay queues to wake the expiry sweep when the time to pay is over. This is only a hint: the sweep
finds the same orders without it, and the ledger decides which are due."""

from collections.abc import Iterable

from seckill.domain.admission import Admission
from seckill.domain.order_number import OrderNumber
from seckill.errors import LedgerUnavailable
from seckill.ports.broker import Delays
from seckill.ports.ledger import ExpiryHintLedger

ROUNDS_MAX = 1000


class ExpiryReminders:
    def __init__(self, ledger: ExpiryHintLedger, delays: Delays) -> None:
        self._ledger = ledger
        self._delays = delays
        self._pay_within_s: dict[int, float | None] = {}  # by round; None: nothing to pay

    async def after_commit(self, admissions: Iterable[Admission]) -> None:
        for round_id, number in {admission.round_id: admission.number for admission in admissions}.items():
            if round_id not in self._pay_within_s:
                await self._look_up(round_id, number)
            if (within_s := self._pay_within_s.get(round_id)) is not None:
                await self._delays.remind_of_expiry(within_s)

    async def _look_up(self, round_id: int, number: OrderNumber) -> None:
        if len(self._pay_within_s) >= ROUNDS_MAX:
            self._pay_within_s.clear()
        try:
            order = await self._ledger.order(number)
            sale = None if order is None else await self._ledger.sale(order.sale_id)
        except LedgerUnavailable:
            return
        if sale is not None:
            is_free = not any([item.price_cents for item in sale.items] or [sale.price_cents])
            self._pay_within_s[round_id] = None if is_free else sale.pay_within_s
