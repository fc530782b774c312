"""The API as an ASGI application: for any ASGI server, or under a path of another application."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette

from seckill.backends.memory.store import MemoryStore
from seckill.backends.payment.provider_choice import open_provider
from seckill.backends.sql.migration import migrate
from seckill.bootstrap.engine import Engine, new_memory, open_engine
from seckill.errors import SettingsError
from seckill.loops import Stop
from seckill.operations.production_refusals import as_a_test, refuse_make_believe
from seckill.roles.keeper import keep
from seckill.roles.worker import work
from seckill.settings import Settings, missing_for_payment, require_production
from seckill.web.app import Api
from seckill.web.mounting import UnderAnyPath

Role = Callable[[Engine, Settings, Stop], Awaitable[None]]


def create_app(settings: Settings) -> "Application":
    """Connects to nothing yet. Raises SettingsError for settings that `seckill api` would refuse.

    With `memory://` the application is all there is: worker and keeper run in it, and nothing is kept.
    """
    if settings.in_memory:
        _check_memory(settings)
        return Application(as_a_test(settings, open_provider(settings)))
    require_production(settings, "api")
    refuse_make_believe(settings, open_provider(settings))
    return Application(settings)


def _check_memory(settings: Settings) -> None:
    problems = missing_for_payment(settings)
    if settings.admin_key is None or not settings.knows_buyers:
        problems.append("Set SECKILL_ADMIN_KEY and SECKILL_JWT_SECRET: operators and buyers are known by them.")
    if settings.database_url:
        problems.append("memory:// keeps nothing and needs no other server: leave SECKILL_DATABASE_URL empty.")
    if problems:
        raise SettingsError(problems)


class Application:
    """Serves itself, where a server speaks the lifespan protocol to it. What it is mounted in does not pass that on:
    there, give `lifespan` to the surrounding application."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._answers: UnderAnyPath | None = None
        self._alone = Starlette(lifespan=self.lifespan)  # for the protocol of the lifespan, and nothing else

    @asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """From the connections to the last answer. Takes the surrounding application, as frameworks give it."""
        running = _in_memory if self._settings.in_memory else _api
        async with running(self._settings) as api:
            self._answers = UnderAnyPath(api)
            try:
                yield
            finally:
                self._answers = None
                api.context.answer_waiting()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._alone(scope, receive, send)
            return
        if self._answers is None:
            raise RuntimeError("seckill is not running: give the `lifespan` of create_app's result to your application")
        await self._answers(scope, receive, send)


@asynccontextmanager
async def _api(settings: Settings, memory: MemoryStore | None = None) -> AsyncIterator[Api]:
    async with open_engine(settings, memory, role="api") as engine:
        api = Api(settings, engine)
        async with api.running():
            yield api


@asynccontextmanager
async def _in_memory(settings: Settings) -> AsyncIterator[Api]:
    """With worker and keeper behind it, and a ledger that is gone when it stops."""
    memory, stop = new_memory(), Stop()

    async def play(role: Role) -> None:
        async with open_engine(settings, memory) as engine:
            await role(engine, settings, stop)

    with tempfile.TemporaryDirectory(prefix="seckill-") as folder:
        settings = replace(settings, database_url=f"sqlite:///{folder}/ledger.db")
        await migrate(settings.database_url)
        behind = [asyncio.create_task(play(role)) for role in (work, keep)]
        try:
            async with _api(settings, memory) as api:
                yield api
        finally:
            stop.set()  # only now: the worker still writes what the API has accepted
            await asyncio.gather(*behind)
