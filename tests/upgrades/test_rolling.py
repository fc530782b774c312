"""The release before and this one side by side, role by role, there and back, while drops sell out one after the other.

Both run as processes of their own, the earlier one from the code that was kept. Nothing depends on how fast the machine
is: each step waits until whole drops have begun and ended in the state that it has made.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from seckill import __version__
from seckill.backends.sql.schema import REVISIONS
from tests.e2e.checks import rows
from tests.fixtures.postgres import PostgresServer, fresh_database
from tests.patience import PATIENCE_S, STORY_PATIENCE_S
from tests.upgrades.drops import Drops
from tests.upgrades.fleet import ADMIN_KEY, JWT_SECRET, Fleet, Process, Release
from tests.upgrades.kept_code import VERSIONS, unpack

ROOT = Path(__file__).parents[2]
# On the day of a release, what it leaves is kept as well: it is no release before itself.
KEPT = {path.name for path in VERSIONS.iterdir()} - {__version__}
BEFORE = max(KEPT, key=lambda name: tuple(map(int, name.split("."))))
# An entry of a version of which the release before knows nothing: what docs/upgrades.md says takes two releases.
UNREADABLE = """
from seckill.backends.redis.scripts import Script
as_written = Script.__init__
def spoilt(self, *names):
    as_written(self, *names)
    self.source = self.source.replace('{"v":1,', '{"v":2,')
Script.__init__ = spoilt
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return Release(BEFORE, unpack(BEFORE, tmp_path_factory.mktemp("before")))


@pytest.fixture
def now() -> Release:
    return Release(__version__, ROOT)


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[str]:
    with fresh_database(postgres_server, "template0") as url:
        yield url


@pytest.fixture
async def fleet(redis_url: str, empty_database: str) -> AsyncIterator[Fleet]:
    environ = {
        "SECKILL_REDIS_URL": redis_url,
        "SECKILL_DATABASE_URL": empty_database,
        "SECKILL_JWT_SECRET": JWT_SECRET.reveal(),
        "SECKILL_ADMIN_KEY": ADMIN_KEY,
        "SECKILL_REHEARSAL": "on",  # the sandbox takes the money
        "SECKILL_LANES": "4",
        "SECKILL_RETRY_DELAYS_S": "0.1",  # what cannot be written is given up at once
        "SECKILL_DURABILITY": "fast",  # as the server of the run has it
        "SECKILL_GATE_TIMEOUT_S": "30",
        "SECKILL_LOG_FORMAT": "json",
        "SECKILL_LOG_LEVEL": "warning",
    }
    with tempfile.TemporaryDirectory(prefix="sk") as folder:
        made = Fleet(Path(folder), environ)
        yield made
        made.kill()


@asynccontextmanager
async def selling(fleet: Fleet) -> AsyncIterator[Drops]:
    """Drops until it is left; a drop that is judged wrong ends the test at once."""
    closed = asyncio.Event()
    patience = httpx2.Timeout(PATIENCE_S, pool=None)
    async with httpx2.AsyncClient(timeout=patience, verify=False) as http:
        drops = Drops(fleet, http)
        async with asyncio.timeout(STORY_PATIENCE_S), asyncio.TaskGroup() as tasks:
            tasks.create_task(drops.run(closed))
            yield drops
            closed.set()
        await drops.judge()


async def sold_out_meanwhile(drops: Drops) -> None:
    """One that began after this call has sold out: what was under way may have begun before. No check complains."""
    enough = drops.over + 2
    while drops.over < enough:
        complaints = drops.fleet.complaints()
        assert not complaints, complaints[0]
        await asyncio.sleep(0.1)


async def migrated(fleet: Fleet, release: Release) -> None:
    code, said = await fleet.run(release, "migrate")
    assert code == 0, said


async def replace(fleet: Fleet, drops: Drops, gone: Process, release: Release) -> None:
    """A new one beside it first, so that both versions do the same work for a while."""
    await fleet.start(gone.role, release)
    assert len(fleet.versions()) == 2
    await sold_out_meanwhile(drops)
    await fleet.stop(gone)


async def roll(fleet: Fleet, drops: Drops, release: Release) -> None:
    """Updates the roles in the order of docs/deploy.md."""
    for role in ("keeper", "worker", "api"):
        for gone in [process for process in fleet.processes if process.role == role]:
            await replace(fleet, drops, gone, release)
    await drops.pay_an_old_one()
    await sold_out_meanwhile(drops)
    assert fleet.versions() == {release.version}


async def test_there_and_back_under_load(fleet: Fleet, before: Release, now: Release) -> None:
    assert before.version != now.version
    await migrated(fleet, before)
    for role in ("api", "api", "worker", "keeper"):
        await fleet.start(role, before)
    async with selling(fleet) as drops:
        await sold_out_meanwhile(drops)
        await migrated(fleet, now)
        ((revision,),) = await rows(fleet.environ["SECKILL_DATABASE_URL"], "SELECT version_num FROM alembic_version")
        assert revision == REVISIONS[-1]
        await sold_out_meanwhile(drops)
        await roll(fleet, drops, now)
        await roll(fleet, drops, before)
    for release in (before, now):
        code, said = await fleet.run(release, "audit", "--json")
        assert code == 0, said
    assert fleet.complaints() == []


async def test_the_judge_would_notice(fleet: Fleet, before: Release, now: Release) -> None:
    """The step that matters on the way back: a worker of the release before meets an API node that writes what it
    cannot read."""
    await migrated(fleet, now)
    await fleet.start("api", Release(now.version, now.place, UNREADABLE))
    await fleet.start("worker", before)
    with pytest.raises(ExceptionGroup) as told:
        async with selling(fleet) as drops:
            await sold_out_meanwhile(drops)
    assert told.group_contains(AssertionError, match="not an entry of this version and lane")
