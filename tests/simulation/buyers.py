"""The people of a run: they press, repeat when they hear nothing, pay, cancel, forget."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, TypeVar

from msgspec import structs

from seckill.domain.admission import Claim
from seckill.domain.item import NO_ITEM, ItemChange
from seckill.domain.line import EntryState, LineEntry
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundRef, RoundStatus, Sale, SaleChange
from seckill.errors import SeckillError
from seckill.ports.line import Joining, Standing
from seckill.ports.payment import Capture
from tests.simulation.checks import FOLLOWS
from tests.simulation.doors import person_of
from tests.simulation.line_checks import WAITING
from tests.simulation.processes import Killed
from tests.simulation.roles import PROVIDER, ApiNode
from tests.simulation.world import World

T = TypeVar("T")

# The outcomes that people get who press where others wait in line.
SENT_TO_LINE = {Outcome.SOLD_OUT, Outcome.JOIN_THE_LINE}
# Not a decision: the same again may get one.
UNDECIDED = {Outcome.NOT_READY, Outcome.UNKNOWN, Outcome.OVERLOADED, Outcome.NOT_STARTED, Outcome.PAUSED}
PATIENCE_S = 1.5

PAUSE = SaleChange(status=RoundStatus.PAUSED)
RESUME = SaleChange(status=RoundStatus.OPEN)


class Unheard(Exception):
    """The answer did not come."""


@dataclass(frozen=True, slots=True)
class Offer:
    public_id: str
    sale: Sale


class Person:
    """A buyer at the other end of a bad line."""

    def __init__(self, world: World, name: str, chance: Random) -> None:
        self.world = world
        self.name = name
        self.chance = chance
        self._seen: dict[OrderNumber, str] = {}
        self._entries: dict[int, LineEntry] = {}
        self._money = 0

    async def ask(self, node: ApiNode, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Raises Unheard if the answer is lost or late. What was asked for may have been done."""
        asking = asyncio.ensure_future(node.process.ask(work))
        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await asyncio.shield(asking)
        except (Killed, TimeoutError, SeckillError):
            # A buyer who hangs up does not stop what was begun.
            asking.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise Unheard from None
        if self.world.storm and self.chance.random() < self.world.weather.cut_back:
            raise Unheard
        return answer

    def node(self) -> ApiNode:
        return self.chance.choice(self.world.nodes())

    async def press(
        self, offer: Offer, quantity: int, key: str, tries: int, item: int = NO_ITEM
    ) -> tuple[Outcome, OrderNumber | None]:
        """Presses with the same key until there is an answer; without a key, once."""
        outcome = Outcome.UNKNOWN
        for _ in range(tries if key else 1):
            asked_s = self.world.now_s()
            person = person_of(self.name) if offer.sale.limit_by else ""
            claim = Claim(self.name, quantity, key, item=item, person=person)
            node = self.node()
            try:
                found = await self.ask(node, partial(node.claim, offer.public_id, claim))
            except Unheard:
                found = None
            if found is not None:
                ref, answer = found
                outcome = answer.outcome
                self.world.counts[outcome] += 1
                if outcome is Outcome.LIMIT_REACHED and (offer.sale.limit_by or offer.sale.round.limit_group):
                    self.world.counts["a shared limit is reached"] += 1
                for holding in answer.holdings:
                    self.world.checks.promised[int(holding.number)] = ref
                if outcome in (Outcome.ADMITTED, Outcome.REPEATED):
                    return outcome, answer.holdings[0].number
                if outcome is Outcome.SOLD_OUT and not self.world.checks.may_say_sold_out(ref, item, quantity, asked_s):
                    self.world.break_(f"F3: {self.name} is told that round {ref.id}, item {item}, is sold out")
                if outcome is Outcome.SOLD_OUT and item:
                    self.world.counts["an item is sold out"] += 1
                if outcome is Outcome.COOLING_DOWN and not self.world.checks.books.has_lapsed(self.name, ref.id):
                    self.world.break_(f"S18: {self.name} has to wait for round {ref.id}, and never let an order lapse")
                if outcome not in UNDECIDED:
                    return outcome, None
            await asyncio.sleep(self.chance.uniform(0.05, 0.6))
        return outcome, None

    async def join(self, offer: Offer, quantity: int, item: int, tries: int) -> int | None:
        """Repeats until there is an answer. Returns the entry, or None if there is none or no answer came."""
        person = person_of(self.name) if offer.sale.limit_by else ""
        joining = Joining(user=self.name, quantity=quantity, item=item, person=person)
        for _ in range(tries):
            node = self.node()
            self._entries.clear()  # what was over may go on
            try:
                joined = await self.ask(node, partial(node.join, offer.public_id, joining))
            except Unheard:
                await asyncio.sleep(self.chance.uniform(0.05, 0.6))
                continue
            if not isinstance(joined, Standing):
                return None
            self.world.counts["joined"] += joined.new
            self._see_entry(joined.entry)
            return joined.entry.id
        return None

    async def leave(self, entry_id: int) -> None:
        node = self.node()
        try:
            left = await self.ask(node, partial(node.leave, self.name, entry_id))
        except Unheard:
            return
        if isinstance(left, Standing):
            self.world.counts["left the line"] += 1
            self._see_entry(left.entry)

    async def look_at_entry(self, entry_id: int) -> LineEntry | None:
        node = self.node()
        try:
            found = await self.ask(node, partial(node.entry, self.name, entry_id))
        except Unheard:
            return None
        if found is None:
            self.world.break_(f"L1: {self.name} has entry {entry_id}, and now it does not exist")
            return None
        return self._see_entry(found.entry)

    def _see_entry(self, entry: LineEntry) -> LineEntry:
        seen = structs.replace(entry, state=entry.state.shown)
        before = self._entries.get(entry.id)
        # One that left a closed list has its place there all the same, when that is drawn.
        if (
            before is not None
            and before.state is not EntryState.WAITING
            and (before.state, before.order_number) != (seen.state, seen.order_number)
        ):
            self.world.break_(f"L2: {self.name} saw entry {entry.id} as {before}, and now as {seen}")
        if before is None or before.state is not seen.state:
            self.world.counts[f"entry {seen.state}"] += 1
        self._entries[entry.id] = seen
        self.world.lines.promised[entry.id] = self.name
        if seen.order_number is not None:
            self.world.checks.promised[int(seen.order_number)] = RoundRef(id=seen.round_id, lane=seen.order_number.lane)
        return seen

    async def look(self, number: OrderNumber, wait_s: float) -> str | None:
        """Returns the state of the buyer's order, or None if it cannot be learnt now."""
        node = self.node()
        seen = self._seen.get(number, "queued")
        try:
            view = await self.ask(node, partial(node.look, self.name, number, seen, wait_s))
        except Unheard:
            return None
        if view is None:
            if seen != "queued":
                self.world.break_(f"I18: {self.name} saw order {int(number)} as {seen}, and now it does not exist")
            return None
        self.see(number, view.state)
        return view.state

    def see(self, number: OrderNumber, state: str) -> None:
        before = self._seen.get(number, "queued")
        if state != before and not _may_follow(before, state):
            self.world.break_(f"I18: {self.name} saw order {int(number)} go from {before} to {state}")
        self._seen[number] = state

    async def pay(self, number: OrderNumber, offer: Offer, quantity: int, tries: int, item: int = NO_ITEM) -> bool:
        """The provider has the money, and says so until it is understood."""
        self._money += 1
        capture = Capture(
            provider=PROVIDER,
            ref=f"{self.name}-{self._money}",
            amount_cents=offer.sale.price_of(item) * quantity,
            currency=offer.sale.currency,
        )
        for _ in range(tries):
            node = self.node()
            try:
                captured = await self.ask(node, partial(node.capture, number, capture))
            except Unheard:
                captured = None
            if captured is not None and captured.order is not None:
                self.world.counts[f"money {captured.fate}"] += 1
                return captured.order.state is OrderState.PAID
            await asyncio.sleep(self.chance.uniform(0.1, 0.5))
        return False

    async def press_pay(self, number: OrderNumber, offer: Offer, quantity: int, item: int) -> None:
        """Pays as with a provider that takes the buyer's word for it."""
        capture = Capture(
            provider=PROVIDER,
            ref=f"*{int(number)}",
            amount_cents=offer.sale.price_of(item) * quantity,
            currency=offer.sale.currency,
        )
        node = self.node()
        try:
            changed = await self.ask(node, partial(node.pay, self.name, number, capture))
        except Unheard:
            return
        if changed is not None:
            self.see(number, changed.order.state)

    async def cancel(self, number: OrderNumber) -> None:
        node = self.node()
        try:
            changed = await self.ask(node, partial(node.cancel, self.name, number))
        except Unheard:
            return
        if changed is not None:
            self.see(number, changed.order.state)


