"""`simulate(seed)`: one run from its seed to its verdict. The same seed gives the same run, step by step."""

import asyncio
import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import structlog

from seckill.domain import RoundRef, SaleDraft
from seckill.outcomes import Outcome
from tests.simulation.buyers import RESUME, Offer, Person, operate, order_about, shop
from tests.simulation.checks import LIVE, Broken
from tests.simulation.database import prepare
from tests.simulation.hurry import hurried
from tests.simulation.loop import Stuck, VirtualLoop
from tests.simulation.weather import STORM_S, Weather, draw
from tests.simulation.world import BEGIN_MS, World

# When the storm is over, everything has to be at rest within this.
REST_WITHIN_S = 40.0
LOOK_EVERY_S = 0.25
OPEN_FOR_S = 3600.0
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
    offers = [Offer(*made) for made in await world.announce(_drafts(chance))]
    world.storm = True
    for name in ("a1", "a2", "w1", "w2", "k1", "k2"):
        world.start(name)
    world.arrange()
    people = [
        asyncio.ensure_future(shop(Person(world, f"u{n}", Random(f"{seed} u{n}")), offers))
        for n in range(chance.randint(3, 9))
    ]
    people.append(asyncio.ensure_future(operate(Person(world, "operator", Random(f"{seed} operator")), offers)))
    await asyncio.sleep(STORM_S)
    world.storm = False
    world.note("calm")
    for process in world.processes:
        world.go_on(process)
    await _rest(world, offers, people, seed)


def _drafts(chance: Random) -> list[SaleDraft]:
    drafts = []
    for n in range(chance.choice((1, 1, 2))):
        begins_ms = BEGIN_MS + chance.randint(0, 700)
        lasts_s = OPEN_FOR_S if n == 0 or chance.random() < 0.5 else chance.uniform(1.0, STORM_S)
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
            )
        )
    return drafts


async def _rest(world: World, offers: list[Offer], people: Sequence[asyncio.Future[None]], seed: int) -> None:
    """Everything is sold to those who still come, and everything that was begun is finished."""
    await asyncio.gather(*people)
    deadline_s = world.now_s() + REST_WITHIN_S
    last = [
        asyncio.ensure_future(_buy_the_rest(world, offer, f"{seed} last {offer.sale.id}"))
        for offer in offers
        if offer.sale.round.ends_ms > BEGIN_MS + 1000 * OPEN_FOR_S / 2
    ]
    while (why := _unrest(world, offers)) or not all(each.done() for each in last):
        if world.now_s() > deadline_s:
            raise Broken(f"I22: not at rest: {why or 'buyers still try'}")
        await asyncio.sleep(LOOK_EVERY_S)
    await asyncio.gather(*last)


async def _buy_the_rest(world: World, offer: Offer, seed: str) -> None:
    """One after the other, until every unit is paid for."""
    customer = 0
    books = world.checks.books
    while (books := world.checks.books).units(offer.sale.round.id, {"paid"}) < books.rounds[offer.sale.round.id].total:
        customer += 1
        person = Person(world, f"last{offer.sale.id}-{customer}", Random(f"{seed} {customer}"))
        if books.rounds[offer.sale.round.id].status == "paused":
            await order_about(person, offer, RESUME)
        outcome, number = await person.press(offer, 1, "1", 20)
        if number is None:
            await asyncio.sleep(LOOK_EVERY_S if outcome is Outcome.SOLD_OUT else 0.1)
        elif offer.sale.price_cents:
            await person.pay(number, offer, 1, 20)
        else:
            await person.look(number, 1.0)


def _unrest(world: World, offers: list[Offer]) -> str:
    """What is not finished yet."""
    books, contents = world.checks.books, world.store.contents
    waiting = {name: count for name, count in books.unsettled.items() if count}
    waiting |= {f"lane {number}": len(lane.entries) for number, lane in contents.lanes.items() if lane.entries}
    for offer in offers:
        round_id = offer.sale.round.id
        row = books.rounds[round_id]
        if books.units(round_id, {"unpaid"}):
            waiting[f"unpaid of round {round_id}"] = books.units(round_id, {"unpaid"})
        held = contents.rounds.get(RoundRef(id=round_id, lane=row.lane))
        over = offer.sale.round.ends_ms < BEGIN_MS + 1000 * OPEN_FOR_S / 2
        if held is None and over:
            continue  # nobody needs it any more
        there = -1 if held is None or held.status == "preparing" else held.available
        if there != row.total - books.units(round_id, LIVE) and not over:
            waiting[f"available of round {round_id}"] = there
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
