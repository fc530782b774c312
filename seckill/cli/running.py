"""Running a coroutine as a command, and the settings it runs with."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from seckill import logs
from seckill.embedded.data_folder import read_secrets
from seckill.embedded.valkey import EmbeddedValkey
from seckill.loops import Stop
from seckill.settings import Secret, Settings, read

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:  # not there on every platform; slower without, otherwise the same
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Callable[[Stop], Awaitable[T]], settings: Settings) -> T:
    """SIGINT and SIGTERM ask it to stop; a second one does not wait for it."""
    logs.setup(settings.log_format, settings.log_level)

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

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        try:
            return runner.run(with_signals())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


def environment(data: Path | None = None, host: str | None = None, port: int | None = None) -> Settings:
    """The environment, with what the command line says on top."""
    settings = read(os.environ)
    return replace(
        settings,
        data_dir=data or settings.data_dir,
        host=host or settings.host,
        port=settings.port if port is None else port,
    )


def with_data_folder(settings: Settings) -> Settings:
    """What is not set comes from the folder of `seckill up`, if there is one."""
    if not settings.data_dir.is_dir():
        return settings
    settings = with_embedded(settings)
    found = read_secrets(settings.data_dir)
    return settings if found is None else with_secrets(settings, found.jwt_secret, found.admin_key)


def with_embedded(settings: Settings) -> Settings:
    folder = settings.data_dir.resolve()
    valkey = EmbeddedValkey(folder, durability=settings.durability)
    return replace(
        settings,
        redis_url=settings.redis_url or valkey.url,
        database_url=settings.database_url or f"sqlite:///{folder / 'ledger.db'}",
    )


def with_secrets(settings: Settings, jwt_secret: str, admin_key: str) -> Settings:
    if settings.jwt_secret is None and settings.jwt_public_key is None:
        settings = replace(settings, jwt_secret=Secret(jwt_secret))
    return settings if settings.admin_key else replace(settings, admin_key=Secret(admin_key))
