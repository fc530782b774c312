"""The processes of a run: the engine's own use cases, each with objects of its own, on the shared stores."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from seckill.backends.memory.board import MemoryBoard
from seckill.backends.memory.gate import MemoryGate
from seckill.backends.memory.store import MemoryStore, Travel, Way
from seckill.backends.memory.transport import MemoryTransport
from seckill.backends.pictures.pillow import make_picture
from seckill.backends.sql.history import SqlHistory
from seckill.backends.sql.ledger import SqlLedger
from seckill.backends.webhook.sender import HttpSender
from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.admission import Answer, Claim
from seckill.domain.line import RoundLine
from seckill.domain.order_number import OrderNumber
from seckill.domain.public_id import PublicIds
from seckill.domain.sale import RoundRef, Sale, SaleChange
from seckill.engine.keeper import run_schedule
from seckill.engine.line.joining import NotSoldOut
from seckill.engine.orders.buyer_orders import OrderView
from seckill.engine.orders.worker import run_worker
from seckill.engine.rounds.shared_gate import SharedGate
from seckill.errors import ProviderUnavailable
from seckill.loops import Stop, repeat
from seckill.ports.ledger import Changed
from seckill.ports.line import Joining, NoEntry, Standing
from seckill.ports.order_action import Acted
from seckill.ports.payment import Capture, Captured, Notice, Refund
from seckill.settings import Settings
from tests.simulation.processes import Process
from tests.simulation.replicas import Replicated, ReplicatedGate, ReplicatedTransport

BACKLOG_MAX = 8
CLAIM_IDLE_S = 0.6
RETRY_DELAYS_S = (0.3, 0.5)
LANES = 3
KEY = bytes(32)
PROVIDER = "simulated"
SALES_EVERY_S = 1.5
PULSES_EVERY_S = 0.4
LOOK_UP_EVERY_S = 1.0


class Around(Protocol):
    """The world as a process finds it."""

    store: MemoryStore
    # One object for all: they keep nothing but their statements, and to make those takes longer than most of them run.
    ledger: SqlLedger
    history: SqlHistory
    refunded: dict[int, int]  # what the provider has given back, by the id of the refund
    server: Replicated | None  # None for a server without a replica
    strict: bool

    async def to_store(self, process: Process, what: str, way: Way) -> None: ...

    def now_s(self) -> float: ...


class Provider:
    """Gives money back once for each id, and is sometimes away."""

    name = PROVIDER
    sandbox = False

    def __init__(self, around: Around, process: Process) -> None:
        self._around = around
        self._process = process

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice:
        raise AssertionError("buyers of a simulation bring notices, not callbacks")

    async def refund(self, refund: Refund, order_id: str) -> bool:
        try:
            await self._around.to_store(self._process, "provider", Way.THERE)
            self._around.refunded[refund.id] = refund.amount_cents
            await self._around.to_store(self._process, "provider", Way.BACK)
        except ConnectionError as error:
            raise ProviderUnavailable(str(error)) from error
        return True


SETTINGS = Settings(lanes=LANES, claim_idle_s=CLAIM_IDLE_S, retry_delays_s=RETRY_DELAYS_S)


class Role(ABC):
    """The parts that every role has."""

    def __init__(self, around: Around, process: Process) -> None:
        self.process = process
        self.use = UseCases(_engine(around, process), SETTINGS, monotonic=around.now_s)
        self.sale_cache = self.use.sale_cache
        self.transport = self.use.engine.transport
        self.ledger = around.ledger

    @abstractmethod
    async def run(self) -> None: ...


def _engine(around: Around, process: Process) -> Engine:
    travel = partial(around.to_store, process)
    return Engine(
        gate=SharedGate(_gate(around, partial(travel, "gate"))),
        transport=_transport(around, partial(travel, "stream")),
        ledger=around.ledger,
        provider=Provider(around, process),
        broker=None,
        auditor=None,
        sale_ids=PublicIds(KEY, "sale"),
        item_ids=PublicIds(KEY, "item"),
        order_ids=PublicIds(KEY, "order"),
        entry_ids=PublicIds(KEY, "entry"),
        door_key=KEY,
        board=MemoryBoard(around.store),
        history=around.history,
        webhook_sender=HttpSender(private=False),
        make_picture=make_picture,
    )


def _gate(around: Around, travel: Travel) -> MemoryGate:
    if around.server is None:
        return MemoryGate(around.store, backlog_max=BACKLOG_MAX, travel=travel)
    return ReplicatedGate(around.store, around.server, backlog_max=BACKLOG_MAX, strict=around.strict, travel=travel)


def _transport(around: Around, travel: Travel) -> MemoryTransport:
    if around.server is None:
        return MemoryTransport(around.store, travel=travel)
    return ReplicatedTransport(around.store, around.server, strict=around.strict, travel=travel)


class ApiNode(Role):
    def __init__(self, around: Around, process: Process) -> None:
        super().__init__(around, process)
        self.desk = self.use.admission
        self.orders = self.use.orders

    async def run(self) -> None:
        stop = Stop()

        async def pulses() -> None:
            self.desk.forget(await self.sale_cache.refresh_pulses())

        async with asyncio.TaskGroup() as loops:
            loops.create_task(repeat("sales", self.sale_cache.refresh_sales, stop, SALES_EVERY_S))
            loops.create_task(repeat("pulses", pulses, stop, PULSES_EVERY_S))
            loops.create_task(repeat("states", partial(self.orders.listen, self.transport), stop))
            loops.create_task(repeat("versions", partial(self.desk.sold_out.listen, self.transport), stop))
            loops.create_task(repeat("waiting", self.orders.look_up_waiting, stop, LOOK_UP_EVERY_S))

    async def claim(self, public_id: str, claim: Claim) -> tuple[RoundRef, Answer] | None:
        """Does what the claim route does. Returns None if there is no such sale."""
        sale = await self.sale_cache.find(public_id)
        if sale is None:
            return None
        sale, answer = await self.desk.claim(sale, claim)
        return sale.round.ref, answer

    async def join(self, public_id: str, joining: Joining) -> Standing | NoEntry | None:
        """Returns None if there are units left, or no such sale."""
        sale = await self.sale_cache.find(public_id)
        try:
            return None if sale is None else await self.use.line_desk.join(sale, joining)
        except NotSoldOut:
            return None

    async def leave(self, user: str, entry_id: int) -> Standing | NoEntry:
        return await self.use.line_desk.leave(entry_id, user)

    async def remove(self, entry_id: int) -> Standing | NoEntry:
        """An operator does."""
        return await self.use.line_desk.remove(entry_id, "r")

    async def change_line(self, round_id: int, paused: bool | None, pace: int | None) -> RoundLine | None:
        return await self.ledger.lines.change_line(round_id, paused=paused, pace=pace, beacon=None)

    async def entry(self, user: str, entry_id: int) -> Standing | None:
        return await self.use.line_desk.find(entry_id, user)

    async def look(self, user: str, number: OrderNumber, seen: str, wait_s: float) -> OrderView | None:
        return await self.orders.wait_for_change(user, number, seen, wait_s)

    async def pay(self, user: str, number: OrderNumber, capture: Capture) -> Changed | None:
        return await self.ledger.pay(number, user, capture)

    async def capture(self, number: OrderNumber, capture: Capture) -> Captured:
        return await self.use.payments.capture(number, capture)

    async def cancel(self, user: str, number: OrderNumber) -> Changed | None:
        return await self.ledger.cancel(number, user)

    async def act(self, number: OrderNumber, cents: int | None, *, back: bool, key: str) -> Acted | None:
        """An operator cancels, or refunds if money is named."""
        actions = self.use.operator_actions
        if cents is None:
            return await actions.cancel(number, reason="r", key=key)
        amount = cents or None  # 0: all that is left
        return await actions.refund(number, reason="r", return_unit=back, amount_cents=amount, key=key)

    async def change(self, sale: Sale, change: SaleChange) -> Sale | None:
        return await self.use.operator_desk.change(sale, change)


class WorkerRole(Role):
    async def run(self) -> None:
        stop = Stop()
        await run_worker(self.use.worker(stop), stop)


class KeeperRole(Role):
    async def run(self) -> None:
        stop = Stop()
        await run_schedule(self.use.keeper.schedule(stop), stop)
