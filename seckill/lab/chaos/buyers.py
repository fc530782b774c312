"""The load: buyers who buy, repeat, pay, cancel and forget, as one seed decides."""

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seckill.domain.lane_shares import deal
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Confirm
from seckill.lab.chaos.evidence import Ack, Told
from seckill.lab.chaos.http import Caller, Unanswered

AT_ONCE = 24
PAUSE_S = 0.08
UNCLEAR = {Outcome.UNKNOWN, Outcome.NOT_READY, Outcome.OVERLOADED, Outcome.RATE_LIMITED, "unavailable"}
RETRY_S = 0.15
# A good client does not give up for as long as a fault may last.
TRIES_MAX = 400
# Payments and cancellations: by then the order is over, or the buyer has lost interest.
WISHES_MAX = 60

WITHOUT_KEY = 0.2
HANGS_UP = 0.04  # sends the claim, does not wait for the answer, and repeats it
REPEATS = 0.25  # presses again when the answer was there
COMES_BACK = 0.15  # has been here before


@dataclass(frozen=True, slots=True)
class Offer:
    """A sale, and what its buyers do: the shares of those who pay and who cancel; the rest leave it unpaid."""

    title: str
    units: int
    limit: int
    price_cents: int
    pay_within_s: int
    weight: int
    pays: float = 0.0
    cancels: float = 0.0
    repeat: str | None = None
    wanted: bool = False  # is sold out at the end
    lanes: int = 1
    confirm: Confirm = Confirm.GATE
    vouchers: bool = False  # gives a code with each unit
    items: int = 0  # how many sizes its units come in, each with as many as the others

    @property
    def sizes(self) -> list[dict[str, object]]:
        """As they are announced."""
        parts = enumerate(deal(self.units, self.items) if self.items else [])
        return [{"title": f"size {n}", "units": units, "price_cents": self.price_cents} for n, units in parts]


# Sizes are for a minute, and grow with the run. What is left unpaid in the first one must not expire while the books
# are read.
OFFERS = (
    Offer(
        "always on", units=1_000_000, limit=3, price_cents=1000, pay_within_s=86_400, weight=5, pays=0.5, cancels=0.2
    ),
    Offer("soon back", 60, limit=1, price_cents=9900, pay_within_s=2, weight=3, pays=0.05, cancels=0.1, wanted=True),
    # So few for its lanes that units move from one to the other all the time.
    Offer("few", 40, limit=2, price_cents=500, pay_within_s=5, weight=2, pays=0.3, cancels=0.3, wanted=True, lanes=2),
    Offer("free", units=100, limit=1, price_cents=0, pay_within_s=60, weight=1, wanted=True),
    Offer("minutely", 50, 1, price_cents=700, pay_within_s=3, weight=2, pays=0.3, cancels=0.2, repeat="* * * * *"),
    Offer("sizes", 60, 2, price_cents=600, pay_within_s=3, weight=2, pays=0.2, wanted=True, lanes=2, items=3),
    Offer("confirmed", 1_000_000, 3, price_cents=800, pay_within_s=86_400, weight=3, pays=0.5, confirm=Confirm.LEDGER),
    Offer("codes", 20_000, 2, price_cents=300, pay_within_s=5, weight=2, pays=0.5, vouchers=True),
    # To the last code.
    Offer("free codes", 60, 2, price_cents=0, pay_within_s=60, weight=1, wanted=True, vouchers=True),
)


@dataclass(frozen=True, slots=True)
class OnSale:
    id: str
    offer: Offer
    items: tuple[str, ...] = ()  # their ids


