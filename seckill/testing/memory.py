"""The engine in this process: API, worker and keeper on a store in memory and a ledger in a temporary folder."""

import asyncio
import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from seckill.backends.memory.store import MemoryStore
from seckill.backends.sql.migration import migrate
from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.client import AsyncClient
from seckill.loops import Stop, repeat
from seckill.ports.payment import PaymentProvider
from seckill.settings import Secret, Settings
from seckill.testing.clock import Clock, go_by
from seckill.testing.in_process import InProcess
from seckill.web.app import Api
from seckill.web.buyers.buyer_tokens import mint_buyer_token
from seckill.web.mounting import UnderAnyPath

# How soon worker and keeper act unprompted.
EVERY_S = 0.02
TOKEN_LASTS_S = 24 * 3600


class MemoryEngine:
    """Gate and ledger go by the `clock`. `app` is the API as an ASGI application, which can be mounted as well."""

    def __init__(self, settings: Settings, engine: Engine, clock: Clock) -> None:
        self.settings = settings
        self.engine = engine
        self._clock = clock
        self._api = Api(settings, engine)
        self.app = UnderAnyPath(self._api)
        self._behind = _Behind(engine, settings)
        self._settling = asyncio.Lock()
        assert settings.admin_key is not None
        self.operator = AsyncClient("", settings.admin_key.reveal(), repeat_for_s=0, transport=InProcess(self.app))

    def now(self) -> datetime:
        """Returns the engine's time."""
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)

    def buyer(self, user: str) -> AsyncClient:
        """Returns a client that is signed in as this buyer."""
        return self.operator.signed_in(self.token(user))

    def token(self, user: str) -> str:
        assert self.settings.jwt_secret is not None
        return mint_buyer_token(
            self.settings.jwt_secret,
            user,
            lifetime_s=TOKEN_LASTS_S,
            issuer=self.settings.jwt_issuer,
            audience=self.settings.jwt_audience,
            now=time.time(),
        )

    async def settle(self) -> None:
        """Does everything that is due: writes orders, ends lapsed ones, and puts their units back. It would happen
        anyway, a moment later."""
        async with self._settling:
            while await self._behind.step():
                pass
            ctx = self._api.context
            await ctx.sale_cache.refresh_sales()
            ctx.desk.forget(await ctx.sale_cache.refresh_pulses())
            await ctx.orders.look_up_waiting()

    async def pass_time(self, period: timedelta | float) -> None:
        """Moves the clock forward, by seconds or a period, and settles."""
        await self.settle()
        self._clock.move(period.total_seconds() if isinstance(period, timedelta) else period)
        await self.settle()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self._behind.prepare()
        await self.settle()
        stop = Stop()
        async with self._api.running():
            settling = asyncio.create_task(repeat("settling", self.settle, stop, EVERY_S))
            try:
                yield
            finally:
                self._api.context.answer_waiting()
                stop.set()
                await settling


class _Behind:
    """Runs the work of worker and keeper, one step at a time when told to."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._use = UseCases(engine, settings)
        self._worker = self._use.worker(Stop())

    async def prepare(self) -> None:
        await self._worker.prepare()

    async def step(self) -> int:
        """Returns how much there was to do."""
        return sum(
            [
                await self._use.repeater.step(),
                await self._use.opener.step(),
                await self._worker.read_and_record(wait_s=0),
                await self._use.failures.retry_due(),
                await self._use.release_desk.expire(),
                await self._use.release_desk.pass_on(),
                await self._use.payments.late.decide_due(),
                await self._use.refunds.make_due(),
                await self._use.checkouts.call_off_due(),
                await self._use.drawing.step(),
                await self._use.serving.step(),
                await self._use.event_feed.keep(),
            ]
        )


@asynccontextmanager
async def memory_engine(
    settings: Settings | None = None, *, provider: PaymentProvider | None = None
) -> AsyncIterator[MemoryEngine]:
    """Starts in a few milliseconds, needs no server, and leaves nothing behind. `settings`: the shop's settings, such
    as its payment provider. The addresses of gate and ledger are ignored, and secrets are made if none are set.
    `provider`: an existing provider, used instead of the one that the settings name."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="seckill-") as folder:
        path = Path(folder) / "ledger.db"
        path.write_bytes(await _empty_ledger())
        settings = _in_memory(settings or Settings(), path)
        async with open_engine(settings, MemoryStore(clock.now_ms), provider=provider) as engine:
            await go_by(clock, engine)
            made = MemoryEngine(settings, engine, clock)
            async with made.running():
                yield made


def _in_memory(settings: Settings, path: Path) -> Settings:
    if not settings.knows_buyers:
        settings = replace(settings, jwt_secret=Secret(secrets.token_urlsafe(48)))
    return replace(
        settings,
        redis_url="memory://",
        database_url=f"sqlite:///{path}",
        broker_url="",
        admin_key=settings.admin_key or Secret(secrets.token_urlsafe(32)),
        payment_secret=settings.payment_secret or Secret(secrets.token_urlsafe(48)),
    )


_made: list[bytes] = []


async def _empty_ledger() -> bytes:
    """Returns an empty ledger with all its tables. It is made once, because that takes longer than most tests."""
    if not _made:
        with tempfile.TemporaryDirectory(prefix="seckill-") as folder:
            path = Path(folder) / "ledger.db"
            await migrate(f"sqlite:///{path}")
            _made.append(path.read_bytes())
    return _made[0]
