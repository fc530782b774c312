"""Answers many callers who ask for the same thing at once with one look, so that a crowd does not make a query each."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class SharedLook:
    """A call looks, or shares the look of other callers. It never shares one that began before the call: that one may
    have missed the news which made the caller ask."""

    def __init__(self, look: Callable[[], Awaitable[object]]) -> None:
        self._look = look
        self._under_way: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        """Raises what the look raises, to all who share it."""
        if self._next is None:
            self._next = asyncio.create_task(self._look_after(self._under_way))
            self._next.add_done_callback(_told)
        await asyncio.shield(self._next)  # a caller who gives up must not cancel it for the others

    async def _look_after(self, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._under_way, self._next = self._next, None
        await self._look()


class SharedAnswers(Generic[V]):
    """Shares looks by key. A caller who comes while a look is under way shares it, although it began a moment
    before."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[V]] = {}

    async def of(self, key: Hashable, look: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Raises what the look raises, to all who share it."""
        under_way = self._under_way.get(key)
        if under_way is None:
            under_way = self._under_way[key] = asyncio.create_task(look())
            under_way.add_done_callback(lambda _: self._under_way.pop(key, None))
            under_way.add_done_callback(_told)
        return await asyncio.shield(under_way)


def _told(done: asyncio.Task[Any]) -> None:
    """Marks an error as seen: perhaps no caller is left to hear of it."""
    if not done.cancelled():
        done.exception()
