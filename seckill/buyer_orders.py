"""What a buyer sees of the own orders: the ledger's word, and the gate's for those that are still queued."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from seckill.catalogue import Catalogue
from seckill.domain import Holding, Order, OrderState, Sale
from seckill.numbers import ORIGIN_S, OrderNumber
from seckill.ports import Gate, Ledger, Transport

WAIT_S_MAX = 30.0
# How many waiting orders one query asks for, when the announcement of a change has been missed.
LOOK_UP_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderView:
    number: OrderNumber
    sale_id: int
    round_id: int
    quantity: int
    state: OrderState
    price_cents: int
    currency: str
    created_ms: int
    pay_before_ms: int | None = None
    paid_ms: int | None = None
    closed_ms: int | None = None


@dataclass(eq=False, slots=True)
class _Waiter:
    seen: str
    changed: asyncio.Event


class BuyerOrders:
    def __init__(self, ledger: Ledger, gate: Gate, catalogue: Catalogue) -> None:
        self._ledger = ledger
        self._gate = gate
        self._catalogue = catalogue
        self._waiting: dict[OrderNumber, set[_Waiter]] = {}
        self._closing = False

    async def find(self, user: str, number: OrderNumber) -> OrderView | None:
        """None for an order that does not exist, and the same for somebody else's."""
        order = await self._ledger.order(number)
        if order is not None:
            return recorded(order) if order.user == user else None
        refs = self._catalogue.recent_rounds(number.lane)
        for ref, holdings in zip(refs, await self._gate.holdings(refs, user), strict=True):
            sale = self._catalogue.sale_of_round(ref.id)
            for holding in holdings:
                if holding.number == number and sale is not None:
                    return queued(sale, holding)
        return None

    async def newest(self, user: str, before: OrderNumber | None, count: int) -> list[OrderView]:
        orders = [recorded(order) for order in await self._ledger.orders_of(user, before, count)]
        if before is not None:
            return orders
        newer = await self._not_listed(user, {order.number for order in orders})
        return sorted(newer + orders, key=lambda order: order.number, reverse=True)[:count]

    async def _not_listed(self, user: str, listed: set[OrderNumber]) -> list[OrderView]:
        """What the gate has and the list has not: still queued, or written since the list was read."""
        refs = self._catalogue.recent_rounds()
        found = []
        for ref, holdings in zip(refs, await self._gate.holdings(refs, user), strict=True):
            sale = self._catalogue.sale_of_round(ref.id)
            found += [
                queued(sale, holding)
                for holding in holdings
                if sale is not None and holding.live and holding.number not in listed
            ]
        written = {order.number: recorded(order) for order in await self._ledger.orders([o.number for o in found])}
        return [written.get(order.number, order) for order in found]

    async def wait_for_change(self, user: str, number: OrderNumber, seen: str, wait_s: float) -> OrderView | None:
        """The order as soon as its state differs from `seen`, or as it is when the time is over."""
        deadline_s = asyncio.get_running_loop().time() + min(wait_s, WAIT_S_MAX)
        with self._watch(number, seen) as changed:  # before looking, or a change in between would be missed
            while True:
                view = await self.find(user, number)
                if view is None or view.state != seen or self._closing:
                    return view
                try:
                    async with asyncio.timeout_at(deadline_s):
                        await changed.wait()
                except TimeoutError:
                    return view
                changed.clear()

    @contextmanager
    def _watch(self, number: OrderNumber, seen: str) -> Iterator[asyncio.Event]:
        waiter = _Waiter(seen, asyncio.Event())
        self._waiting.setdefault(number, set()).add(waiter)
        try:
            yield waiter.changed
        finally:
            waiters = self._waiting[number]
            waiters.discard(waiter)
            if not waiters:
                del self._waiting[number]

    def _wake(self, number: OrderNumber, state: str) -> None:
        for waiter in self._waiting.get(number, ()):
            if waiter.seen != state:
                waiter.changed.set()

    def close(self) -> None:
        """Nobody waits any longer: everyone gets the order as it is."""
        self._closing = True
        for waiters in self._waiting.values():
            for waiter in waiters:
                waiter.changed.set()

    async def listen(self, transport: Transport) -> None:
        """Wakes whoever waits for an order that was announced."""
        async for states in transport.state_changes():
            for number, state in states.items():
                self._wake(number, state)

    async def look_up_waiting(self) -> int:
        """The net under `listen`: one query for everybody who waits, so that a missed announcement costs a second."""
        waiting = list(self._waiting)
        found = 0
        for start in range(0, len(waiting), LOOK_UP_MAX):
            orders = await self._ledger.orders(waiting[start : start + LOOK_UP_MAX])
            for order in orders:
                self._wake(order.number, order.state)
            found += len(orders)
        return found


def queued(sale: Sale, holding: Holding) -> OrderView:
    return OrderView(
        number=holding.number,
        sale_id=sale.id,
        round_id=sale.round.id,
        quantity=holding.quantity,
        state=OrderState.QUEUED,
        price_cents=sale.price_cents * holding.quantity,
        currency=sale.currency,
        created_ms=(holding.number.seconds + ORIGIN_S) * 1000,
    )


def recorded(order: Order) -> OrderView:
    return OrderView(
        number=order.number,
        sale_id=order.sale_id,
        round_id=order.round_id,
        quantity=order.quantity,
        state=order.state,
        price_cents=order.price_cents,
        currency=order.currency,
        created_ms=order.created_ms,
        pay_before_ms=order.expires_ms if order.state is OrderState.UNPAID else None,
        paid_ms=order.paid_ms,
        closed_ms=order.closed_ms,
    )
