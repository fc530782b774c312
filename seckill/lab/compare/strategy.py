"""What all strategies have in common. Each is a few lines in `strategies/`, to be read there."""

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
    """Where the servers of this run are, and what they need to be told."""

    redis_url: str
    gate_url: str  # the engine's own part of the same server
    database_url: str
    ledger_url: str  # the engine's own tables on the same server
    broker_url: str = ""  # empty: there is no RabbitMQ
    pause_ms: float


class Strategy(ABC):
    """One way of selling. Lives in each of its processes; they share nothing but the servers."""

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
        """Why it cannot be run with these servers; None when it can."""
        return None

    async def prepare(self, stock: int) -> None:
        """Before a run, in one process only: an empty shop with this many units."""
        await self.db.create(stock)
        await self.redis.flushdb()

    async def open(self, role: Role) -> None:  # noqa: B027 (many have nothing to do there)
        """At the start of each process."""

    async def warm_up(self) -> None:
        """Connects before the clock starts."""
        await asyncio.gather(*(self.redis.ping() for _ in range(AT_ONCE // 2)))
        if self.group == "sync":
            await self.db.warm_up()

    @abstractmethod
    async def buy(self, buyer: int) -> int | None:
        """A buyer presses "buy". The number of the accepted order, or None for a refusal."""

    async def consume(self) -> None:  # noqa: B027
        """What the consumer's process does, for ever."""

    async def keep(self) -> None:  # noqa: B027
        """What the keeper's process does, for ever."""

    async def fall_through(self, order: int, buyer: int) -> None:  # noqa: B027
        """The order falls through after it was written: the buyer takes it back."""

    async def sells_again(self, units: int) -> bool:
        """This many units are back, and this process would sell them."""
        return True

    async def written(self) -> int:
        """How many orders are written and stand; asked again and again while the crowd buys."""
        return int(await self.db.value("SELECT count(*) FROM orders"))

    async def waiting(self) -> int:
        """Orders that wait in the queue, as far as it can be asked from outside."""
        return 0

    async def persisted(self) -> list[tuple[int, int]]:
        """Order and buyer of all that is written and stands."""
        return [(row.id, row.buyer) for row in await self.db.rows("SELECT id, buyer FROM orders")]

    async def fallen(self) -> set[int]:
        """Orders that were accepted and then fell through for a reason of their own."""
        return set()

    async def close(self) -> None:
        await self.redis.aclose()
        await self.db.close()

    # What the strategies are made of.

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
        """One order in a transaction of its own, with the guard on the stock: what the tutorials' consumers do."""
        async with self.db.transaction() as transaction:
            if not await transaction.change("UPDATE sale SET stock = stock - 1 WHERE stock > 0"):
                return False
            await self.insert_order(transaction, buyer, order)
            return True
