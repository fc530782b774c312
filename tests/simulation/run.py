"""`simulate(seed)`: one run from its seed to its verdict. The same seed gives the same run, step by step."""

import asyncio
import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import structlog

from seckill.domain.item import NO_ITEM, ItemDraft
from seckill.domain.line import EntryState
from seckill.domain.outcome import Outcome
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import SaleDraft
from tests.simulation.buyers import RESUME, Offer, Person, operate, order_about, shop, take_back, tend_lines
from tests.simulation.checks import FOLLOWS, Broken, RoundRow
from tests.simulation.database import prepare
from tests.simulation.doors import with_doors
from tests.simulation.hurry import hurried
from tests.simulation.loop import Stuck, VirtualLoop
from tests.simulation.weather import STORM_S, Weather, draw
from tests.simulation.world import BEGIN_MS, NEXT_MINUTE_MS, World

# When the storm is over, everything has to be at rest within this.
REST_WITHIN_S = 40.0
LOOK_EVERY_S = 0.25
OPEN_FOR_S = 3600.0
MINUTE_MS = 60_000
SHARED_MEMORY = Path("/dev/shm")

Plant = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    seed: int
    broken: str  # the first thing that did not hold; empty if all held
    digest: str  # of everything that happened, in its order
    steps: int
    lasted_s: float  # of made-up time
    counts: Mapping[str, int]
    weather: Weather
    trace: list[str]

    @property
    def held(self) -> bool:
        return not self.broken


def simulate(seed: int, plant: Plant = nullcontext, *, chatty: bool = False) -> Verdict:
    """`plant` changes the engine for as long as the run lasts, to see whether that is noticed."""
    prepare()
    loop = VirtualLoop(Random(f"{seed} order"))
    weather = draw(Random(f"{seed} weather"))
    where = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="seckill-simulation", dir=where) as folder,
        hurried(loop, seed, BEGIN_MS),
        plant(),
    ):
        world = World(loop, Random(f"{seed} chances"), weather, Path(folder))
        try:
            with listening(world, chatty=chatty):
                broken = loop.run_until_complete(_to_the_end(world, seed))
                steps, lasted_s = loop.steps, loop.time()
                unwind(world)
        finally:
            world.file.close()
            loop.close()
    return Verdict(
        seed=seed,
        broken=broken,
        digest=world.digest.hexdigest(),
        steps=steps,
        lasted_s=lasted_s,
        counts=world.counts,
        weather=weather,
        trace=list(world.trace),
    )


async def _to_the_end(world: World, seed: int) -> str:
    story = asyncio.ensure_future(_story(world, seed))
    await asyncio.wait([story, world.broken], return_when=asyncio.FIRST_COMPLETED)
    try:
        if world.broken.done():
            await world.broken
        await story
    except Broken as error:
        return str(error)
    return ""


async def _story(world: World, seed: int) -> None:
    chance = Random(f"{seed} people")
    world.storm = False
    offers = [Offer(*made) for made in await world.announce(_drafts(chance, Random(f"{seed} doors")))]
    world.lines.persons = {offer.sale.id for offer in offers if offer.sale.limit_by}
    world.storm = True
    for name in ("a1", "a2", "w1", "w2", "k1", "k2"):
        world.start(name)
    world.arrange()
    people = [
        asyncio.ensure_future(shop(Person(world, f"u{n}", Random(f"{seed} u{n}")), offers))
        for n in range(chance.randint(3, 9))
    ]
    people.append(asyncio.ensure_future(operate(Person(world, "operator", Random(f"{seed} operator")), offers)))
    people.append(asyncio.ensure_future(tend_lines(Person(world, "usher", Random(f"{seed} usher")))))
    people.append(asyncio.ensure_future(take_back(Person(world, "desk", Random(f"{seed} desk")))))
    await asyncio.sleep(STORM_S)
    world.storm = False
    world.note("calm")
    for process in world.processes:
        world.go_on(process)
    await _rest(world, offers, people, seed)


