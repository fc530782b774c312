"""Processes that can be stopped, and killed at any await.

All tasks that a process starts, and all that those start, carry its name in their context. A process that is killed
goes no further: nothing of its `except` and `finally` is run, as with kill -9. What it held of the database is rolled
back.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tests.simulation.database import DatabaseFile, Session

T = TypeVar("T")

_PROCESS: ContextVar["Process | None"] = ContextVar("process", default=None)


def process_of(context: Context) -> "Process | None":
    return context.get(_PROCESS)


def this_process() -> "Process | None":
    return _PROCESS.get()


class Killed(Exception):
    """Raised to callers that waited for an answer of the process."""


class Process:
    def __init__(self, name: str, file: "DatabaseFile") -> None:
        self.name = name
        self.file = file
        self.is_stopped = False
        self.is_dead = False
        self.held_up: list[asyncio.Handle] = []  # what it would do next, if it could
        self.sessions: dict[Session, None] = {}
        self.tasks: list[asyncio.Task[Any]] = []  # kept: a task that is forgotten is closed, and runs its `finally`
        self._callers: dict[asyncio.Future[Any], None] = {}
        self._context = contextvars.copy_context()
        self._context.run(_PROCESS.set, self)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, context=self._context.copy())
        self.tasks.append(task)
        return task

    def start_in(self, make: Callable[[], T]) -> T:
        return self._context.run(make)

    async def ask(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Asks as a caller outside does, over a connection. Raises Killed if the process dies first."""
        if self.is_dead:
            raise Killed
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._callers[answer] = None
        self.start(_answer(answer, work))
        try:
            return await answer
        finally:
            self._callers.pop(answer, None)

    def stop(self) -> None:
        self.is_stopped = True

    def go_on(self) -> list[asyncio.Handle]:
        """Returns the calls that were held up, with which it goes on."""
        self.is_stopped = False
        held_up, self.held_up = self.held_up, []
        return held_up

    def kill(self) -> None:
        self.is_stopped = self.is_dead = True
        for session in list(self.sessions):
            session.abandon()
        for answer in self._callers:
            if not answer.done():
                answer.set_exception(Killed())


async def _answer(answer: "asyncio.Future[T]", work: Callable[[], Coroutine[Any, Any, T]]) -> None:
    try:
        result = await work()
    except Exception as error:
        if not answer.done():
            answer.set_exception(error)
    else:
        if not answer.done():
            answer.set_result(result)