def _may_follow(before: str, state: str) -> bool:
    return any(state == each or _may_follow(each, state) for each in FOLLOWS[before])


async def shop(person: Person, offers: list[Offer]) -> None:
    """One buyer while things go wrong."""
    chance = person.chance
    await asyncio.sleep(chance.uniform(0.0, 2.0))
    for turn in range(chance.randint(1, 3)):
        offer = chance.choice(offers)
        quantity = chance.randint(1, offer.sale.round.limit_per_buyer)
        key = f"{turn:x}" if chance.random() < 0.85 else ""
        item = wanted_item(person.name, turn, offer)
        rules = offer.sale.door.line
        if rules.draws and chance.random() < 0.9:
            await stand_in_line(person, offer, quantity, item)
            continue
        presses = [person.press(offer, quantity, key, 4, item) for _ in range(2 if chance.random() < 0.3 else 1)]
        pressed = await asyncio.gather(*presses)
        numbers = [number for _, number in pressed if number is not None]
        if numbers:
            await live_with(person, offer, quantity, chance.choice(numbers), item)
        elif rules.has_line and any(outcome in SENT_TO_LINE for outcome, _ in pressed):
            await stand_in_line(person, offer, quantity, item)
        await asyncio.sleep(chance.uniform(0.0, 0.5))


