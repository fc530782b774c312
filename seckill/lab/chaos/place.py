"""Starts everything that a run needs: servers, a proxy on each link, and the roles as production runs them."""

import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redis.exceptions import RedisError

from seckill.backends.redis.gate import connect
from seckill.backends.sql.migration import migrate
from seckill.errors import StartError
from seckill.lab.chaos.clocks import Clocks
from seckill.lab.chaos.crew import Crew, Member
from seckill.lab.chaos.disks import Disks
from seckill.lab.chaos.failpoint_plan import FaultWindow, armed, possible
from seckill.lab.chaos.schedule import ROLES, Option
from seckill.lab.chaos.servers.choice import BROKERS, GATES, LANES, LEDGERS
from seckill.lab.chaos.servers.given import GivenServer
from seckill.lab.chaos.servers.server import Can, FaultyServer
from seckill.lab.compare.scratch_database import scratch_database
from seckill.lab.servers.ports import free_ports
from seckill.lab.servers.proxy import Proxy
from seckill.settings import Secret, Settings
from seckill.web.buyers.buyer_tokens import mint_buyer_token

EACH = 2  # processes of each role
CLAIM_IDLE_S = 1.0
# Large enough for ten minutes, and small enough to be filled in a moment.
DISK_MIB = {"gate": 160, "ledger": 320}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Names of servers to start, or addresses of servers. `broker` is empty for none."""

    gate: str
    ledger: str
    broker: str
    logs: Path | None
    seed: int


@dataclass(slots=True, kw_only=True)
class ChaosPlace:
    settings: Settings  # with the servers' own addresses, which bypass the proxies
    servers: dict[str, FaultyServer]
    links: dict[str, Proxy]
    crew: Crew
    clocks: Clocks
    ports: list[int]
    windows: tuple[FaultWindow, ...]
    filled: set[str]  # servers with a disk of their own
    notes: list[str] = field(default_factory=list)

    def token(self, user: str) -> str:
        secret = self.settings.jwt_secret
        assert secret is not None
        return mint_buyer_token(secret, user, lifetime_s=6 * 3600, issuer=None, audience=None, now=time.time())

    def options(self) -> list[Option]:
        """Returns every fault that is possible here, in a fixed order."""
        found: list[Option] = [("takeover", "worker-1")]
        if Can.KILL in self.servers["gate"].can:
            found.append(("comeback", "gate"))
        members = [f"{role}-{number}" for role in ROLES for number in range(1, EACH + 1)]
        found += [("kill", member) for member in members]
        found += [("freeze", member) for member in members if not member.startswith("keeper")]
        found += [("clock", member) for member in members if self.clocks.there]
        for name, server in self.servers.items():
            found += [("pause", name)] if Can.PAUSE in server.can else []
            found += [("restart", name)] if Can.KILL in server.can else []
            found += [("full-disk", name)] if name in self.filled else []
        gate = self.servers["gate"].can
        found += [("silent", "gate")] if Can.SILENCE in gate else []
        found += [("torn", "gate")] if Can.TEAR in gate else []
        found += [("flush", "gate"), ("empty", "gate")] if Can.FORGET in gate else []
        found += [("starve", "gate")] if Can.STARVE in gate else []
        for link in self.links:
            found += [(kind, link) for kind in ("cut", "hole", "slow")]
        found += [("lost-answer", link) for link in self.links if not link.endswith("broker")]
        return found


@asynccontextmanager
async def place(wanted: Wanted, clock: Callable[[], float]) -> AsyncIterator[ChaosPlace]:
    async with AsyncExitStack() as stack:
        base = stack.enter_context(_folder())
        disks = Disks()
        stack.callback(disks.unmount)
        servers: dict[str, FaultyServer] = {}
        filled = set()
        for name, chosen, known in (
            ("gate", wanted.gate, GATES),
            ("ledger", wanted.ledger, LEDGERS),
            ("broker", wanted.broker, BROKERS),
        ):
            if not chosen:
                continue
            servers[name], on_disk = _server(base / name, chosen, known, disks, DISK_MIB.get(name, 0))
            filled |= {name} if on_disk else set()
        for server in servers.values():
            stack.push_async_callback(server.stop)
            await server.start()
        await _check_empty(stack, servers["gate"])
        await _scratch(stack, servers)
        settings = _settings(servers, base)
        await migrate(settings.database_url)
        links = {
            f"{role}→{name}": await stack.enter_async_context(Proxy(server.address))
            for name, server in servers.items()
            for role in ROLES
            if Can.PROXY in server.can
        }
        clocks = Clocks()
        has = {name for name in servers if name == "broker"} | (
            {"empty"} if Can.FORGET in servers["gate"].can else set()
        )
        windows = possible(has)
        crew = Crew(lambda role, number, life: armed(windows, wanted.seed, role, number, life), clock)
        made = ChaosPlace(
            settings=settings,
            servers=servers,
            links=links,
            crew=crew,
            clocks=clocks,
            ports=free_ports(EACH),
            windows=windows,
            filled=filled,
            notes=[note for note in (disks.reason, clocks.reason) if note],
        )
        _hire(made, wanted.logs or base)
        stack.push_async_callback(crew.stop)
        crew.start()
        yield made


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)  # if we are root, PostgreSQL runs as another user, who has to reach its folder
        yield Path(name)


def _server(
    folder: Path, chosen: str, known: Mapping[str, object], disks: Disks, mib: int
) -> tuple[FaultyServer, bool]:
    """Returns a server by name or by address, and whether it has a disk of its own."""
    if "://" in chosen:
        return GivenServer(chosen), False
    make = known.get(chosen)
    if make is None:
        raise StartError(f"There is no {chosen!r} to start: choose from {', '.join(known)}, or give an address.")
    folder.mkdir()
    assert callable(make)
    mounted = bool(mib) and disks.mount(folder, mib)
    server: FaultyServer = make(folder)
    return server, mounted and Can.FILL in server.can


async def _check_empty(stack: AsyncExitStack, gate: FaultyServer) -> None:
    """Refuses a gate that has keys: they could disturb a run, and the run's keys could disturb their owner."""
    if gate.folder is not None:
        return
    client = connect(gate.url)
    stack.push_async_callback(client.aclose)
    try:
        if await client.dbsize():
            raise StartError("The Redis that was given has keys in it: give one that is empty, or another database.")
    except RedisError as error:
        raise StartError(f"The Redis that was given does not answer ({error}): check its address.") from error
    stack.push_async_callback(client.flushdb)


