"""Questions that arrive while a call is under way share the next call.

There is no timer: a question that finds no call under way goes at once, alone. Under load the calls fill up by
themselves, and one call (and one fsync behind it) serves hundreds.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

Asked = TypeVar("Asked")
Given = TypeVar("Given")
GivenTo = TypeVar("GivenTo", contravariant=True)


class Waiter(Protocol[GivenTo]):
    """Waits for an answer: a future, or something lighter that acts on the answer at once and never raises."""

    def done(self) -> bool:
        """True if the caller has given up: a question that was not sent yet is then never sent."""

    def set_result(self, answer: GivenTo, /) -> None: ...


class Batches(ABC, Generic[Asked, Given]):
    """Each caller gets the answer to its own question, even if others give up."""

    def __init__(self, *, batch_max: int, waiting_max: int) -> None:
        self._batch_max = batch_max
        self._waiting_max = waiting_max
        self._waiting: list[tuple[Asked, Waiter[Given]]] = []
        self._running: asyncio.Task[None] | None = None

    @abstractmethod
    async def _serve(self, batch: list[tuple[Asked, Waiter[Given]]]) -> None:
        """Answers each caller who still waits."""

    @abstractmethod
    def _too_many(self) -> Given: ...

    @abstractmethod
    def _not_asked(self) -> Given:
        """The answer for callers whose question was certainly not sent."""

    @property
    def idle(self) -> bool:
        return self._running is None

    def submit(self, asked: Asked, waiting: Waiter[Given]) -> None:
        """All callers of a batch are answered in the same turn of the event loop."""
        if len(self._waiting) >= self._waiting_max:
            waiting.set_result(self._too_many())
            return
        self._waiting.append((asked, waiting))
        if self._running is None:
            self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while batch := self._next_batch():
                await self._serve(batch)
        finally:
            self._running = None
            self._answer_all(self._not_asked())  # no caller may be left waiting, whatever happened

    def _next_batch(self) -> list[tuple[Asked, Waiter[Given]]]:
        batch: list[tuple[Asked, Waiter[Given]]] = []
        while self._waiting and not batch:
            # The question of a caller who gave up while waiting is never sent.
            batch = [pair for pair in self._waiting[: self._batch_max] if not pair[1].done()]
            del self._waiting[: self._batch_max]
        return batch

    def _answer_all(self, answer: Given) -> None:
        everybody, self._waiting = self._waiting, []
        for _, waiting in everybody:
            if not waiting.done():
                waiting.set_result(answer)
