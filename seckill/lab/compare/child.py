"""A process of a strategy: a shop that answers presses on a unix socket, or a consumer, or a keeper.

The front door of a shop is the same for every strategy: a line comes in, a line goes out. It has no HTTP and no tokens,
because the comparison is about what lies behind it.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from seckill import logs
from seckill.lab.compare.ladder import LADDER
from seckill.lab.compare.moments import Moments
from seckill.lab.compare.strategy import CompareServers, Role, Strategy

READY = "ready"
STANDING = "standing"
GO_ON = "go on"
AT_EASE = "at ease"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOrders:
    """The instructions of a process at its start."""

    strategy: str
    role: Role
    servers: CompareServers
    socket: str
    stand_at: tuple[int, ...] = ()


def main(orders: ChildOrders, control: Connection) -> None:
    """Ends only by being killed, or with the process at the other end of `control`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who then stops us
    logs.setup("json", "error")
    asyncio.run(_main(orders, control))


async def _main(orders: ChildOrders, control: Connection) -> None:
    moments = Moments(orders.stand_at, lambda: control.send(STANDING))

    def told() -> None:
        try:
            message = control.recv()
        except EOFError:  # the parent has gone
            os._exit(0)
        (moments.go_on if message == GO_ON else moments.at_ease)()

    asyncio.get_running_loop().add_reader(control.fileno(), told)
    strategy = LADDER[orders.strategy](orders.servers, moments)
    await strategy.open(orders.role)
    if orders.role == "shop":
        await strategy.warm_up()
        server = await asyncio.start_unix_server(_front_door(strategy), orders.socket)
        control.send(READY)
        await server.serve_forever()
    control.send(READY)
    await (strategy.consume() if orders.role == "consumer" else strategy.keep())


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def _front_door(strategy: Strategy) -> Handler:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(f"{await _answer(strategy, line.decode().split())}\n".encode())
                await writer.drain()
        writer.close()

    return serve


async def _answer(strategy: Strategy, words: list[str]) -> str:
    match words:
        case ["buy", buyer]:
            try:
                order = await strategy.buy(int(buyer))
            except Exception as error:  # a shop reports a failure and goes on
                return f"failed {type(error).__name__}: {error}".splitlines()[0]
            return "refused" if order is None else f"accepted {order}"
        case ["fall", order, buyer]:
            await strategy.fall_through(int(order), int(buyer))
            return "done"
        case ["sells?", units]:
            return "yes" if await strategy.sells_again(int(units)) else "no"
    raise ValueError(f"not a request: {words}")
