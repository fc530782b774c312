"""Runs a coroutine as a command."""

import asyncio
import contextlib
import gc
import resource
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from seckill import logs
from seckill.loops import Stop
from seckill.settings import Settings

T = TypeVar("T")
Role = Callable[[Stop], Awaitable[None]]


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:  # does not exist on every platform; without it, everything is the same but slower
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _allow_many_connections() -> None:
    """Each buyer's connection counts as an open file, and many systems allow a thousand unless asked for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS names a limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def until_stopped(stop: Stop, work: Coroutine[Any, Any, T]) -> T:
    """Runs work that may be interrupted at any moment: the first signal cancels it."""
    task = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
    (stopping if task.done() else task).cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    return await task


def run(main: Callable[[Stop], Awaitable[T]], settings: Settings) -> T:
    """SIGINT and SIGTERM ask `main` to stop; a second signal cancels it."""
    logs.setup(settings.log_format, settings.log_level)
    _allow_many_connections()

    async def with_signals() -> T:
        stop = Stop()
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None

        def told() -> None:
            if stop.is_set():
                task.cancel()
            stop.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, told)
        return await main(stop)

    was_frozen = gc.get_freeze_count() > 0  # by the program that calls us, if any
    gc.freeze()  # what is loaded now stays, so that collections need not look at it
    gc.enable()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        try:
            return runner.run(with_signals())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            if not was_frozen:
                gc.unfreeze()
