"""The load: buyers who buy, repeat, pay, cancel and forget. One seed decides who does what."""

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seckill.domain.lane_shares import deal
from seckill.domain.line import LineOrder
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Confirm
from seckill.lab.chaos.buyer_calls import Caller, Unanswered
from seckill.lab.chaos.evidence import Ack, EntryTold, Told

AT_ONCE = 24
PAUSE_S = 0.08
UNCLEAR = {Outcome.UNKNOWN, Outcome.NOT_READY, Outcome.OVERLOADED, Outcome.RATE_LIMITED, "unavailable"}
RETRY_S = 0.15
# Enough for a good client to outlast any fault.
TRIES_MAX = 400
# For payments and cancellations: by then the order has ended, or the buyer has lost interest.
WISHES_MAX = 60

WITHOUT_KEY = 0.2
HANGS_UP = 0.04  # the share of buyers who send the claim, do not wait for the answer, and repeat it
REPEATS = 0.25  # who press again after the answer
COMES_BACK = 0.15  # who have come before
LEAVES = 0.1  # who leave the line after joining it
# How long a buyer looks at the page; a buyer who is served later lets the order lapse.
IN_LINE_S = 6.0
LOOK_S = 2
ARRIVAL, DRAW = LineOrder.ARRIVAL, LineOrder.DRAW


@dataclass(frozen=True, slots=True)
class Offer:
    """A sale, and the shares of its buyers who pay and who cancel; the others leave their orders unpaid."""

    title: str
    units: int
    limit: int
    price_cents: int
    pay_within_s: int
    weight: int
    pays: float = 0.0
    cancels: float = 0.0
    repeat: str | None = None
    wanted: bool = False  # must be sold out at the end
    lanes: int = 1
    confirm: Confirm = Confirm.GATE
    vouchers: bool = False  # gives a code with each unit
    order: LineOrder = LineOrder.PRESS
    waiting_list: bool = False
    begins_in_s: float = -3600.0  # seconds after the announcement
    group: str | None = None  # sales of the same group share one limit
    items: int = 0  # number of sizes, each with the same number of units

    @property
    def has_line(self) -> bool:
        return self.waiting_list or self.order is not LineOrder.PRESS

    @property
    def sizes(self) -> list[dict[str, object]]:
        """Returns the sizes in the form in which they are announced."""
        parts = enumerate(deal(self.units, self.items) if self.items else [])
        return [{"title": f"size {n}", "units": units, "price_cents": self.price_cents} for n, units in parts]


