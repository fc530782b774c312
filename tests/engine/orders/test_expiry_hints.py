"""Which reminders the worker asks a broker for."""

from types import SimpleNamespace
from typing import Any

from seckill.domain.admission import Admission
from seckill.domain.order_number import OrderNumber
from seckill.engine.orders.expiry_hints import ExpiryReminders
from seckill.errors import LedgerUnavailable


def admission(counter: int, round_id: int) -> Admission:
    number = OrderNumber(1, 0, counter)
    return Admission(
        number=number, round_id=round_id, epoch=1, user="u", quantity=1, slot=1, request_id="", admitted_ms=0
    )


class Ledger:
    """Round and sale have the same id. Sale 2 is free."""

    def __init__(self) -> None:
        self.away = False
        self.asked = 0

    async def order(self, number: OrderNumber) -> Any:
        self.asked += 1
        if self.away:
            raise LedgerUnavailable("away")
        return SimpleNamespace(sale_id=number.counter // 10)

    async def sale(self, sale_id: int) -> Any:
        return SimpleNamespace(pay_within_s=60 * sale_id, price_cents=0 if sale_id == 2 else 100, items=())


class Delays:
    def __init__(self) -> None:
        self.sent: list[float] = []

    async def remind_of_expiry(self, after_s: float) -> None:
        self.sent.append(after_s)


async def test_one_reminder_for_each_round_of_a_batch_and_none_for_what_is_free() -> None:
    ledger, delays = Ledger(), Delays()
    reminders = ExpiryReminders(ledger, delays)  # type: ignore[arg-type]
    await reminders.after_commit([admission(10, 1), admission(11, 1), admission(20, 2), admission(30, 3)])
    assert delays.sent == [60, 180]
    await reminders.after_commit([admission(12, 1), admission(21, 2)])
    assert delays.sent == [60, 180, 60]
    assert ledger.asked == 3, "once for each round"


async def test_a_ledger_that_is_away_only_costs_the_reminder() -> None:
    ledger, delays = Ledger(), Delays()
    reminders = ExpiryReminders(ledger, delays)  # type: ignore[arg-type]
    ledger.away = True
    await reminders.after_commit([admission(10, 1)])
    assert delays.sent == []
    ledger.away = False
    await reminders.after_commit([admission(10, 1)])
    assert delays.sent == [60]
