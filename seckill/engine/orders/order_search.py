"""What operators can find out about orders: their present state, and everything that has happened to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seckill.domain.dead_letter import Letter
from seckill.domain.order import Order
from seckill.domain.order_number import OrderNumber
from seckill.engine.orders.buyer_orders import BuyerOrders, OrderView, recorded
from seckill.ports.history import Event, OrderFilter, OrderHistory, Payment
from seckill.ports.ledger import OrdersLookup
from seckill.ports.order_action import RecordedAction


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRecord:
    number: OrderNumber
    order: OrderView | None  # None: it could not be written and is only known from letters
    user: str | None
    ordinal: int | None  # the round's, if the sale repeats
    events: Sequence[Event]
    letters: Sequence[Letter]
    payments: Sequence[Payment]
    actions: Sequence[RecordedAction]


class OrderSearch:
    def __init__(self, ledger: OrdersLookup, history: OrderHistory, orders: BuyerOrders) -> None:
        self._ledger = ledger
        self._history = history
        self._orders = orders

    async def of_buyer(self, user: str, count: int) -> list[OrderRecord]:
        """Returns the newest orders, including those that are queued and not in the ledger yet."""
        views = {view.number: view for view in await self._orders.newest(user, None, count, unconfirmed=True)}
        return await self._with_past(list(views), views, dict.fromkeys(views, user))

    async def page(self, wanted: OrderFilter, after: OrderNumber | None, count: int) -> Sequence[Order]:
        """Returns orders as they are in the ledger, without their history."""
        return await self._history.page(wanted, after, count)

    async def payment_ids(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[str]]:
        return await self._history.payment_ids(numbers) if numbers else {}

    async def by_number(self, numbers: Sequence[OrderNumber]) -> list[OrderRecord]:
        """Returns those that the ledger has or that a letter is about."""
        if not numbers:
            return []
        rows = await self._ledger.orders(numbers)
        views = {row.number: recorded(row) for row in rows}
        found = await self._with_past(numbers, views, {row.number: row.user for row in rows})
        return [each for each in found if each.order is not None or each.letters]

    async def _with_past(
        self,
        numbers: Sequence[OrderNumber],
        views: Mapping[OrderNumber, OrderView],
        users: Mapping[OrderNumber, str],
    ) -> list[OrderRecord]:
        events = await self._history.events(numbers)
        letters = await self._history.letters(numbers)
        payments = await self._history.payments(numbers)
        actions = await self._history.actions(numbers)
        ordinals = await self._history.ordinals(sorted({view.round_id for view in views.values()}))
        found = []
        for number in numbers:
            order = views.get(number)
            found.append(
                OrderRecord(
                    number=number,
                    order=order,
                    user=users.get(number),
                    ordinal=None if order is None else ordinals.get(order.round_id),
                    events=events.get(number, ()),
                    letters=letters.get(number, ()),
                    payments=[each for each in payments if number in (each.number, each.settles)],
                    actions=actions.get(number, ()),
                )
            )
        return found