# Stocks are given for a minute, and grow with the run. Unpaid orders of the first sale must not expire while the books
# are read.
OFFERS = (
    Offer(
        "always on", units=1_000_000, limit=3, price_cents=1000, pay_within_s=86_400, weight=5, pays=0.5, cancels=0.2
    ),
    Offer("soon back", 60, limit=1, price_cents=9900, pay_within_s=2, weight=3, pays=0.05, cancels=0.1, wanted=True),
    # Has so few units for its lanes that units move between lanes all the time.
    Offer("few", 40, limit=2, price_cents=500, pay_within_s=5, weight=2, pays=0.3, cancels=0.3, wanted=True, lanes=2),
    Offer("free", units=100, limit=1, price_cents=0, pay_within_s=60, weight=1, wanted=True),
    Offer("minutely", 50, 1, price_cents=700, pay_within_s=3, weight=2, pays=0.3, cancels=0.2, repeat="* * * * *"),
    Offer("sizes", 60, 2, price_cents=600, pay_within_s=3, weight=2, pays=0.2, wanted=True, lanes=2, items=3),
    Offer("confirmed", 1_000_000, 3, price_cents=800, pay_within_s=86_400, weight=3, pays=0.5, confirm=Confirm.LEDGER),
    Offer("codes", 20_000, 2, price_cents=300, pay_within_s=5, weight=2, pays=0.5, vouchers=True),
    # Sells out to the last voucher code.
    Offer("free codes", 60, 2, price_cents=0, pay_within_s=60, weight=1, wanted=True, vouchers=True),
    # Has so few units that most of the buyers wait.
    Offer("waiting list", 15, 1, price_cents=900, pay_within_s=2, weight=2, pays=0.2, wanted=True, waiting_list=True),
    # Its list is closed and drawn while things break.
    Offer(
        "draw", 15, 2, price_cents=400, pay_within_s=2, weight=2, pays=0.2, wanted=True, order=DRAW, begins_in_s=25.0
    ),
    # Two sales with one limit: buyers press in one and wait in line in the other.
    Offer("red", 30, 1, price_cents=200, pay_within_s=2, weight=1, pays=0.2, cancels=0.2, wanted=True, group="colours"),
    Offer(
        "blue", 15, 1, price_cents=200, pay_within_s=2, weight=2, pays=0.2, wanted=True, order=ARRIVAL, group="colours"
    ),
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
        """Sends buyers until `enough` is set."""
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
        order_id = None
        if sale.offer.order is LineOrder.PRESS:
            order_id = await self.buy(caller, sale, user, key, quantity, enough, item_id, hangs_up=hangs_up)
        if order_id is None and sale.offer.has_line:
            leaves = dice.random() < LEAVES
            order_id = await self.wait_in_line(caller, sale, user, quantity, enough, IN_LINE_S, leaves=leaves)
            repeats = False
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
        """Repeats with the same key until the answer is clear. Returns the order's id, if there is one."""
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

    async def wait_in_line(
        self,
        caller: Caller,
        sale: OnSale,
        user: str,
        quantity: int,
        enough: asyncio.Event,
        patience_s: float,
        *,
        leaves: bool = False,
    ) -> str | None:
        """Joins the line and looks until the buyer is served or out of patience. Returns the order's id, if there is
        one."""
        entry = await self._until_clear(caller, "POST", f"/v1/sales/{sale.id}/entries", user, enough, quantity)
        if entry is None:
            return None
        path = f"/v1/entries/{entry['entry_id']}"
        if leaves:
            await self._until_clear(caller, "DELETE", path, user, enough)
            return None
        until_s = self._clock() + patience_s
        while entry["state"] == "waiting" and self._clock() < until_s and not enough.is_set():
            try:
                status, content = await caller.call("GET", f"{path}?wait={LOOK_S}", self._token(user))
            except Unanswered:
                status = 0
            if status == 200:
                entry = content
                self._note_entry(user, entry)
            else:
                await asyncio.sleep(RETRY_S)
        order_id = entry.get("order_id")
        return None if order_id is None else str(order_id)

    async def _until_clear(
        self, caller: Caller, method: str, path: str, user: str, enough: asyncio.Event, quantity: int | None = None
    ) -> dict[str, Any] | None:
        """Returns the entry, or None if it was refused for a clear reason or the run is over."""
        body = None if quantity is None else {"quantity": quantity}
        for attempt in range(TRIES_MAX):
            if enough.is_set() and attempt:
                break
            try:
                status, content = await caller.call(method, path, self._token(user), body)
            except Unanswered:
                self._told.codes["no answer"] += 1
                await asyncio.sleep(RETRY_S)
                continue
            if status in (200, 201):
                self._told.codes["joined" if status == 201 else "entry"] += 1
                self._note_entry(user, content)
                return dict(content)
            code = str(content.get("code", status))
            self._told.codes[code] += 1
            if status < 500 and code not in UNCLEAR:
                return None
            await asyncio.sleep(RETRY_S)
        return None

    def _note_entry(self, user: str, content: dict[str, Any]) -> None:
        self._told.entries[content["entry_id"]] = EntryTold(
            entry_id=content["entry_id"],
            round_id=int(content["round"]),
            user=user,
            quantity=content["quantity"],
            order_id=content["order_id"],
        )

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
        """Tries to pay or cancel until there is a clear answer or the buyer loses patience."""
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
