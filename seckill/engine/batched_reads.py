"""Answers many callers who each ask for something different of the same kind. All who come while one query is under way
share the next one, instead of making a query each. No caller gets an answer from before their question."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import structlog

from seckill.engine.batches import Batches, Waiter
from seckill.errors import LedgerError, LedgerUnavailable

log = structlog.get_logger()

# How many keys go into one query. Callers behind it wait as long as it takes.
BATCH_MAX = 500
# More waiting than this means seconds of delay; it is kinder to refuse at once.
WAITING_MAX = 20_000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BatchedReads(Batches[K, V | LedgerError | None], Generic[K, V]):
    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> None:
        """`read` returns those of the keys that exist."""
        super().__init__(batch_max=BATCH_MAX, waiting_max=WAITING_MAX)
        self._read = read

    async def of(self, key: K) -> V | None:
        """Returns None if there is no such key. Raises LedgerError."""
        waiting: asyncio.Future[V | LedgerError | None] = asyncio.get_running_loop().create_future()
        self.submit(key, waiting)
        found = await waiting
        if isinstance(found, LedgerError):
            raise found
        return found

    def _too_many(self) -> LedgerError:
        return LedgerUnavailable("Too many people are looking at once, try again.")

    def _not_asked(self) -> LedgerError:
        return LedgerUnavailable("The ledger was not asked, try again.")

    async def _serve(self, batch: list[tuple[K, Waiter[V | LedgerError | None]]]) -> None:
        found: Mapping[K, V] = {}
        error: LedgerError | None = None
        try:
            found = await self._read(list({key for key, _ in batch}))
        except LedgerError as away:
            error = away
            self._answer_all(error)  # those still in the queue have waited just as long
        except Exception:
            log.exception("what was asked for could not be read", many=len(batch))
            error = LedgerUnavailable("It could not be read, try again.")
        for key, waiting in batch:
            if not waiting.done():
                waiting.set_result(error or found.get(key))
