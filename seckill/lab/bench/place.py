"""Starts fresh servers for one measurement, and the engine's roles on them as `seckill up` runs them."""

import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from seckill.backends.sql.migration import migrate
from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.client import NoAnswer
from seckill.client.connections import HttpTransport, Message, Reply
from seckill.domain.door import OPEN_DOOR, Door
from seckill.domain.sale import Confirm, Sale, SaleDraft
from seckill.errors import StartError
from seckill.lab.bench import processes
from seckill.lab.bench.child import child
from seckill.lab.bench.services import SECRET, SERVERS
from seckill.lab.compare.scratch_database import scratch_database
from seckill.lab.compare.strategy import CompareServers
from seckill.local.supervisor import Process
from seckill.local.valkey import EmbeddedValkey
from seckill.settings import Role, Secret, Settings
from seckill.web.connections.listening_socket import bind

READY_WITHIN_S = 60.0
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlace:
    settings: Settings
    folder: Path
    valkey_pid: int


@asynccontextmanager
async def place(ledger_url: str) -> AsyncIterator[BenchPlace]:
    """Yields a Valkey that is as `strict` as the embedded one, and an empty ledger on the given database server or in a
    file."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True)))
        valkey = EmbeddedValkey(folder, durability="strict")
        stack.push_async_callback(valkey.stop)
        await valkey.start()
        await valkey.ready()
        database_url = await scratch_database(stack, ledger_url, folder / "ledger.db")
        yield BenchPlace(
            settings=Settings(
                redis_url=valkey.url,
                database_url=database_url,
                data_dir=folder,
                jwt_secret=Secret(secrets.token_urlsafe(32)),
                admin_key=Secret(secrets.token_urlsafe(32)),
            ),
            folder=folder,
            valkey_pid=valkey.pid,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The engine with one API process."""

    place: BenchPlace
    engine: Engine
    address: str
    pids: Mapping[str, int]  # of the roles and of Valkey

    def cpu_s(self) -> dict[str, float]:
        """Returns the user and system time of each process so far."""
        return {name: processes.cpu_s([pid]) for name, pid in self.pids.items()}

    async def new_sale(self, units: int, confirm: Confirm = Confirm.GATE, door: Door = OPEN_DOOR) -> Sale:
        """Makes a sale that has begun. A draw, however, begins only after the measurement, so that buyers can join all
        the time."""
        now_ms = int(time.time() * 1000)
        draft = SaleDraft(
            title="Bench",
            units=units,
            limit_per_buyer=1,
            price_cents=100,
            currency="CNY",
            begins_ms=now_ms + (HOUR_MS if door.line.draws else -HOUR_MS),
            ends_ms=now_ms + 24 * HOUR_MS,
            pay_within_s=6 * 3600,
            confirm=confirm,
            door=door,
        )
        return await UseCases(self.engine, self.place.settings).operator_desk.announce(draft, 0)

    def path(self, sale: Sale, what: str = "orders") -> str:
        return f"/v1/sales/{self.engine.sale_ids.encode(sale.id)}/{what}"

    async def metrics(self) -> str:
        key = self.place.settings.admin_key
        assert key is not None
        reply = await _get(self.address, "/metrics", 10, {"Authorization": f"Bearer {key.reveal()}"})
        return reply.body.decode()


@asynccontextmanager
async def engine_on(
    place_: BenchPlace, roles: Sequence[Role] = ("worker", "keeper", "api"), **environ_: str
) -> AsyncIterator[Running]:
    settings = place_.settings
    await migrate(settings.database_url)
    environ = {**environ_of(settings), **environ_}
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(settings))
        listener = stack.enter_context(closing(bind("127.0.0.1", 0)))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        fd = listener.fileno()
        pids = {"valkey": place_.valkey_pid}
        for role in roles:
            process = Process(role, [role], environ, listener=fd if role == "api" else None)
            await process.start()
            stack.push_async_callback(process.stop)
            pids[role] = process.pid
        if "api" in roles:
            await until_answering(address, "/readyz")
        yield Running(place=place_, engine=engine, address=address, pids=pids)


@asynccontextmanager
async def service(what: str, servers: CompareServers | None = None, secret: Secret | None = None) -> AsyncIterator[str]:
    """Runs one of the services of `services.py` as a process and yields its address."""
    environ = dict(os.environ)
    if servers is not None:
        environ[SERVERS] = msgspec.json.encode(servers).decode()
    if secret is not None:
        environ[SECRET] = secret.reveal()
    with closing(bind("127.0.0.1", 0)) as listener:
        fd = listener.fileno()
        command = [sys.executable, "-m", "seckill.lab.bench.services", what, str(fd)]
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with child(command, environ=environ, pass_fds=[fd]):
            await until_answering(address)
            yield address


async def until_answering(address: str, path: str = "/") -> None:
    give_up_at_s = time.monotonic() + READY_WITHIN_S
    while not await _answers(address, path):
        if time.monotonic() > give_up_at_s:
            raise StartError("A server of the benchmark did not start in time: try again on a quieter machine.")
        await asyncio.sleep(0.05)


async def _answers(address: str, path: str) -> bool:
    """Whether the server answers with anything but "not ready"."""
    try:
        return (await _get(address, path, 2)).status != 503
    except NoAnswer:
        return False


async def _get(address: str, path: str, within_s: float, headers: Mapping[str, str] | None = None) -> Reply:
    """Uses the layer below `AsyncClient`, which expects the API's JSON: these answers are text, and some come from
    other servers."""
    transport = HttpTransport(address)
    try:
        message = Message(method="GET", path=path, headers=headers or {}, body=b"", repeatable=True)
        return await transport.send(message, within_s)
    finally:
        await transport.close()


def environ_of(settings: Settings) -> Mapping[str, str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    assert settings.jwt_secret is not None
    assert settings.admin_key is not None
    metrics = settings.data_dir / "metrics"
    metrics.mkdir(exist_ok=True)
    return environ | {
        "SECKILL_REDIS_URL": settings.redis_url,
        "SECKILL_DATABASE_URL": settings.database_url,
        "SECKILL_DATA_DIR": str(settings.data_dir),
        "SECKILL_JWT_SECRET": settings.jwt_secret.reveal(),
        "SECKILL_ADMIN_KEY": settings.admin_key.reveal(),
        "SECKILL_REHEARSAL": "on",
        "SECKILL_LOG_LEVEL": "error",
        "PROMETHEUS_MULTIPROC_DIR": str(metrics),
    }
