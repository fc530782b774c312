"""deploy/valkey.acl: a user that may do what seckill does, and nothing else."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from seckill.backends.redis.command_rights import NEEDED
from seckill.backends.redis.gate import RedisGate, connect
from seckill.bootstrap.engine import open_engine
from seckill.errors import StartError
from seckill.local.valkey import EmbeddedValkey
from seckill.operations.doctor.gate import examine_gate
from tests.api.conftest import OPERATOR, buyer, keeping, make_node, settings_of_a_node
from tests.fixtures.valkey import valkey_program
from tests.patience import PATIENCE_S

FILE = Path(__file__).parents[2] / "deploy" / "valkey.acl"
_, NAME, *RULES = FILE.read_text().split()
RIGHTS = {rule.removeprefix("+") for rule in RULES if rule.startswith("+")}
CHECKED = {str(command[0]).replace(" ", "|").lower() for command in NEEDED} | {"multi", "exec", "discard"}
# A start does not try these. Every start misses the first ones, and one on a cluster or with replicas the others.
OTHERS = {"subscribe", "unsubscribe", "hello", "config|get"}
REPLICATED = {"wait", "cluster|slots", "cluster|nodes"}


@pytest.fixture
async def admin(redis_backend_url: str) -> AsyncIterator[Any]:
    """An admin's connection, to Valkey or to Redis 7; the user is deleted in the end."""
    client: Any = redis.asyncio.Redis.from_url(redis_backend_url)
    await client.flushall()
    await client.execute_command("ACL", "LOG", "RESET")
    yield client
    await client.execute_command("ACL", "DELUSER", NAME)
    await client.aclose()


def as_user(url: str) -> str:
    return url.replace("unix://", f"unix://{NAME}:PASSWORD@")


async def denied(admin: Any) -> set[str]:
    """Returns everything that the server has refused since the test began."""
    return {entry["object"] for entry in await admin.acl_log()}


async def sell(redis_url: str, database_url: str) -> None:
    """One of everything: sell, write, pay, cancel, give back and sell again, forget and rebuild, audit, look."""
    settings = settings_of_a_node(redis_url, database_url)
    async with open_engine(settings) as engine:
        node = await make_node(settings, engine)
        async with node.api.running(), keeping(settings, engine):
            sale = await node.create(units=4, lanes=2)
            orders = {
                user: (await node.buy(sale, user, user)).json()["order_id"] for user in ("ann", "bob", "cat", "dan")
            }
            await node.work()
            await node.worker.take_over()
            for user, verb in (("ann", "pay"), ("bob", "cancel")):
                done = await node.http.post(f"/v1/orders/{orders[user]}/{verb}", headers=buyer(user))
                assert done.status_code == 200, done.text
            async with asyncio.timeout(PATIENCE_S):
                while (await node.buy(sale, "eve")).status_code != 202:
                    await node.refresh()
            await node.work()
            custody = (await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
            assert (custody["sold"], custody["available"]) == (4, 0)
            assert engine.auditor is not None
            assert not (await engine.auditor.read(full=True)).reasons()
            assert await engine.board.reports() is not None
        await node.http.aclose()
    await examine_gate(settings.redis_url, "fast")


async def test_a_user_with_these_rights_sells(admin: Any, redis_backend_url: str, sqlite_database: str) -> None:
    await admin.execute_command("ACL", "SETUSER", NAME, *RULES)
    await sell(as_user(redis_backend_url), sqlite_database)
    # `seckill doctor` tries whether it may do the first two, to say so. The others are the library telling its name,
    # which Redis knows since 7.2: a file with it would end an older server.
    assert await denied(admin) <= {"flushall", "config|set", "client|setinfo", "client"}


async def test_nothing_else_is_allowed(admin: Any) -> None:
    assert RIGHTS == CHECKED | OTHERS | REPLICATED
    await admin.execute_command("ACL", "SETUSER", NAME, *RULES)
    told = await admin.acl_getuser(NAME)
    assert (told["keys"], told["channels"]) in (("~seckill:*", "&seckill:*"), (["~seckill:*"], ["&seckill:*"]))
    for command in (("FLUSHALL",), ("KEYS", "*"), ("CONFIG", "SET", "maxmemory", "1"), ("GET", "another")):
        assert "permission" in str(await admin.execute_command("ACL", "DRYRUN", NAME, *command)), command


@pytest.mark.parametrize("right", sorted(OTHERS - {"unsubscribe", "hello"}))
@pytest.mark.parametrize("redis_backend_url", ["valkey"], indirect=True)
async def test_without_one_of_the_others_something_is_missed(
    admin: Any, redis_backend_url: str, sqlite_database: str, right: str
) -> None:
    """A start tries those that are checked, and names what is missing; these show in the server's own list."""
    await admin.execute_command("ACL", "SETUSER", NAME, *RULES, f"-{right}")
    settings = settings_of_a_node(as_user(redis_backend_url), sqlite_database)
    async with open_engine(settings, audits=False) as engine:
        node = await make_node(settings, engine)
        async with node.api.running(), asyncio.timeout(PATIENCE_S):
            while right not in await denied(admin):
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("redis_backend_url", ["valkey"], indirect=True)
async def test_each_right_that_is_missing_is_named_at_the_start(admin: Any, redis_backend_url: str) -> None:
    gate = RedisGate(as_user(redis_backend_url), timeout_s=PATIENCE_S, backlog_max=10)
    for right in sorted(CHECKED):
        await admin.execute_command("ACL", "SETUSER", NAME, *RULES, f"-{right}")
        with pytest.raises(StartError, match=named(right)):
            await gate.check("fast")
    await gate.close()


def named(right: str) -> str:
    """INFO is asked for before all others are tried."""
    return (
        f"may not run {right.replace('|', ' ').upper()} on seckill's keys|no permissions to run the '{right}' command"
    )


async def test_the_server_reads_the_file() -> None:
    """It reads it as `aclfile`, in which every line is a user: a line that begins otherwise ends the server."""
    with tempfile.TemporaryDirectory(prefix="sk") as folder:
        server = EmbeddedValkey(
            Path(folder), durability="fast", program=valkey_program(), options={"aclfile": str(FILE)}
        )
        await server.start()
        try:
            await server.ready()
            client: Any = connect(server.url)
            assert NAME in await client.acl_users()
            await client.aclose()
        finally:
            await server.stop()
