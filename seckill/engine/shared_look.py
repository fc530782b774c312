"""Many who want to know the same at once are answered by one look: a crowd must not be a query each."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class SharedLook:
    """Calling it looks, or shares the look of others. It never shares one that began before it was called: that one may
    have missed what the caller was told of."""

    def __init__(self, look: Callable[[], Awaitable[object]]) -> None:
        self._look = look
        self._under_way: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        """Raises what the look raises, to all who share it."""
        if self._next is None:
            self._next = asyncio.create_task(self._look_after(self._under_way))
            self._next.add_done_callback(_told)
        await asyncio.shield(self._next)  # whoever gives up takes it from nobody else

    async def _look_after(self, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._under_way, self._next = self._next, None
        await self._look()


class SharedAnswers(Generic[V]):
    """By key. Whoever comes while a look is under way shares it, though it began a moment before."""

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
    """Nobody may be left to be told what went wrong."""
    if not done.cancelled():
        done.exception()
