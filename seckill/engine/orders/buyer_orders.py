"""What buyers see of their own orders: what the ledger says, and what the gate says about those that are still
queued."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from seckill.domain.admission import Holding
from seckill.domain.dead_letter import Letter, LetterState
from seckill.domain.item import NO_ITEM
from seckill.domain.order import Order, OrderState, states_after
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Confirm, RoundRef, Sale
from seckill.engine.batched_reads import BatchedReads
from seckill.engine.rounds.opening import FIRST_EPOCH
from seckill.engine.sale_cache import SaleCache
from seckill.errors import GateUnavailable
from seckill.ports.gate import TrackingGate
from seckill.ports.ledger import TrackingLedger
from seckill.ports.queue_entry import read_entry, salvage
from seckill.ports.transport import NewsTransport

WAIT_S_MAX = 30.0
# How many watched orders go into one query.
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
    refunded_cents: int = 0
    closed_by: str | None = None
    metadata: str = ""  # only of a written order: the gate does not keep it
    item: int = NO_ITEM


def is_later(order: OrderView, known: OrderView) -> bool:
    """Whether the order has moved on: its state is later, more of it is refunded, or a late payment has paid another
    order in its place."""
    if order.state is known.state:
        is_replaced = order.replaced_by is not None and known.replaced_by is None
        return is_replaced or order.refunded_cents > known.refunded_cents
    return order.state in states_after(known.state)


class OrderWatch:
    """One buyer's watch over one order. It keeps only the latest state, however slowly the buyer reads."""

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
        """Takes the order if it is later than the known one: the ledger's answers may overtake each other."""
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


async def stays() -> None:
    """Stands for a buyer who never hangs up."""
    await asyncio.get_running_loop().create_future()


