"""The processes of a run: the engine's own use cases, each with objects of its own, on the shared stores."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from seckill.admission import AdmissionDesk
from seckill.afterlife import Afterlife
from seckill.alarms import Alarm
from seckill.buyer_orders import BuyerOrders, OrderView
from seckill.catalogue import Catalogue
from seckill.domain import Answer, Claim, RoundRef, Sale, SaleChange
from seckill.errors import ProviderUnavailable
from seckill.failures import Failures
from seckill.fulfilment import Worker, run_worker
from seckill.gates.memory import MemoryGate
from seckill.keeper import Keeper, run_keeper
from seckill.ledgers.sql import SqlLedger
from seckill.loops import Stop, repeat
from seckill.memory_store import MemoryStore, Way
from seckill.numbers import OrderNumber
from seckill.operator_desk import OperatorDesk
from seckill.outcomes import Outcome
from seckill.payment_ports import Capture, Captured, Notice, Refund
from seckill.payments import Payments
from seckill.ports import Changed
from seckill.public_ids import PublicIds
from seckill.transports.memory import MemoryTransport
from tests.simulation.processes import Process

BACKLOG_MAX = 8
CLAIM_IDLE_S = 0.6
RETRY_DELAYS_S = (0.3, 0.5)
LANES = 2
KEY = bytes(32)
PROVIDER = "simulated"
SALES_EVERY_S = 1.5
PULSES_EVERY_S = 0.4
LOOK_UP_EVERY_S = 1.0


class Around(Protocol):
    """What a process finds in the world."""

    store: MemoryStore
    # One object for all: it keeps nothing but its statements, and to make those takes longer than most of them run.
    ledger: SqlLedger
    refunded: dict[int, int]  # what the provider has given back, by the id of the refund

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
            self._around.refunded[refund.id] = refund.capture.amount_cents
            await self._around.to_store(self._process, "provider", Way.BACK)
        except ConnectionError as error:
            raise ProviderUnavailable(str(error)) from error
        return True


class Engine(ABC):
    """What every role has."""

    def __init__(self, around: Around, process: Process) -> None:
        travel = partial(around.to_store, process)
        self.process = process
        self.around = around
        self.gate = MemoryGate(around.store, backlog_max=BACKLOG_MAX, travel=partial(travel, "gate"))
        self.transport = MemoryTransport(around.store, travel=partial(travel, "stream"))
        self.ledger = around.ledger
        self.catalogue = Catalogue(self.ledger, self.gate, PublicIds(KEY, "sale"), around.now_s)
        provider = Provider(around, process)
        self.payments = Payments(self.ledger.payments, self.gate, provider, PublicIds(KEY, "order"))

    @abstractmethod
    async def run(self) -> None: ...


class ApiNode(Engine):
    def __init__(self, around: Around, process: Process) -> None:
        super().__init__(around, process)
        self.desk = AdmissionDesk(self.gate, self.catalogue)
        self.orders = BuyerOrders(self.ledger, self.gate, self.catalogue)
        self.operator_desk = OperatorDesk(self.ledger, self.gate)

    async def run(self) -> None:
        stop = Stop()

        async def pulses() -> None:
            self.desk.forget(await self.catalogue.refresh_pulses())

        async with asyncio.TaskGroup() as loops:
            loops.create_task(repeat("sales", self.catalogue.refresh_sales, stop, SALES_EVERY_S))
            loops.create_task(repeat("pulses", pulses, stop, PULSES_EVERY_S))
            loops.create_task(repeat("states", partial(self.orders.listen, self.transport), stop))
            loops.create_task(repeat("versions", partial(self.desk.listen, self.transport), stop))
            loops.create_task(repeat("waiting", self.orders.look_up_waiting, stop, LOOK_UP_EVERY_S))

    async def claim(self, public_id: str, claim: Claim, *, short_way: bool) -> tuple[RoundRef, Answer] | None:
        """As the claim route does. None: no such sale."""
        sale = await self.catalogue.find(public_id)
        if sale is None:
            return None
        if short_way and self.desk.one_round_decides(sale):
            answer = self.desk.refuse_here(sale, claim) or await self._submit(sale, claim)
            if answer.outcome is Outcome.REPEATED or self.desk.is_final(sale, answer):
                return sale.round.ref, answer
        sale, answer = await self.desk.claim(sale, claim)
        return sale.round.ref, answer

    async def _submit(self, sale: Sale, claim: Claim) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.desk.submit_for(answer, sale, claim)
        return await answer

    async def look(self, user: str, number: OrderNumber, seen: str, wait_s: float) -> OrderView | None:
        return await self.orders.wait_for_change(user, number, seen, wait_s)

    async def pay(self, user: str, number: OrderNumber, capture: Capture) -> Changed | None:
        return await self.ledger.pay(number, user, capture)

    async def capture(self, number: OrderNumber, capture: Capture) -> Captured:
        return await self.payments.capture(number, capture)

    async def cancel(self, user: str, number: OrderNumber) -> Changed | None:
        return await self.ledger.cancel(number, user)

    async def change(self, sale: Sale, change: SaleChange) -> Sale | None:
        return await self.operator_desk.change(sale, change)


class WorkerRole(Engine):
    async def run(self) -> None:
        stop = Stop()
        worker = Worker(
            self.transport,
            self.ledger,
            stop,
            lanes=range(LANES),
            claim_idle_s=CLAIM_IDLE_S,
            retry_delay_s=RETRY_DELAYS_S[0],
        )
        await run_worker(worker, stop)


class KeeperRole(Engine):
    async def run(self) -> None:
        keeper = Keeper(self.gate, self.transport, self.ledger, self.catalogue, LANES, self.around.now_s)
        afterlife = Afterlife(self.gate, self.transport, self.ledger)
        failures = Failures(self.ledger, Alarm(""), RETRY_DELAYS_S)
        await run_keeper(keeper, afterlife, failures, self.payments, Stop())
