"""What all strategies have in common. Each is a few readable lines in `strategies/`."""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import redis.asyncio

from seckill.lab.compare.database import ScratchDatabase
from seckill.lab.compare.moments import Moments

Role = Literal["shop", "consumer", "keeper"]

# The parts of the ladder.
Group = Literal["sync", "async", "give-back", "engine"]

# Presses in flight at a time, over all shops.
AT_ONCE = 64
CONNECTIONS_MAX = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareServers:
    """The addresses of the servers of this run, and their settings."""

    redis_url: str
    gate_url: str  # the engine's own part of the same server
    database_url: str
    ledger_url: str  # the engine's own tables on the same server
    broker_url: str = ""  # empty without RabbitMQ
    pause_ms: float


class Strategy(ABC):
    """One way of selling. Each of its processes has its own instance; they share nothing but the servers."""

    name: ClassVar[str]
    group: ClassVar[Group]
    summary: ClassVar[str]
    """What it does, in a few words."""
    roles: ClassVar[tuple[Role, ...]] = ("shop", "shop")
    """Its processes. Two shops, as behind any load balancer."""
    dies: ClassVar[Role | None] = "shop"
    """Whose process is killed in the middle of an order; None: this is not tried."""
    dies_at: ClassVar[int] = 3
    """The order that it holds then: not the first, so that others are written before."""
    returns: ClassVar[bool] = False
    """It is about units that come back: some orders fall through."""
    quiet_s: ClassVar[float] = 4.0
    """When nothing waits and nothing has been written for so long, nothing more will be."""

    def __init__(self, servers: CompareServers, moments: Moments) -> None:
        self.servers = servers
        self.moments = moments
        self.db = ScratchDatabase(servers.database_url)
        self.redis: Any = redis.asyncio.Redis.from_url(
            servers.redis_url, decode_responses=True, protocol=2, socket_timeout=30, max_connections=CONNECTIONS_MAX
        )

    @classmethod
    def missing(cls, servers: CompareServers) -> str | None:
        """Returns why the strategy cannot run with these servers, or None if it can."""
        return None

    async def prepare(self, stock: int) -> None:
        """Called before a run, in one process only: makes an empty shop with this many units."""
        await self.db.create(stock)
        await self.redis.flushdb()

    async def open(self, role: Role) -> None:  # noqa: B027 (many have nothing to do there)
        """Called at the start of each process."""

    async def warm_up(self) -> None:
        """Connects before the clock starts."""
        await asyncio.gather(*(self.redis.ping() for _ in range(AT_ONCE // 2)))
        if self.group == "sync":
            await self.db.warm_up()

    @abstractmethod
    async def buy(self, buyer: int) -> int | None:
        """Called when a buyer presses "buy". Returns the number of the accepted order, or None for a refusal."""

    async def consume(self) -> None:  # noqa: B027
        """The endless loop of the consumer's process."""

    async def keep(self) -> None:  # noqa: B027
        """The endless loop of the keeper's process."""

    async def fall_through(self, order: int, buyer: int) -> None:  # noqa: B027
        """Called when an order falls through after it was written: the buyer cancels it."""

    async def sells_again(self, units: int) -> bool:
        """Whether this many units are back, so that this process would sell them."""
        return True

    async def written(self) -> int:
        """Returns how many orders are written and stand. Called again and again while the crowd buys."""
        return int(await self.db.value("SELECT count(*) FROM orders"))

    async def waiting(self) -> int:
        """Returns how many orders wait in the queue, as far as that can be seen from outside."""
        return 0

    async def persisted(self) -> list[tuple[int, int]]:
        """Returns order and buyer of all orders that are written and stand."""
        return [(row.id, row.buyer) for row in await self.db.rows("SELECT id, buyer FROM orders")]

    async def fallen(self) -> set[int]:
        """Returns the orders that were accepted and then fell through for a reason of their own."""
        return set()

    async def close(self) -> None:
        await self.redis.aclose()
        await self.db.close()

    # The building blocks of the strategies.

    async def pause(self) -> None:
        """Stands for the network and the work of a real shop between reading and writing. On one machine that
        gap is a fraction of a millisecond, which hides what it does; it is there in every deployment."""
        await asyncio.sleep(self.servers.pause_ms / 1000)

    async def insert_order(self, transaction: Any, buyer: int, order: int | None = None) -> int:
        """Inside a transaction. Between this and the commit is where a process may be made to die."""
        if order is None:
            order = await transaction.value("INSERT INTO orders (buyer) VALUES (:buyer) RETURNING id", buyer=buyer)
        else:
            await transaction.change("INSERT INTO orders (id, buyer) VALUES (:id, :buyer)", id=order, buyer=buyer)
        await self.moments.reached()
        assert order is not None
        return order

    async def write_if_left(self, order: int, buyer: int) -> bool:
        """Writes one order in a transaction of its own, with the guard on the stock, as the tutorials' consumers do."""
        async with self.db.transaction() as transaction:
            if not await transaction.change("UPDATE sale SET stock = stock - 1 WHERE stock > 0"):
                return False
            await self.insert_order(transaction, buyer, order)
            return True