async def stand_in_line(person: Person, offer: Offer, quantity: int, item: int) -> None:
    """Joins, perhaps twice at once, perhaps leaves and comes back, and lives with what the line brings."""
    chance = person.chance
    joins = [person.join(offer, quantity, item, 4) for _ in range(2 if chance.random() < 0.2 else 1)]
    entries = [entry for entry in await asyncio.gather(*joins) if entry is not None]
    if not entries:
        return
    if chance.random() < 0.2:
        await asyncio.sleep(chance.uniform(0.0, 0.8))
        await person.leave(entries[0])
        if chance.random() < 0.5:
            await person.join(offer, quantity, item, 4)
    for _ in range(chance.randint(1, 12)):
        seen = await person.look_at_entry(entries[0])
        if seen is not None and seen.state is not EntryState.WAITING:
            if seen.order_number is not None:
                await live_with(person, offer, seen.quantity, seen.order_number, seen.item)
            return
        await asyncio.sleep(chance.uniform(0.1, 0.5))


def wanted_item(name: str, turn: int, offer: Offer) -> int:
    """Drawn apart, so that people do what they did before there were items."""
    items = [item.id for item in offer.sale.items]
    return Random(f"{name} {turn} {offer.sale.id}").choice(items) if items else NO_ITEM


async def live_with(person: Person, offer: Offer, quantity: int, number: OrderNumber, item: int) -> None:
    chance = person.chance
    state = None
    for _ in range(chance.randint(0, 3)):
        state = await person.look(number, chance.uniform(0.1, 1.0))
        if state not in (None, "queued"):
            break
    plan = chance.random()
    if plan < 0.4 and offer.sale.price_of(item):
        if chance.random() < 0.3:
            await asyncio.sleep(chance.uniform(0.5, 2.5))  # perhaps too late
        if chance.random() < 0.2:
            await person.press_pay(number, offer, quantity, item)
        for _ in range(2 if chance.random() < 0.15 else 1):
            await person.pay(number, offer, quantity, 5, item)
    elif plan < 0.7:
        await person.cancel(number)
    for _ in range(chance.randint(0, 2)):
        await person.look(number, chance.uniform(0.0, 0.5))


