"""The doctor's advice about Valkey and Redis, and about the rights of a user there."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio
from redis.exceptions import NoPermissionError

from seckill.backends.redis.command_rights import NEEDED
from seckill.backends.redis.gate import RedisGate, connect
from seckill.bootstrap.engine import open_engine
from seckill.errors import StartError
from seckill.operations.doctor.clock_skew import check_clock
from seckill.operations.doctor.examination import Health
from seckill.operations.doctor.gate import examine_gate
from tests.api.conftest import make_node, settings_of_a_node
from tests.fixtures.valkey import OwnValkey
from tests.patience import PATIENCE_S

ALLOWED = sorted({f"+{str(command[0]).replace(' ', '|').lower()}" for command in NEEDED})


@pytest.fixture
async def admin(redis_backend_url: str) -> AsyncIterator[Any]:
    """An admin's connection, to Valkey or to Redis 7; users are deleted in the end."""
    client: Any = redis.asyncio.Redis.from_url(redis_backend_url)
    await client.flushall()
    yield client
    await client.execute_command("ACL", "DELUSER", "limited")
    await client.aclose()


def as_limited(url: str) -> str:
    return url.replace("unix://", "unix://limited:pw@")


async def allow(admin: Any, *rules: str) -> None:
    basics = ("~seckill:*", "&seckill:*", "+multi", "+exec", "+discard", "+subscribe", "+unsubscribe")
    rights = ("+hello", "+client", "+script|load", *basics, *ALLOWED, *rules)
    await admin.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">pw", *rights)


async def test_what_is_said_to_be_needed_is_enough(admin: Any, redis_backend_url: str, sqlite_database: str) -> None:
    """A user that may do nothing else: sell, write, pay, cancel, give back, look."""
    await allow(admin)
    limited = settings_of_a_node(as_limited(redis_backend_url), sqlite_database)
    async with open_engine(limited) as engine:
        node = await make_node(limited, engine)
        sale = await node.create(units=3)
        for user in ("ann", "bob"):
            assert (await node.buy(sale, user)).status_code == 202
        await node.work()
        await node.worker.take_over()
        assert engine.auditor is not None
        assert not (await engine.auditor.read(full=True)).reasons()
        await engine.board.reports()
        await engine.board.waiting([0, 1])
        await node.http.aclose()
    client = connect(limited.redis_url)
    with pytest.raises(NoPermissionError):
        await client.flushall()
    await client.aclose()


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (("-xadd", "-evalsha"), "may not run EVALSHA, XADD on seckill's keys"),
        (("-multi",), "may not run MULTI"),
        (("resetkeys", "~shop:*"), "may not run DEL, EVAL"),
    ],
)
async def test_a_user_without_rights_is_one_sentence(
    admin: Any, redis_backend_url: str, rules: tuple[str, ...], says: str
) -> None:
    await allow(admin, *rules)
    gate = RedisGate(as_limited(redis_backend_url), timeout_s=PATIENCE_S, backlog_max=10)
    with pytest.raises(StartError, match=says):
        await gate.check("fast")
    await gate.close()


async def test_to_try_the_rights_changes_nothing(admin: Any, redis_backend_url: str) -> None:
    gate = RedisGate(redis_backend_url, timeout_s=PATIENCE_S, backlog_max=10)
    await gate.check("fast")
    await gate.close()
    assert await admin.keys("*") == []


async def test_wrong_passwords_are_one_sentence(admin: Any, redis_backend_url: str) -> None:
    await allow(admin)
    gate = RedisGate(as_limited(redis_backend_url).replace(":pw@", ":no@"), timeout_s=PATIENCE_S, backlog_max=10)
    with pytest.raises(StartError, match="cannot be used") as refused:
        await gate.check("fast")
    assert "\n" not in str(refused.value)
    await gate.close()


async def test_it_knows_the_server_and_what_is_dangerous(admin: Any, redis_backend_url: str) -> None:
    health = await examine_gate(redis_backend_url, "fast")
    product = "Valkey 9" if "valkey_version" in await admin.info() else "Redis 7"
    assert health.says.startswith(product)
    assert "append-only file with appendfsync everysec, no replica" in health.says
    assert health.mend == []
    assert [advice for advice in health.advice if "may run FLUSHALL and CONFIG SET" in advice]
    assert (await examine_gate(redis_backend_url, "fast", embedded=True)).advice == [], "no one else can reach it"
    await allow(admin, "+config|get")
    assert (await examine_gate(as_limited(redis_backend_url), "fast")).advice == []
    await allow(admin)
    [advice] = (await examine_gate(as_limited(redis_backend_url), "fast")).advice
    assert advice.startswith("CONFIG GET is not allowed")


async def test_servers_that_keep_nothing_or_are_full_or_replicate(own_valkey: OwnValkey) -> None:
    server = await own_valkey(durability="fast")
    client: Any = redis.asyncio.Redis.from_url(server.url)
    await client.config_set("appendonly", "no")
    await client.config_set("maxmemory", (await client.info("memory"))["used_memory"] + 100_000)
    health = await examine_gate(server.url, "fast")
    assert "no append-only file" in health.says
    assert [advice for advice in health.advice if "set appendonly yes" in advice]
    assert [advice for advice in health.advice if "of maxmemory is in use" in advice]
    await client.config_set("maxmemory-policy", "allkeys-lru")
    gate = RedisGate(server.url, timeout_s=PATIENCE_S, backlog_max=10)
    with pytest.raises(StartError, match="set maxmemory-policy to noeviction"):
        await gate.check("fast")
    await gate.close()
    await client.aclose()


@pytest.mark.parametrize(
    ("there_ms", "says"), [(7_500, "2.5 s ahead"), (2_499, "2.5 s behind"), (7_000, None), (3_000, None)]
)
def test_clocks_that_are_apart(there_ms: int, says: str | None) -> None:
    health = Health("")
    check_clock(health, "the database", there_ms, 5_000, 5_000)
    assert [says in sentence for sentence in health.mend if says] == ([True] if says else [])
    assert len(health.mend) == (says is not None)


async def test_the_clock_of_a_real_server_is_compared(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: real() + 10 * 1_000_000_000)
    health = await examine_gate(redis_url, "fast")
    assert [sentence for sentence in health.mend if "behind this machine's" in sentence]
