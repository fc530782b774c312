import asyncio
import os
import secrets
import time
from contextlib import AsyncExitStack
from typing import ClassVar

from seckill.bootstrap.boundary_failpoints import NAMES
from seckill.bootstrap.engine import open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.admission import Claim
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import SaleDraft
from seckill.failpoints import arm
from seckill.lab.compare.database import ScratchDatabase
from seckill.lab.compare.moments import Moments
from seckill.lab.compare.strategy import CompareServers, Group, Role, Strategy
from seckill.loops import Stop
from seckill.roles.keeper import keep
from seckill.roles.worker import work
from seckill.settings import Secret, Settings
from seckill.web.app import Api

HOUR_MS = 3_600_000
LANE = 0
UNCLEAR = {Outcome.UNKNOWN, Outcome.NOT_READY, Outcome.OVERLOADED}
TRY_AGAIN_S = 0.05
TRIES_MAX = 200
# The orders of this run.
OURS = "sale_id = (SELECT max(id) FROM sales)"
STANDS = "state IN ('unpaid', 'paid')"


class EngineStrategy(Strategy):
    """This project: the parts that `seckill up` runs, with its default settings.

    Cures   stock, "bought already", number and queue entry are one script, for many presses at a time; the worker
            writes many orders in one transaction and takes over what a dead one held; a unit comes back by the number
            of its order, once, after SQL has decided it.
    Breaks  nothing of the above.

    Behind the same front door as the others: no HTTP and no tokens, which they do not have either.
    """

    name = "engine"
    group: ClassVar[Group] = "engine"
    summary = "one script, batches, take-over, release by number"
    roles: ClassVar[tuple[Role, ...]] = ("shop", "shop", "consumer", "keeper")
    dies: ClassVar[Role | None] = "consumer"
    quiet_s = 20.0  # a dead worker's entries are taken over after 5 s of silence

    def __init__(self, servers: CompareServers, moments: Moments) -> None:
        super().__init__(servers, moments)
        self._settings = Settings(
            redis_url=servers.gate_url,
            database_url=servers.ledger_url,
            jwt_secret=Secret("x" * 32),  # never used: in this run no buyer shows a token
            admin_key=Secret("y" * 32),
        )
        self._ledger = ScratchDatabase(servers.ledger_url)  # for looking at it from outside
        self._stack = AsyncExitStack()

    async def prepare(self, stock: int) -> None:
        """Makes a new sale for each run. It empties nothing, just as a gate in use is never emptied."""
        async with open_engine(self._settings) as engine:
            now_ms = int(time.time() * 1000)
            draft = SaleDraft(
                title="The ladder",
                units=stock,
                limit_per_buyer=1,
                price_cents=100,
                currency="CNY",
                begins_ms=now_ms - HOUR_MS,
                ends_ms=now_ms + HOUR_MS,
                pay_within_s=900,
            )
            await UseCases(engine, self._settings).operator_desk.announce(draft, LANE)

    async def open(self, role: Role) -> None:
        if role == "consumer" and self.moments.armed:
            # The same moment as for the other strategies: orders are taken from the stream, and nothing is written.
            arm("worker.transport.read.after=kill", NAMES)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # there the process would announce its death
        self._engine = await self._stack.enter_async_context(open_engine(self._settings, role="worker"))
        self._sale = max(await self._engine.ledger.sales(), key=lambda sale: sale.id)
        if role == "shop":
            self._api = Api(self._settings, self._engine)
            await self._stack.enter_async_context(self._api.running())

    async def buy(self, buyer: int) -> int | None:
        """Behaves like a good client: repeats the request with the same key after an unclear answer."""
        claim = Claim(f"{buyer}", 1, secrets.token_hex(8))
        for _ in range(TRIES_MAX):
            _, answer = await self._api.context.desk.claim(self._sale, claim)
            if answer.outcome in (Outcome.ADMITTED, Outcome.REPEATED):
                return int(answer.holdings[0].number)
            if answer.outcome not in UNCLEAR:
                return None
            await asyncio.sleep(TRY_AGAIN_S)
        raise TimeoutError("the engine gave no clear answer")

    async def consume(self) -> None:
        await work(self._engine, self._settings, Stop())

    async def keep(self) -> None:
        await keep(self._engine, self._settings, Stop())

    async def fall_through(self, order: int, buyer: int) -> None:
        changed = await self._engine.ledger.cancel(OrderNumber.from_int(order), f"{buyer}")
        assert changed is not None

    async def sells_again(self, units: int) -> bool:
        view = await self._engine.gate.inspect(self._sale.round.ref)
        flagged = self._api.context.desk.sold_out.is_raised(self._sale.round.id)
        return view is not None and view.available >= units and not flagged

    async def written(self) -> int:
        return int(await self._ledger.value(f"SELECT count(*) FROM orders WHERE {OURS} AND {STANDS}"))  # noqa: S608 (constants)

    async def persisted(self) -> list[tuple[int, int]]:
        return await self._orders(STANDS)

    async def fallen(self) -> set[int]:
        return {order for order, _ in await self._orders("state = 'cancelled'")}

    async def _orders(self, condition: str) -> list[tuple[int, int]]:
        found = await self._ledger.rows(f"SELECT id, user_id FROM orders WHERE {OURS} AND {condition}")  # noqa: S608
        return [(row.id, int(row.user_id)) for row in found]

    async def close(self) -> None:
        await self._stack.aclose()
        await self._ledger.close()
        await super().close()
