"""What a buyer sees of the own orders: the ledger's word, and the gate's for those that are still queued."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from seckill.catalogue import Catalogue
from seckill.domain import Holding, Order, OrderState, Sale, states_after
from seckill.numbers import ORIGIN_S, OrderNumber
from seckill.ports import Gate, Ledger, Transport

WAIT_S_MAX = 30.0
# How many watched orders one query asks for.
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
    replaced_by: OrderNumber | None = None


def is_later(order: OrderView, known: OrderView) -> bool:
    """It has moved on, or it is over and a late payment has paid another one in its place."""
    if order.state is known.state:
        return order.replaced_by is not None and known.replaced_by is None
    return order.state in states_after(known.state)


class Watch:
    """One buyer's look at one order. It keeps no more than the newest news, however slowly they are taken."""

    def __init__(self) -> None:
        self._shown: OrderView | None = None
        self._news: OrderView | None = None
        self._awake = asyncio.Event()
        self._over = False

    @property
    def order(self) -> OrderView:
        assert self._shown is not None, "a watch is handed out when its order was found"
        return self._shown

    async def change(self) -> bool:
        """True when `order` has moved on, False when this node stops."""
        await self._awake.wait()
        if self._news is None:
            return False
        self._shown, self._news = self._news, None
        self._set_awake()
        return True

    def begin(self, order: OrderView) -> None:
        self._shown = order
        if self._news is not None and not is_later(self._news, order):
            self._news = None
        self._set_awake()

    def offer(self, order: OrderView) -> None:
        """Takes it if it is later than what is known: answers of the ledger may overtake each other."""
        known = self._news or self._shown
        if known is None or is_later(order, known):
            self._news = order
            self._set_awake()

    def end(self) -> None:
        self._over = True
        self._set_awake()

    def _set_awake(self) -> None:
        if self._over or self._news is not None:
            self._awake.set()
        else:
            self._awake.clear()


class BuyerOrders:
    def __init__(self, ledger: Ledger, gate: Gate, catalogue: Catalogue) -> None:
        self._ledger = ledger
        self._gate = gate
        self._catalogue = catalogue
        # With whose they are: a gate that went back in time may have given one number to two buyers.
        self._watches: dict[int, dict[Watch, str]] = {}
        self._closing = False

    async def find(self, user: str, number: OrderNumber) -> OrderView | None:
        """None for an order that does not exist, and the same for somebody else's."""
        order = await self._ledger.order(number)
        if order is not None:
            return recorded(order) if order.user == user else None
        view = await self._held(user, number)
        if view is None and await self._catalogue.refresh_sales():
            view = await self._held(user, number)  # in a sale that was announced on another node a moment ago
        return view

    async def _held(self, user: str, number: OrderNumber) -> OrderView | None:
        refs = self._catalogue.recent_rounds(number.lane)
        for ref, holdings in zip(refs, await self._gate.holdings(refs, user), strict=True):
            sale = self._catalogue.sale_of_round(ref.id)
            for holding in holdings:
                if holding.number == number and sale is not None:
                    return queued(sale, holding)
        return None

    async def newest(self, user: str, before: OrderNumber | None, count: int) -> list[OrderView]:
        orders = [recorded(order) for order in await self._ledger.orders_of(user, before, count)]
        others = await self._not_listed(user, {order.number for order in orders})
        wanted = [order for order in others if before is None or order.number < before]
        return sorted(wanted + orders, key=lambda order: order.number, reverse=True)[:count]

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
        async with self.watch(user, number) as watch:
            if watch is None:
                return None
            if watch.order.state == seen:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline_s):
                        await watch.change()
            return watch.order

    @asynccontextmanager
    async def watch(self, user: str, number: OrderNumber) -> AsyncIterator[Watch | None]:
        """None for an order that does not exist, and the same for somebody else's."""
        watch = Watch()
        watches = self._watches.setdefault(int(number), {})
        watches[watch] = user  # before looking, or a change in between would be missed
        try:
            order = await self.find(user, number)
            if order is None:
                yield None
                return
            watch.begin(order)
            if self._closing:
                watch.end()
            yield watch
        finally:
            del watches[watch]
            if not watches:
                del self._watches[int(number)]

    def close(self) -> None:
        """Nobody waits any longer: everyone gets the order as it is."""
        self._closing = True
        for watches in self._watches.values():
            for watch in watches:
                watch.end()

    async def listen(self, transport: Transport) -> None:
        """Passes on what is announced: one query for each announcement, however many watch its orders."""
        async for states in transport.state_changes():
            await self._look_up([number for told in states.values() for number in self._watches.keys() & told])

    async def look_up_waiting(self) -> int:
        """The net under `listen`: everybody who waits at once, so that a missed announcement costs a second."""
        return await self._look_up(list(self._watches))

    async def _look_up(self, numbers: Sequence[int]) -> int:
        found = 0
        for start in range(0, len(numbers), LOOK_UP_MAX):
            orders = await self._ledger.orders([*map(OrderNumber.from_int, numbers[start : start + LOOK_UP_MAX])])
            for order in orders:
                for watch, user in self._watches.get(int(order.number), {}).items():
                    if user == order.user:
                        watch.offer(recorded(order))
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
        replaced_by=order.replaced_by,
    )
