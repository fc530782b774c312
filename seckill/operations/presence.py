"""Every process publishes a report about itself each second, so that operators can see all processes from any one."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable

import msgspec

from seckill import __version__
from seckill.errors import SeckillError
from seckill.loops import Stop, repeat
from seckill.operations.role_health import resident_bytes
from seckill.ports.board import Board, NodeReport, own_name
from seckill.ports.queue_entry import TOGETHER

EVERY_S = 1.0


def identify(role: str) -> NodeReport:
    return NodeReport(
        node=own_name(),
        role=role,
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        started_ms=int(time.time() * 1000),
        reads=TOGETHER,
    )


@contextlib.asynccontextmanager
async def present(board: Board, role: str, figures: Callable[[], dict[str, object]] = dict) -> AsyncIterator[None]:
    """Reports until the block is left, then removes the report: a process that stops properly does not count as
    missing."""
    me = identify(role)

    async def post() -> None:
        used = {"cpu_s": round(time.process_time(), 3), "memory_bytes": resident_bytes()}
        await board.post(msgspec.structs.replace(me, **used, **figures()))

    stop = Stop()
    posting = asyncio.create_task(repeat("presence", post, stop, EVERY_S))
    try:
        yield
    finally:
        stop.set()  # a cancellation alone may be lost if a call to the server times out at the same instant
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)
        with contextlib.suppress(SeckillError):
            await board.remove(me.node)