async def _scratch(stack: AsyncExitStack, servers: dict[str, FaultyServer]) -> None:
    """Makes a database for the run on a database server that was given."""
    ledger = servers["ledger"]
    if ledger.folder is None:
        servers["ledger"] = GivenServer(await scratch_database(stack, ledger.url, Path()))


def _settings(servers: Mapping[str, FaultyServer], base: Path) -> Settings:
    broker = servers.get("broker")
    return Settings(
        redis_url=servers["gate"].url,
        database_url=servers["ledger"].url,
        broker_url=broker.url if broker else "",
        data_dir=base,
        jwt_secret=Secret(secrets.token_urlsafe(32)),
        admin_key=Secret(secrets.token_urlsafe(32)),
        lanes=LANES,
        claim_idle_s=CLAIM_IDLE_S,
    )


def _hire(made: ChaosPlace, logs: Path) -> None:
    for role in ROLES:
        for number in range(1, EACH + 1):
            port = str(made.ports[number - 1])
            arguments = ["api", "--host", "127.0.0.1", "--port", port] if role == "api" else [role]
            name = f"{role}-{number}"
            environ = _environ(made, role)
            made.crew.add(Member(role, number, arguments, environ, logs / f"{name}.log"))


def _environ(made: ChaosPlace, role: str) -> dict[str, str]:
    """Each role reaches its servers through its own proxies."""
    settings = made.settings
    assert settings.jwt_secret is not None
    assert settings.admin_key is not None

    def through(name: str) -> str:
        server, link = made.servers.get(name), made.links.get(f"{role}→{name}")
        return "" if server is None else server.url if link is None else server.url_through(link.port)

    ours = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    return ours | {
        "SECKILL_REDIS_URL": through("gate"),
        "SECKILL_DATABASE_URL": through("ledger"),
        "SECKILL_BROKER_URL": through("broker"),
        "SECKILL_JWT_SECRET": settings.jwt_secret.reveal(),
        "SECKILL_ADMIN_KEY": settings.admin_key.reveal(),
        "SECKILL_REHEARSAL": "on",
        "SECKILL_WEBHOOK_PRIVATE": "on",  # our receiver is on loopback
        "SECKILL_LANES": str(settings.lanes),
        "SECKILL_CLAIM_IDLE_S": f"{settings.claim_idle_s:g}",
        "SECKILL_RETRY_DELAYS_S": "1,2,3",
        # otherwise buyers wait so long when nothing is written that too few are left for other sales
        "SECKILL_CONFIRM_WITHIN_S": "2",
        "SECKILL_LOG_LEVEL": "warning",
        "SECKILL_LOG_FORMAT": "json",
    }
