"""A process that stops in good order is not missed, and reports no more."""

import asyncio

from seckill.backends.memory.board import MemoryBoard
from seckill.backends.memory.store import MemoryStore
from seckill.errors import GateUnavailable
from seckill.operations.presence import present
from seckill.ports.board import NodeReport
from tests.patience import PATIENCE_S


class LossyBoard(MemoryBoard):
    """Its server does not answer, and a call that is cancelled at the instant at which it times out has timed out:
    the first cancellation is lost in it."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(lambda: 0))
        self.posts: asyncio.Queue[NodeReport] = asyncio.Queue()
        self.lost = False

    async def post(self, report: NodeReport) -> None:
        self.posts.put_nowait(report)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.lost:
                raise
            self.lost = True
            raise GateUnavailable("it did not answer in time") from None


async def test_a_process_that_stops_reports_no_more_though_a_cancellation_is_lost() -> None:
    board = LossyBoard()

    async def run() -> None:
        async with present(board, "worker"):
            await board.posts.get()

    running = asyncio.create_task(run())
    again = asyncio.create_task(board.posts.get())
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait([running, again], return_when=asyncio.FIRST_COMPLETED)
    assert board.lost, "this is about a cancellation that is lost"
    stopped = running.done()
    again.cancel()
    running.cancel()
    await asyncio.gather(running, again, return_exceptions=True)
    assert stopped, "it goes on reporting, for ever"
