"""Calls that go on after their caller was cancelled."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from seckill.backends.sql.transactions import until_not_collided
from seckill.errors import LedgerUnavailable


class Calls(set[asyncio.Task[Any]]):
    """The calls under way. They are kept here because the event loop forgets tasks to which nothing refers."""

    closed = False

    async def close(self) -> None:
        """Waits for all calls, and lets none begin afterwards: a shared look goes on even when all its callers are
        gone, and would open a connection that no one closes."""
        self.closed = True
        if self:
            await asyncio.wait(self)


class Busy(Protocol):
    tasks: Calls


Self_ = TypeVar("Self_", bound=Busy)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Method = Callable[Concatenate[Self_, Arguments], Coroutine[Any, Any, Result]]


def to_the_end(method: Method[Self_, Arguments, Result]) -> Method[Self_, Arguments, Result]:
    """A cancelled caller returns at once, but the call that it began goes on to its end, which is bounded in time.

    Interrupting a statement costs the connection, and a new one takes longer than most statements. While many requests
    are being cancelled, no connection would live long enough to be of use.
    """

    @functools.wraps(method)
    async def carried(self: Self_, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if self.tasks.closed:
            raise LedgerUnavailable("The ledger was closed, because its process is about to end.")
        task = asyncio.create_task(until_not_collided(lambda: method(self, *args, **kwargs)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(_notice)
        return await asyncio.shield(task)

    return carried


def _notice(task: asyncio.Task[Any]) -> None:
    """Marks the error as seen: no caller waits for it any more, and asyncio would report it as never retrieved."""
    if not task.cancelled():
        task.exception()