class ChaosBuyers:
    def __init__(
        self,
        ports: Sequence[int],
        sales: Sequence[OnSale],
        token: Callable[[str], str],
        told: Told,
        clock: Callable[[], float],
        seed: int,
    ) -> None:
        self._ports = ports
        self._sales = sales
        self._token = token
        self._told = told
        self._clock = clock
        self._seed = seed
        self._numbers = itertools.count()

    async def crowd(self, enough: asyncio.Event) -> None:
        """Endless buyers, until told to stop."""
        async with asyncio.TaskGroup() as people:
            for number in range(AT_ONCE):
                people.create_task(self._one_after_the_other(number, enough))

    async def _one_after_the_other(self, number: int, enough: asyncio.Event) -> None:
        dice = random.Random(f"{self._seed} buyer {number}")  # noqa: S311 (chance, not a secret)
        caller = Caller(self._ports, number)
        known: list[str] = []
        weights = [sale.offer.weight for sale in self._sales]
        try:
            while not enough.is_set():
                (sale,) = dice.choices(self._sales, weights)
                fresh = f"b{next(self._numbers)}"
                user = dice.choice(known) if known and dice.random() < COMES_BACK else fresh
                known.append(user)
                await self._visit(dice, caller, sale, user, enough)
                await asyncio.sleep(dice.uniform(0, 2 * PAUSE_S))
        finally:
            await caller.close()

    async def _visit(self, dice: random.Random, caller: Caller, sale: OnSale, user: str, enough: asyncio.Event) -> None:
        key = "" if dice.random() < WITHOUT_KEY else f"k{dice.getrandbits(64):x}"
        quantity = dice.randint(1, min(2, sale.offer.limit))
        item_id = dice.choice(sale.items) if sale.items else None
        hangs_up = dice.random() < HANGS_UP
        repeats, fate = dice.random() < REPEATS, dice.random()
        order_id = await self.buy(caller, sale, user, key, quantity, enough, item_id, hangs_up=hangs_up)
        if order_id is None:
            return
        if repeats and key:
            await self.buy(caller, sale, user, key, quantity, enough, item_id)
        if fate < sale.offer.pays:
            await self.wish(caller, user, order_id, "pay", enough)
        elif fate < sale.offer.pays + sale.offer.cancels:
            await self.wish(caller, user, order_id, "cancel", enough)

    async def buy(
        self,
        caller: Caller,
        sale: OnSale,
        user: str,
        key: str,
        quantity: int,
        enough: asyncio.Event,
        item_id: str | None = None,
        *,
        hangs_up: bool = False,
    ) -> str | None:
        """Repeats with the same key until the answer is clear. The order's id, if there is one."""
        for attempt in range(TRIES_MAX):
            if enough.is_set() and attempt:
                break
            try:
                status, content = await caller.call(
                    "POST",
                    f"/v1/sales/{sale.id}/orders",
                    self._token(user),
                    {"quantity": quantity} | ({} if item_id is None else {"item_id": item_id}),
                    key=key,
                    listen=not (hangs_up and attempt == 0),
                )
            except Unanswered:
                self._told.codes["no answer"] += 1
                await asyncio.sleep(RETRY_S)
                continue
            if status in (201, 202):
                self._told.codes["accepted" if status == 202 else "confirmed"] += 1
                self._acknowledge(sale, user, key, status, content, item_id)
                return str(content["order_id"])
            code = str(content.get("code", status))
            self._told.codes[code] += 1
            if status < 500 and code not in UNCLEAR:
                return None
            await asyncio.sleep(RETRY_S)
        return None

    def _acknowledge(
        self, sale: OnSale, user: str, key: str, status: int, content: dict[str, Any], item_id: str | None
    ) -> None:
        self._told.acknowledge(
            Ack(
                order_id=content["order_id"],
                sale=sale.offer.title,
                round_id=int(content["round"]),
                user=user,
                key=key,
                quantity=content["quantity"],
                at_s=self._clock(),
                promised=sale.offer.confirm is Confirm.LEDGER,
                confirmed=status == 201,
                item_id=item_id,
            )
        )

    async def wish(self, caller: Caller, user: str, order_id: str, what: str, enough: asyncio.Event) -> bool:
        """Pays or cancels, until there is a clear answer or the buyer loses patience."""
        for _ in range(WISHES_MAX):
            try:
                status, content = await caller.call("POST", f"/v1/orders/{order_id}/{what}", self._token(user))
            except Unanswered:
                status, content = 0, {}
            if status == 200:
                (self._told.paid if what == "pay" else self._told.cancelled).add(order_id)
                return True
            if enough.is_set() or status == 404 or content.get("code") == "order_over":
                return False
            await asyncio.sleep(RETRY_S)
        return False