def _drafts(chance: Random, doors: Random) -> list[SaleDraft]:
    drafts = []
    for n in range(chance.choice((1, 1, 2))):
        begins_ms = BEGIN_MS + chance.randint(0, 700)
        lasts_s = OPEN_FOR_S if n == 0 or chance.random() < 0.5 else chance.uniform(1.0, STORM_S)
        recurrence = None
        if chance.random() < 0.25:  # every minute; one of them begins in the middle of the storm
            begins_ms, lasts_s = NEXT_MINUTE_MS - MINUTE_MS, chance.choice((60.0, 59.7))
            recurrence = Recurrence(
                repeat="* * * * *", timezone="UTC", begins_ms=begins_ms, window_ms=int(lasts_s * 1000)
            )
        drafts.append(
            SaleDraft(
                title=f"sale {n}",
                units=chance.choice((1, 2, 3, 5, 8, 12)),
                limit_per_buyer=chance.randint(1, 3),
                price_cents=chance.choice((0, 100, 250)),
                currency="CNY",
                begins_ms=begins_ms,
                ends_ms=begins_ms + int(lasts_s * 1000),
                pay_within_s=chance.choice((1, 1, 2, 3)),
                recurrence=recurrence,
                lanes=chance.choice((1, 1, 2, 3)),
                cool_down_s=Random(begins_ms).choice((0, 1, 1, 2)),
            )
        )
    lined = with_doors(drafts, doors)
    return [_with_items(draft, Random(f"{draft.begins_ms} {draft.units} items")) for draft in lined]


def _with_items(draft: SaleDraft, chance: Random) -> SaleDraft:
    """Some have sizes, of which each costs something else."""
    many = min(chance.choice((0, 0, 1, 2, 3)), draft.units)
    if many == 0:
        return draft
    units = [1] * many
    for _ in range(draft.units - many):
        units[chance.randrange(many)] += 1
    items = tuple(
        ItemDraft(title=f"size {n}", units=each, price_cents=draft.price_cents + 50 * n) for n, each in enumerate(units)
    )
    return replace(draft, items=items)


async def _rest(world: World, offers: list[Offer], people: Sequence[asyncio.Future[None]], seed: int) -> None:
    """Everything is sold to those who still come, and everything that was begun is finished."""
    await asyncio.gather(*people)
    deadline_s = world.now_s() + REST_WITHIN_S
    last = [asyncio.ensure_future(_buy_the_rest(world, offer, f"{seed} last {offer.sale.id}")) for offer in offers]
    while (why := _unrest(world)) or not all(each.done() for each in last):
        if world.now_s() > deadline_s:
            raise Broken(f"I22: not at rest: {why or 'buyers still try'}")
        await asyncio.sleep(LOOK_EVERY_S)
    await asyncio.gather(*last)
    world.check(world.checks.at_rest)
    world.check(world.lines.check_draws)
    world.check(lambda: world.checks.check_given_back(world.refunded))


async def _buy_the_rest(world: World, offer: Offer, seed: str) -> None:
    """One after the other, until every unit of the round that is on is paid for."""
    customer = 0
    while any(_is_on(world, row) and not _is_paid_for(world, row) for row in _rounds(world, offer)):
        customer += 1
        person = Person(world, f"last{offer.sale.id}-{customer}", Random(f"{seed} {customer}"))
        for row in _rounds(world, offer):
            if _is_on(world, row) and row.status == "paused":
                await order_about(person, offer, row.id, RESUME)
        items = [item.id for item in offer.sale.items] or [NO_ITEM]
        item = items[customer % len(items)]
        if offer.sale.door.line.has_line and await _wait_for_one(world, person, offer, items):
            continue
        outcome, number = await person.press(offer, 1, "1", 20, item)
        if number is None:
            await asyncio.sleep(LOOK_EVERY_S if outcome is Outcome.SOLD_OUT else 0.1)
        elif offer.sale.price_of(item):
            await person.pay(number, offer, 1, 20, item)
        else:
            await person.look(number, 1.0)