class BuyerOrders:
    def __init__(self, ledger: TrackingLedger, gate: TrackingGate, sale_cache: SaleCache) -> None:
        self._ledger = ledger
        self._gate = gate
        self._sale_cache = sale_cache
        # Each watch is kept with its buyer: a gate that went back in time may have given one number to two buyers.
        self._watches: dict[int, dict[OrderWatch, str]] = {}
        self._closing = False
        # All buyers with an order look at it at the same moment, when a sale begins or after a node was replaced.
        self._written = BatchedReads(self._read)

    async def find(self, user: str, number: OrderNumber) -> OrderView | None:
        """None for an order that does not exist, and the same for another buyer's.

        An order moves from the gate to the ledger. One that the ledger refuses is set aside there before it is written
        with its final state. Looking in the same sequence finds an order wherever it is, even while it moves."""
        order = await self._written.of(number)
        if order is None:
            refs = self._sale_cache.recent_rounds(number.lane)
            held, doubtful = await self._held(user, refs)
            if number not in held:
                # Its sale may have been announced on another node a moment ago.
                await self._sale_cache.look_again()
                if (now := self._sale_cache.recent_rounds(number.lane)) != refs:
                    held, doubtful = await self._held(user, now)
            if number in held:
                return held[number]
            aside = await self._set_aside(user, number)
            # it may have been written since, and left the gate's record because it is over
            order = await self._written.of(number)
            if order is None:
                if aside is None:
                    await self._must_know(doubtful)
                return aside
        return recorded(order) if order.user == user else None

    async def _read(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Order]:
        return {order.number: order for order in await self._ledger.orders(numbers)}

    async def _held(
        self, user: str, refs: Sequence[RoundRef]
    ) -> tuple[dict[OrderNumber, OrderView], list[tuple[Sale, RoundRef]]]:
        """Returns the buyer's orders in the gate, and the rounds about which the gate cannot say."""
        found: dict[OrderNumber, OrderView] = {}
        doubtful = []
        for ref, holdings in zip(refs, await self._gate.holdings(refs, user), strict=True):
            sale = self._sale_cache.sale_of_round(ref.id)
            if sale is None:
                continue
            if holdings is None:
                doubtful.append((sale, ref))
            else:
                found |= {holding.number: queued(sale, holding) for holding in holdings if holding.live}
        return found, doubtful

    async def _must_know(self, doubtful: Sequence[tuple[Sale, RoundRef]]) -> None:
        """Raises while any of these rounds is really lost, wholly or in part: then no one can say that there is no such
        order in it. Most rounds that the gate does not have ended long ago or have never been opened."""
        for known, ref in doubtful:
            sale = await self._ledger.sale(known.id, ref.id)
            if sale is None or sale.round.retired_ms is not None:
                continue
            if sale.round.opened_ms is None and sale.round.epoch == FIRST_EPOCH:
                continue
            if self._sale_cache.is_watched(sale.round) or await self._gate.inspect(ref) is not None:
                raise GateUnavailable(f"The gate does not have all of round {ref.id} now.")

    async def _set_aside(self, user: str, number: OrderNumber) -> OrderView | None:
        views = self._views(user, await self._ledger.letters_about(number))
        return views[-1] if views else None

    def _views(self, user: str, letters: Sequence[Letter]) -> list[OrderView]:
        found = []
        for letter in letters:
            payload = letter.payload.encode()
            admission = read_entry(letter.lane, letter.entry_id, payload).admission or salvage(letter.lane, payload)
            sale = None if admission is None else self._sale_cache.sale_of_round(admission.round_id)
            if admission is not None and sale is not None and admission.user == user:
                given_up = letter.state in (LetterState.DEAD, LetterState.DISCARDED)
                queued_view = _view(sale, admission.number, admission.quantity, admission.item)
                view = replace(queued_view, metadata=admission.metadata)
                found.append(replace(view, state=OrderState.FAILED) if given_up else view)
        return found

    async def newest(
        self, user: str, before: OrderNumber | None, count: int, *, unconfirmed: bool = False
    ) -> list[OrderView]:
        """Looks into the gate, then at what is set aside, then at what is written, as orders move, so that none is
        missed. `unconfirmed`: includes orders that their buyer has not heard of yet."""
        lanes = {lane for ref in self._sale_cache.recent_rounds() for lane in ref.every_lane}
        standing = await self._gate.standing(lanes)
        others = await self._not_written(user)
        orders = [recorded(order) for order in await self._ledger.orders_of(user, before, count)]
        listed = {order.number for order in orders}
        wanted = [o for o in others if o.number not in listed and (before is None or o.number < before)]
        wanted = [o for o in wanted if unconfirmed or not self._is_unconfirmed(o)]
        written = {order.number: recorded(order) for order in await self._ledger.orders([o.number for o in wanted])}
        # The buyer may see an order's id here for the first time. To look up a single order, the buyer must have been
        # told its id before.
        await self._gate.assure({order.number.lane for order in wanted if order.number not in written}, standing)
        known = [written.get(order.number, order) for order in wanted]
        return sorted(known + orders, key=lambda order: order.number, reverse=True)[:count]

    async def _not_written(self, user: str) -> list[OrderView]:
        found, doubtful = await self._held(user, self._sale_cache.recent_rounds())
        await self._must_know(doubtful)
        aside = self._views(user, await self._ledger.letters_of(user))
        return list(({order.number: order for order in aside} | found).values())

    def _is_unconfirmed(self, order: OrderView) -> bool:
        """Whether the order's sale confirms only what is in the ledger, and the ledger does not have it yet."""
        sale = self._sale_cache.sale_of_round(order.round_id)
        return order.state is OrderState.QUEUED and sale is not None and sale.confirm is Confirm.LEDGER

    async def wait_for_change(
        self,
        user: str,
        number: OrderNumber,
        seen: str,
        wait_s: float,
        gone: Callable[[], Awaitable[None]] = stays,
        known: OrderView | None = None,
    ) -> OrderView | None:
        """Returns the order as soon as its state differs from `seen`, or as it is when the time is over. Stops waiting
        for a buyer who is `gone`. With `known`, the order as it was a moment ago, it is not looked up first."""
        deadline_s = asyncio.get_running_loop().time() + min(wait_s, WAIT_S_MAX)
        async with self.watch(user, number, known) as watch:
            if watch is None:
                return None

            async def end() -> None:
                await gone()
                watch.end()

            if watch.order.state == seen:
                ending = asyncio.create_task(end())
                try:
                    async with asyncio.timeout_at(deadline_s):
                        await watch.change()
                except TimeoutError:
                    pass
                finally:
                    ending.cancel()
            return watch.order

    async def are_written(
        self, user: str, sale: Sale, holdings: Sequence[Holding], wait_s: float, gone: Callable[[], Awaitable[None]]
    ) -> bool:
        """Returns whether the ledger has all these orders of a buyer, or gets them in time. Orders are written in the
        sequence of their numbers, so this waits for the newest missing one and then asks the ledger once more."""
        missing = await self._unwritten(user, holdings)
        if missing:
            newest = max(missing, key=lambda holding: holding.number)
            known = queued(sale, newest)
            await self.wait_for_change(user, newest.number, OrderState.QUEUED, wait_s, gone, known)
            missing = await self._unwritten(user, missing)
        return not missing

    async def _unwritten(self, user: str, holdings: Sequence[Holding]) -> list[Holding]:
        orders = await self._ledger.orders([holding.number for holding in holdings])
        written = {order.number for order in orders if order.user == user}
        return [holding for holding in holdings if holding.number not in written]

    @asynccontextmanager
    async def watch(
        self, user: str, number: OrderNumber, known: OrderView | None = None
    ) -> AsyncIterator[OrderWatch | None]:
        """None for an order that does not exist, and the same for another buyer's."""
        watch = OrderWatch()
        watches = self._watches.setdefault(int(number), {})
        watches[watch] = user  # before looking; otherwise a change in between would be missed
        try:
            order = known or await self.find(user, number)
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
        """Ends all waiting: every buyer gets the order as it is."""
        self._closing = True
        for watches in self._watches.values():
            for watch in watches:
                watch.end()

    async def listen(self, transport: NewsTransport) -> None:
        """Passes on announced changes, with one query for each announcement, however many buyers watch its orders."""
        async for states in transport.state_changes():
            await self._look_up([number for told in states.values() for number in self._watches.keys() & told])

    async def look_up_waiting(self) -> int:
        """The safety net under `listen`: looks up all awaited orders at once, so that a missed announcement costs only
        a second."""
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
    return _view(sale, holding.number, holding.quantity, holding.item)


def _view(sale: Sale, number: OrderNumber, quantity: int, item: int) -> OrderView:
    return OrderView(
        number=number,
        sale_id=sale.id,
        round_id=sale.round.id,
        quantity=quantity,
        state=OrderState.QUEUED,
        price_cents=sale.price_of(item) * quantity,
        currency=sale.currency,
        created_ms=number.minted_ms,
        item=item,
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
        refunded_cents=order.refunded_cents,
        closed_by=order.closed_by,
        metadata=order.metadata,
        item=order.item,
    )
