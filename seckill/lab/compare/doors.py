"""Sends the same crowd with a bot in it to four doors of the engine: first come first served, the same with passes, a
line, and a draw.

All of it is the engine that `seckill up` runs, in this process, on real servers: the API's own door, claims, joins and
passes, a worker and a keeper. HTTP is left out, and with it the limits for each address, so that one defence is
measured at a time.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.admission import Claim
from seckill.domain.door import Door, PassKind
from seckill.domain.line import LineOrder, LineRules
from seckill.domain.outcome import Outcome
from seckill.domain.proof_of_work import WorkChallenge, WorkSolution, solve
from seckill.domain.sale import Sale, SaleChange, SaleDraft
from seckill.engine.door.pass_desk import Issued
from seckill.errors import StartError
from seckill.lab.compare.bot_crowd import BotCrowd, Guest, bot_crowd
from seckill.lab.compare.database import ScratchDatabase
from seckill.lab.compare.fairness import Fairness, fairness
from seckill.lab.compare.strategy import AT_ONCE, CompareServers
from seckill.lab.compare.workload import Workload
from seckill.loops import Stop
from seckill.ports.door import Applicant
from seckill.ports.line import Joining, Standing
from seckill.roles.keeper import keep
from seckill.roles.worker import work
from seckill.settings import Secret, Settings
from seckill.web.app import Api
from seckill.web.buyers.buyer_tokens import Buyer
from seckill.web.problems import HttpProblem

HOUR_MS = 3_600_000
LANE = 0
# A hundredth of the work of a real sale, for people and bot alike, so that a run takes seconds.
WORK_SCALE = 100
WORK = 400_000 // WORK_SCALE
# The CPU time that the bot has before the start: a minute of a core for 2,000 units, scaled to the stock.
BOT_CORE_S_PER_UNIT = 60 / 2_000
BOT_ADDRESS = "203.0.113.9"
SETTLED_WITHIN_S = 120.0
LOOK_EVERY_S = 0.05
ROUNDS_OF_UNCLEAR_MAX = 200
UNCLEAR = {Outcome.UNKNOWN, Outcome.NOT_READY, Outcome.OVERLOADED}
BATCH = 400

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DoorKind:
    summary: str
    door: Door


DOORS: Mapping[str, DoorKind] = {
    "bots-press": DoorKind("whoever presses first", Door()),
    "bots-pass": DoorKind("whoever presses first, with a pass for work", Door(pass_kind=PassKind.WORK, work=WORK)),
    "bots-arrival": DoorKind(
        "a line: shuffled at the start, then as they come", Door(line=LineRules(order=LineOrder.ARRIVAL))
    ),
    "bots-draw": DoorKind("a draw that is open for long before", Door(line=LineRules(order=LineOrder.DRAW))),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorOutcome:
    door: str
    summary: str
    stock: int
    bot_passes: int | None  # None: this door needs no passes
    bot_core_s: float | None  # scaled up to the work of a real sale
    fairness: Fairness

    def document(self) -> dict[str, Any]:
        return asdict(self)


class DoorRunner:
    def __init__(self, servers: CompareServers, workload: Workload, say: Say) -> None:
        self._workload = workload
        self._say = say
        self._ledger_url = servers.ledger_url
        self._settings = Settings(
            redis_url=servers.gate_url,
            database_url=servers.ledger_url,
            jwt_secret=Secret("x" * 32),  # never used: in this run no buyer shows a token
            admin_key=Secret("y" * 32),
        )

    async def run(self, name: str) -> DoorOutcome:
        kind, stock = DOORS[name], self._workload.stock
        draws = kind.door.line.draws
        in_time = kind.door.line.order is LineOrder.DRAW
        crowd = bot_crowd(stock=stock, people=self._workload.buyers, seed=self._workload.seed, comes_in_time=in_time)
        async with self._opened(kind, begun=not draws) as hall:
            passes = None
            if kind.door.pass_kind is PassKind.WORK:
                self._say("everybody works for a pass")
                passes = await hall.get_passes(crowd, BOT_CORE_S_PER_UNIT * stock / WORK_SCALE)
            self._say("the rush")
            if draws:
                await hall.line_up(crowd)
            else:
                await hall.press(crowd)
            self._say("orders are written")
            got = await self._settled(hall.sale, stock)
        return DoorOutcome(
            door=name,
            summary=kind.summary,
            stock=stock,
            bot_passes=passes,
            bot_core_s=None if passes is None else round(hall.bot_core_s * WORK_SCALE, 1),
            fairness=fairness(crowd, got),
        )

    @asynccontextmanager
    async def _opened(self, kind: DoorKind, *, begun: bool) -> AsyncIterator["Hall"]:
        async with open_engine(self._settings, role="worker") as engine:
            use = UseCases(engine, self._settings)
            now_ms = int(time.time() * 1000)
            begins_ms = now_ms + (-HOUR_MS if begun else HOUR_MS)
            draft = SaleDraft(
                title="The door",
                units=self._workload.stock,
                limit_per_buyer=1,
                price_cents=100,
                currency="CNY",
                begins_ms=begins_ms,
                ends_ms=begins_ms + 3 * HOUR_MS,
                pay_within_s=900,
                door=kind.door,
            )
            await use.operator_desk.announce(draft, LANE)
            sale = max(await engine.ledger.sales(), key=lambda each: each.id)
            stop = Stop()
            api = Api(self._settings, engine)
            async with api.running(), asyncio.TaskGroup() as roles:
                roles.create_task(work(engine, self._settings, stop))
                roles.create_task(keep(engine, self._settings, stop))
                try:
                    yield Hall(api, engine, use, sale)
                finally:
                    stop.set()

    async def _settled(self, sale: Sale, stock: int) -> list[str]:
        """Returns the buyers with an order, once all units are sold."""
        database = ScratchDatabase(self._ledger_url)
        give_up_at_s = time.monotonic() + SETTLED_WITHIN_S
        try:
            while time.monotonic() < give_up_at_s:
                rows = await database.rows(f"SELECT user_id FROM orders WHERE sale_id = {sale.id:d}")  # noqa: S608 (a number)
                if len(rows) >= stock:
                    return [row.user_id for row in rows]
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            await database.close()
        raise StartError("The units of a door were not sold in time: see the log.")


class Hall:
    """One sale and the crowd at its door."""

    def __init__(self, api: Api, engine: Engine, use: UseCases, sale: Sale) -> None:
        self.sale = sale
        self.bot_core_s = 0.0
        self._context = api.context
        self._engine = engine
        self._use = use
        self._passes: dict[str, bytes] = {}

    async def get_passes(self, crowd: BotCrowd, bot_core_s: float) -> int:
        """People do the work on their own phones, each for one pass. The bot works for one name after the other, on one
        core, until its time is over. Returns how many passes the bot has."""
        for guest in crowd.people:
            await self._get_pass(guest, address=guest.name)
        found = 0
        for guest in crowd.bot:
            if self.bot_core_s >= bot_core_s:
                break
            self.bot_core_s += await self._get_pass(guest, address=BOT_ADDRESS)
            found += 1
        return found

    async def _get_pass(self, guest: Guest, address: str) -> float:
        """Returns the CPU time of the work, in seconds of a core."""
        desk, round_id = self._context.passes, str(self.sale.round.id)
        applicant = Applicant(buyer=guest.name, sale_id=str(self.sale.id), round=round_id, address=address, agent="")
        posed = await desk.ask(self.sale, 0, applicant, address, None)
        assert isinstance(posed, WorkChallenge)
        before_s = time.process_time()
        number = solve(posed.challenge, posed.salt, posed.maxnumber)
        took_s = time.process_time() - before_s
        assert number is not None
        solution = WorkSolution(challenge=posed.challenge, salt=posed.salt, signature=posed.signature, number=number)
        given = await desk.ask(self.sale, 0, applicant, address, solution)
        assert isinstance(given, Issued)
        self._passes[guest.name] = given.text.encode()
        return took_s

    async def press(self, crowd: BotCrowd) -> None:
        """Sends the presses in their order, with as many in flight as in the other steps of the ladder."""
        await self._one_after_the_other(sorted(crowd.all, key=lambda guest: guest.presses_s), self._press, AT_ONCE)

    async def _press(self, guest: Guest) -> None:
        if not self._may(self._context.door.pass_through, guest):
            return
        claim = Claim(guest.name, 1, secrets.token_hex(8))
        for _ in range(ROUNDS_OF_UNCLEAR_MAX):
            _, answer = await self._context.desk.claim(self.sale, claim)
            if answer.outcome not in UNCLEAR:
                return
            await asyncio.sleep(LOOK_EVERY_S)
        raise TimeoutError("the engine gave no clear answer")

    async def line_up(self, crowd: BotCrowd) -> None:
        """Guests who come before the start join before it. Then the sale begins, and the others join behind them as
        they come."""
        guests = sorted(crowd.all, key=lambda guest: guest.comes_s)
        await self._one_after_the_other([guest for guest in guests if guest.comes_s < 0], self._join, BATCH)
        changed = await self._use.operator_desk.change(self.sale, SaleChange(begins_ms=int(time.time() * 1000)))
        assert changed is not None
        self.sale = replace(self.sale, round=changed.round)
        await self._one_after_the_other([guest for guest in guests if guest.comes_s >= 0], self._join, BATCH)

    async def _join(self, guest: Guest) -> None:
        if not self._may(self._context.door.may_join, guest):
            return
        joining = Joining(user=guest.name, quantity=1)
        joined = await self._context.line.desk.join(self.sale, joining)
        assert isinstance(joined, Standing), joined

    def _may(self, door: Callable[[Sale, Buyer, bytes | None], int], guest: Guest) -> bool:
        try:
            door(self.sale, Buyer(guest.name, time.time() + 3_600), self._passes.get(guest.name))
        except HttpProblem as problem:
            if problem.code != Outcome.PASS_REQUIRED:
                raise
            return False
        return True

    async def _one_after_the_other(self, guests: Sequence[Guest], act: Callable[[Guest], Any], at_once: int) -> None:
        """Keeps the order of the guests, except among those whose requests are under way at the same time."""
        for begin in range(0, len(guests), at_once):
            await asyncio.gather(*(act(guest) for guest in guests[begin : begin + at_once]))
