"""Operators hear of a disk or a memory that is nearly full before it is full, and when it is over."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis.asyncio
from prometheus_client import REGISTRY

from seckill.backends.disk_space import disk_space
from seckill.backends.redis.server_space import memory_space
from seckill.backends.sql.ledger import SqlLedger
from seckill.bootstrap.engine import open_engine
from seckill.domain.space import Space, SpaceKind
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.errors import GateUnavailable
from seckill.loops import Stop
from seckill.operations.doctor.database import examine_database
from seckill.operations.doctor.gate import examine_gate
from seckill.operations.space_alarm import SpaceAlarm
from seckill.roles.keeper import keep
from seckill.telemetry import SPACE_FREE
from tests.api.conftest import settings_of_a_node
from tests.fixtures.valkey import OwnValkey
from tests.patience import PATIENCE_S

GB = 10**9


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


class Heard(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.all: list[tuple[str, str]] = []
        self.facts: Mapping[str, object] = {}

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        assert lasting
        self.all.append(("raised", what))
        self.facts = facts

    async def resolve(self, what: str, facts: Mapping[str, object], *, ends: str = "") -> None:
        self.all.append(("over", ends))


class Store:
    def __init__(self, *spaces: Space) -> None:
        self.told: Sequence[Space] = spaces
        self.away = False

    async def spaces(self) -> Sequence[Space]:
        if self.away:
            raise GateUnavailable("away")
        return self.told


def disk(free_bytes: float) -> Space:
    return Space(SpaceKind.DISK, "/data", int(free_bytes), 10 * GB)


async def test_what_is_short_is_told_once_and_so_is_its_end() -> None:
    gate, ledger, heard = Store(), Store(disk(5 * GB)), Heard()
    watch = SpaceAlarm(gate, ledger, heard)
    await watch.step()
    assert heard.all == []
    ledger.told = [disk(0.5 * GB)]
    for _ in range(3):
        await watch.step()
    assert heard.all == [("raised", AlarmCause.LEDGER_DISK_SHORT)]
    assert heard.facts == {"where": "/data", "free_bytes": GB // 2, "size_bytes": 10 * GB}
    for free in (1.1, 0.9, 1.1):  # around the limit: no one hears of it again
        ledger.told = [disk(free * GB)]
        await watch.step()
    ledger.told = [disk(2 * GB)]
    await watch.step()
    assert heard.all == [("raised", AlarmCause.LEDGER_DISK_SHORT), ("over", AlarmCause.LEDGER_DISK_SHORT)]


async def test_a_store_that_is_away_neither_hides_the_other_nor_ends_its_alarm() -> None:
    gate, ledger, heard = Store(disk(0)), Store(disk(0)), Heard()
    watch = SpaceAlarm(gate, ledger, heard)
    gate.away = True
    await watch.step()
    assert heard.all == [("raised", AlarmCause.LEDGER_DISK_SHORT)]
    gate.away = False
    await watch.step()
    gate.away = True
    await watch.step()
    assert heard.all == [("raised", AlarmCause.LEDGER_DISK_SHORT), ("raised", AlarmCause.GATE_DISK_SHORT)]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> dict[Path, int]:
    """The test says how much of which folder's disk is free, of 100 GB."""
    free: dict[Path, int] = {}
    real = shutil.disk_usage

    def usage(folder: Path) -> Any:
        return Usage(100 * GB, 0, free[folder]) if folder in free else real(folder)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    return free


async def test_real_stores_tell_what_they_have(
    own_valkey: OwnValkey, sqlite_in_use: str, full_disk: dict[Path, int]
) -> None:
    """A Valkey on a socket with a limit, and SQLite: figures, alarms, and what the doctor says."""
    server = await own_valkey(durability="fast")
    folder = Path(sqlite_in_use.partition(":///")[2]).parent
    settings = settings_of_a_node(server.url, sqlite_in_use)
    heard = Heard()
    async with (
        open_engine(settings) as engine,
        redis.asyncio.Redis.from_url(server.url, decode_responses=True) as client,
    ):
        home = Path(str((await client.config_get("dir"))["dir"]))
        full_disk |= {home: 50 * GB, folder: 50 * GB}
        used = int((await client.info("memory"))["used_memory"])
        await client.config_set("maxmemory", 4 * used)
        watch = SpaceAlarm(engine.gate, engine.ledger, heard)
        await watch.step()
        assert heard.all == []
        assert value("seckill_space_free_bytes", store="ledger", space="disk") == 50 * GB
        assert value("seckill_space_size_bytes", store="gate", space="disk") == 100 * GB
        assert value("seckill_space_size_bytes", store="gate", space="memory") == 4 * used
        free = value("seckill_space_free_bytes", store="gate", space="memory")
        assert free is not None
        assert 2 * used < free < 3.5 * used

        full_disk |= {home: 4 * GB, folder: GB // 2}
        used = int((await client.info("memory"))["used_memory"])
        await client.config_set("maxmemory", used + used // 20)
        await watch.step()
        causes = {AlarmCause.GATE_DISK_SHORT, AlarmCause.GATE_MEMORY_SHORT, AlarmCause.LEDGER_DISK_SHORT}
        assert set(heard.all) == {("raised", cause) for cause in causes}
    said = (await examine_gate(server.url, "fast", embedded=True)).advice
    assert any(f"The disk of Valkey/Redis is nearly full (4.0 GB of 100.0 GB free for {home})" in line for line in said)
    assert any("of maxmemory is in use" in line for line in said)
    said = (await examine_database(sqlite_in_use)).advice
    assert any(
        f"The disk of the database is nearly full (500.0 MB of 100.0 GB free for {folder})" in line for line in said
    )


async def test_a_disk_that_does_not_say_how_large_it_is_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As file systems that are programs (FUSE) do. The step would fail, and the memory would not be looked at."""
    assert await disk_space(tmp_path) is not None
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, 0))
    assert await disk_space(tmp_path) is None


async def test_a_server_on_another_machine_tells_nothing_of_its_disk(ledger: SqlLedger, ledger_url: str) -> None:
    assert [space.kind for space in await ledger.spaces()] == ([SpaceKind.DISK] if "sqlite" in ledger_url else [])


def test_a_gate_without_a_limit_may_take_the_memory_of_its_machine() -> None:
    info = {"used_memory": "30", "mem_not_counted_for_evict": "10", "total_system_memory": "100"}
    assert memory_space(info, "a") == Space(SpaceKind.MEMORY, "a", 80, 100)
    assert memory_space(info | {"maxmemory": "50"}, "a") == Space(SpaceKind.MEMORY, "a", 30, 50)
    assert memory_space(info | {"maxmemory": "5"}, "a") == Space(SpaceKind.MEMORY, "a", 0, 5)
    assert memory_space({"used_memory": "30"}, "a") is None


async def test_a_keeper_measures_it(redis_url: str, sqlite_in_use: str) -> None:
    settings = settings_of_a_node(redis_url, sqlite_in_use)
    SPACE_FREE.clear()
    stop = Stop()
    async with open_engine(settings) as engine, asyncio.timeout(PATIENCE_S):
        keeper = asyncio.create_task(keep(engine, settings, stop))
        while value("seckill_space_free_bytes", store="ledger", space="disk") is None:
            assert not keeper.done()
            await asyncio.sleep(0.05)
        stop.set()
        await keeper