async def operate(person: Person, offers: list[Offer]) -> None:
    """An operator with nervous hands."""
    chance = person.chance
    for _ in range(chance.randint(0, 2)):
        await asyncio.sleep(chance.uniform(0.3, 1.5))
        change = chance.choice((SaleChange(add_units=chance.randint(1, 3)), PAUSE, RESUME))
        offer = chance.choice(offers)
        if offer.sale.items and change.add_units:
            item = wanted_item("operator", change.add_units, offer)
            change = SaleChange(items=(ItemChange(id=item, add_units=change.add_units),))
        rounds = [row.id for row in person.world.checks.books.rounds.values() if row.sale_id == offer.sale.id]
        await order_about(person, offer, chance.choice(rounds), change)


async def take_back(person: Person) -> None:
    """An operator who cancels and refunds, and asks again with the same key when nothing is heard. Mostly what fits the
    order as the operator saw it; it may be another by then."""
    chance = person.chance
    for turn in range(chance.randint(0, 6)):
        await asyncio.sleep(chance.uniform(0.2, 1.2))
        known = person.world.checks.books.orders
        waiting = sorted(number for number, row in known.items() if row.state == "unpaid")
        if not known:
            continue
        wanted = waiting if waiting and chance.random() < 0.7 else sorted(known)
        number = OrderNumber.from_int(chance.choice(wanted))
        cents = None if wanted is waiting and chance.random() < 0.8 else chance.choice((None, 0, 0, 50, 100))
        wish = partial(ApiNode.act, number=number, cents=cents, back=chance.random() < 0.6, key=f"{person.name}-{turn}")
        for _ in range(3):
            node = person.node()
            try:
                acted = await person.ask(node, partial(wish, node))
            except Unheard:
                continue
            if acted is not None:
                person.world.counts[f"operator {'cancel' if cents is None else 'refund'} {acted.outcome}"] += 1
            break


async def tend_lines(person: Person) -> None:
    """An operator who pauses lines, changes their pace and removes people. What is paused is resumed in the end."""
    chance, lines = person.chance, person.world.lines
    changed: set[int] = set()
    for _ in range(chance.randint(0, 5)):
        await asyncio.sleep(chance.uniform(0.2, 1.2))
        if not lines.lines:
            continue
        round_id = chance.choice(sorted(lines.lines))
        waiting = sorted(entry.id for entry in lines.of(round_id) if entry.state == WAITING)
        node = person.node()
        try:
            if waiting and chance.random() < 0.4:
                removed = await person.ask(node, partial(node.remove, chance.choice(waiting)))
                person.world.counts["an entry is removed"] += isinstance(removed, Standing)
            else:
                changed.add(round_id)
                paused, pace = chance.choice((True, True, False, None)), chance.choice((None, 0, 1, 4))
                await person.ask(node, partial(node.change_line, round_id, paused, pace))
                person.world.counts["a line is paused"] += paused is True
        except Unheard:
            continue
    while changed:
        node, round_id = person.node(), min(changed)
        try:
            await person.ask(node, partial(node.change_line, round_id, paused=False, pace=0))
        except Unheard:
            await asyncio.sleep(chance.uniform(0.1, 0.5))
        else:
            changed.remove(round_id)


async def order_about(person: Person, offer: Offer, round_id: int, change: SaleChange) -> bool:
    node = person.node()
    seen = replace(offer.sale, round=replace(offer.sale.round, id=round_id))
    try:
        await person.ask(node, partial(node.change, seen, change))
    except Unheard:
        return False
    return True
