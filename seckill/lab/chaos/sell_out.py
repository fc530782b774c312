"""When the faults are over, sends buyers who pay at once, until every wanted unit is paid for.

A slow machine must not look like a leak of units, so buyers go on for as long as anything is sold, and units that come
back only when everything is at rest are offered once more. A unit counts as lost only if buyers were told clearly and
often enough that it cannot be bought."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from seckill.domain.line import LineOrder
from seckill.lab.chaos.buyer_calls import Caller
from seckill.lab.chaos.buyers import ChaosBuyers, OnSale
from seckill.lab.chaos.evidence import Evidence

POLL_S = 0.2
PAYERS = 6
# If nothing was sold for this long, and this many buyers were told that nothing is left, the rest cannot be bought.
SELL_WITHIN_S = 60.0
REFUSALS_MIN = 60
# If nothing was sold for this long, and hardly any buyer got an answer, the run cannot tell.
UNCLEAR_AFTER_S = 300.0
# The buyers ahead in the line may be gone: the line gets shorter as their orders lapse.
IN_LINE_S = 60.0
# Each turn sells units that came back only when all was at rest.
TURNS_MAX = 5


class SellOut:
    def __init__(
        self,
        buyers: ChaosBuyers,
        wanted: Sequence[OnSale],
        ports: Sequence[int],
        paid: Callable[[OnSale], Awaitable[int]],
        evidence: Evidence,
        clock: Callable[[], float],
    ) -> None:
        self._buyers = buyers
        self._wanted = wanted
        self._ports = ports
        self._paid = paid
        self._evidence = evidence
        self._clock = clock
        self._numbers = itertools.count()
        self._refused: Counter[str] = Counter()  # by sale, since its last unit was sold
        self._sold: dict[str, int] = {}  # by sale, units

    async def sell(self) -> None:
        """Sells until every unit is paid for, or nothing is sold any more."""
        done = {sale.id: asyncio.Event() for sale in self._wanted}
        async with asyncio.TaskGroup() as people:
            for sale in self._wanted:
                people.create_task(self._look(sale, done[sale.id]))
                for first in range(PAYERS):
                    people.create_task(self._buy(sale, Caller(self._ports, first), done[sale.id]))

    async def sell_what_came_back(self, rest: Callable[[], Awaitable[None]]) -> None:
        """Called when all is at rest. Goes on until everything is sold, or the rest cannot be sold."""
        for _ in range(TURNS_MAX):
            if not self._left():
                return
            before = self._left()
            await self.sell()
            await rest()
            if self._left() == before:
                return

    def _left(self) -> dict[str, int]:
        left = {sale.id: sale.offer.units - self._sold.get(sale.id, 0) for sale in self._wanted}
        return {sale_id: units for sale_id, units in left.items() if units > 0}

    async def _buy(self, sale: OnSale, caller: Caller, done: asyncio.Event) -> None:
        never = asyncio.Event()
        while not done.is_set():
            number = next(self._numbers)
            user = f"payer{number}"
            item_id = sale.items[number % len(sale.items)] if sale.items else None
            order_id = None
            if sale.offer.order is LineOrder.PRESS:
                order_id = await self._buyers.buy(caller, sale, user, f"of {user}", 1, never, item_id)
            if order_id is None and sale.offer.has_line:
                order_id = await self._buyers.wait_in_line(caller, sale, user, 1, done, IN_LINE_S)
            if order_id is None:
                self._refused[sale.id] += 1
                await asyncio.sleep(POLL_S)
            elif sale.offer.price_cents:
                await self._buyers.wish(caller, user, order_id, "pay", never)
        await caller.close()

    async def _look(self, sale: OnSale, done: asyncio.Event) -> None:
        paid, since_s = -1, self._clock()
        self._refused[sale.id] = 0
        while paid < sale.offer.units and not self._in_vain(sale, self._clock() - since_s):
            now = await self._paid(sale)
            if now > paid:
                paid, since_s = now, self._clock()
                self._refused[sale.id] = 0
            await asyncio.sleep(POLL_S)
        self._sold[sale.id] = max(0, paid)
        self._evidence.unclear.pop(sale.offer.title, None)
        if paid < sale.offer.units and self._refused[sale.id] < REFUSALS_MIN:
            self._evidence.unclear[sale.offer.title] = (
                f"{self._refused[sale.id]} buyers were told that nothing is left in {self._clock() - since_s:.0f} s"
            )
        done.set()

    def _in_vain(self, sale: OnSale, for_s: float) -> bool:
        told = self._refused[sale.id] >= REFUSALS_MIN
        return for_s >= (SELL_WITHIN_S if told else UNCLEAR_AFTER_S)