async def _wait_for_one(world: World, person: Person, offer: Offer, items: list[int]) -> bool:
    """Whether there was a line to wait in. No one joins for an item whose units are all paid for."""
    on = next((row for row in _rounds(world, offer) if _is_on(world, row) and not _is_paid_for(world, row)), None)
    if on is None:
        return True
    item = person.chance.choice([item for item in items if not _is_item_paid_for(world, on, item)])
    entry_id = await person.join(offer, 1, item, 20)
    if entry_id is None:  # there are units left
        return False
    seen = await person.look_at_entry(entry_id)
    while seen is None or seen.state is EntryState.WAITING:
        if not _is_on(world, on) or _is_item_paid_for(world, on, item):
            break
        await asyncio.sleep(LOOK_EVERY_S)
        seen = await person.look_at_entry(entry_id)
    if seen is not None and seen.order_number is not None and offer.sale.price_of(seen.item):
        await person.pay(seen.order_number, offer, 1, 20, seen.item)
    return True


def _is_item_paid_for(world: World, row: RoundRow, item: int) -> bool:
    if item == NO_ITEM:
        return _is_paid_for(world, row)
    books = world.checks.books
    mine = [each for each in books.orders.values() if (each.round_id, each.item_id) == (row.id, item)]
    paid = sum(each.quantity for each in mine if each.holds_units and each.state in ("paid", "refunded"))
    return paid >= books.items[row.id, item][0]


def _rounds(world: World, offer: Offer) -> list[RoundRow]:
    return [row for row in world.checks.books.rounds.values() if row.sale_id == offer.sale.id]


def _is_on(world: World, row: RoundRow) -> bool:
    return row.begins_ms <= world.now_ms() < row.ends_ms


def _is_paid_for(world: World, row: RoundRow) -> bool:
    """True if every unit is paid for, or stays sold though its money has gone back."""
    return world.checks.books.units(row.id, {"paid", "refunded"}) >= row.total


def _unrest(world: World) -> str:
    """Returns what is not finished yet."""
    books, contents = world.checks.books, world.store.contents
    waiting = {name: count for name, count in books.unsettled.items() if count}
    waiting |= {f"lane {number}": len(lane.entries) for number, lane in contents.lanes.items() if lane.entries}
    for row in books.rounds.values():
        if books.units(row.id, {"unpaid"}):
            waiting[f"unpaid of round {row.id}"] = books.units(row.id, {"unpaid"})
        if why := world.lines.unrest(row, world.now_ms(), all_paid=_is_paid_for(world, row)):
            waiting[f"line of round {row.id}: {why}"] = world.lines.lines[row.id].waiting
        if row.ends_ms <= world.now_ms():  # the gate forgets it when it is no longer needed
            if row.group is not None and any(r.group == row.group and _is_on(world, r) for r in books.rounds.values()):
                continue  # what was bought in one of them counts in the others
            kept = sum(ref in contents.rounds for ref in row.shares)
            # The gate knows nothing of forged orders, so it never agrees with the ledger.
            if (kept or row.retired_ms is None) and not world.checks.deceived:
                waiting[f"shares of round {row.id}"] = kept
        elif _is_on(world, row):  # one that is to come and was lost is rebuilt when its time is near
            left = world.checks.units_left(row)
            if left != row.total - books.units(row.id, FOLLOWS):
                waiting[f"available of round {row.id}"] = -1 if left is None else left
    return ", ".join(f"{name}: {count}" for name, count in waiting.items())


def unwind(world: World) -> None:
    """Ends what is left, so that nothing of it lives on beside the next run."""
    world.over = True
    loop = world.loop
    logging.disable()  # SQLAlchemy complains of connections that are cancelled while they are being closed
    loop.chance = None
    loop.set_exception_handler(lambda *_: None)
    for process in world.processes:
        loop.put_back(process.go_on())
    for _ in range(10):
        left = asyncio.all_tasks(loop)
        if not left:
            break
        for task in left:
            task.cancel()
        try:
            loop.run_until_complete(asyncio.wait(left, timeout=5.0))
        except Stuck:
            break
    loop.run_until_complete(loop.shutdown_asyncgens())
    logging.disable(logging.NOTSET)


@contextmanager
def listening(world: World, *, chatty: bool) -> Iterator[None]:
    """An error that the engine did not expect is one of ours, also where it goes on."""

    def hear(_: object, level: str, said: MutableMapping[str, Any]) -> Mapping[str, Any]:
        if said.get("exc_info"):
            world.break_(f"unexpected: {said['event']}: {traceback.format_exc()}")
        world.trace.append(f"{world.now_s():.6f} log {level} {dict(said)}")
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[hear],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if chatty else logging.ERROR),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
