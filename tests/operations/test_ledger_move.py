"""A ledger goes from SQLite to a server, on real ones, with everything in it."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import text

from seckill.backends.sql import move as move_module
from seckill.backends.sql.database import Database
from seckill.backends.sql.database_choice import open_database
from seckill.bootstrap.engine import open_engine
from seckill.errors import LedgerUnavailable, StartError
from seckill.operations.ledger_move import move_ledger
from seckill.operations.presence import identify
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, make_node, settings_of_a_node
from tests.e2e.checks import check_audit, rows
from tests.fixtures.postgres import PostgresServer, fresh_database


def quietly(*_: object) -> None:
    pass


@pytest.fixture(params=["postgres", "mariadb"])
def target(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_database"))


@dataclass
class Old:
    settings: Settings
    sale: dict[str, Any]
    orders: dict[str, str]  # by buyer
    webhooks: list[str]

    async def move(self, target: str, tell: Any = quietly) -> dict[str, int]:
        return await move_ledger(self.settings.database_url, target, "", tell)


@pytest.fixture
async def old(redis_url: str, sqlite_database: str, monkeypatch: pytest.MonkeyPatch) -> Old:
    """Orders in several states, one of which is still queued, and something in most of the tables."""
    monkeypatch.setattr(move_module, "BATCH_ROWS", 2)  # so that every table takes more than one
    settings = settings_of_a_node(redis_url, sqlite_database)
    async with open_engine(settings) as engine:
        node = await make_node(settings, engine)
        invited = await node.create(title="只给会员 🎁", audience={"list": True})
        await node.http.put(f"/v1/admin/sales/{invited['id']}/audience", content="zoé\n李雷\n", headers=_of("text/csv"))
        sale = await node.create(units=8, limit_per_buyer=2, metadata={"sku": "é\\'\"\n"})
        await node.refresh()
        orders = {}
        for user in ("ann", "bob", "cid", "dan"):
            made = await node.buy(sale, user, key=f"key of {user}", metadata={"note": f"für {user} 🙂"})
            orders[user] = made.json()["order_id"]
            await node.work() if user != "dan" else None
        await _act(node, orders["bob"], "pay", "bob")
        await _act(node, orders["cid"], "cancel", "cid")
        hooks = []
        for n in range(3):
            body = {"url": f"https://shop.example/{n}", "types": ["order.paid"]}
            hooks.append((await node.http.post("/v1/admin/webhooks", json=body, headers=OPERATOR)).json()["id"])
        # The last number was given out and is gone: it must not be given out again.
        assert (await node.http.delete(f"/v1/admin/webhooks/{hooks[-1]}", headers=OPERATOR)).status_code == 204
        await node.http.get("/v1/admin/events", headers=OPERATOR)
        await node.http.aclose()
    return Old(settings, sale, orders, hooks)


async def execute(url: str, *statements: str) -> None:
    target = open_database(url)
    async with target.writers.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))
    await target.close()


def _of(kind: str) -> dict[str, str]:
    return OPERATOR | {"Content-Type": kind}


async def _act(node: Node, order_id: str, verb: str, user: str) -> None:
    response = await node.http.post(f"/v1/orders/{order_id}/{verb}", headers=buyer(user))
    assert response.status_code == 200, response.text


async def test_everything_arrives_and_the_sale_goes_on(old: Old, target: str) -> None:
    """Ids, keys and what is queued: the same press finds the same order, and the audit holds."""
    told: list[tuple[str, int, int]] = []
    counts = await old.move(target, lambda *progress: told.append(progress))
    assert ("orders", 2, 3) in told
    assert counts["orders"] == 3
    assert min(counts[table] for table in ("sales", "rounds", "order_events", "feed", "payments", "webhooks")) > 0
    assert counts["audience_parts"] > 0
    settings = replace(old.settings, database_url=target)
    async with open_engine(settings) as engine:
        node = await make_node(settings, engine)
        for user, order_id in old.orders.items():
            again = await node.buy(old.sale, user, key=f"key of {user}", metadata={"note": f"für {user} 🙂"})
            assert (again.status_code, again.json()["order_id"]) == (202, order_id), again.text
        await node.work()
        (dan,) = await rows(target, "SELECT state, metadata FROM orders WHERE user_id = 'dan'")
        assert (dan.state, "für dan 🙂" in dan.metadata) == ("unpaid", True)
        fresh = await node.http.post(
            "/v1/admin/webhooks", json={"url": "https://shop.example/9", "types": ["order.paid"]}, headers=OPERATOR
        )
        assert fresh.json()["id"] not in old.webhooks
        await node.buy(await node.create(units=1), "eve")
        await node.work()
        await check_audit(engine)
        await node.http.aclose()
    with pytest.raises(StartError, match="This ledger was moved to"):
        async with open_engine(old.settings):
            pass


async def test_a_move_that_was_interrupted_is_run_again(old: Old, target: str) -> None:
    def pull_the_plug(table: str, done: int, total: int) -> None:
        if table == "order_events":
            raise ConnectionResetError

    with pytest.raises(LedgerUnavailable):
        await old.move(target, pull_the_plug)
    settings = replace(old.settings, database_url=target)
    with pytest.raises(StartError, match="This ledger is not complete"):
        async with open_engine(settings):
            pass
    async with open_engine(old.settings) as engine:  # nothing has happened to the old one
        assert await engine.ledger.sales()
    assert (await old.move(target))["orders"] == 3
    async with open_engine(settings) as engine:
        await check_audit(engine)


async def test_what_has_not_arrived_as_it_was_is_noticed(
    old: Old, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = move_module._contents

    async def after_a_change(database: Database, table: Any) -> Any:
        async with database.writers.begin() as connection:
            await connection.execute(text("UPDATE orders SET user_id = 'mallory' WHERE user_id = 'ann'"))
        return await contents(database, table)

    monkeypatch.setattr(move_module, "_contents", after_a_change)
    with pytest.raises(StartError, match="orders has not arrived as it was"):
        await old.move(postgres_database)
    async with open_engine(old.settings) as engine:
        assert await engine.ledger.sales()


async def test_a_database_with_rows_is_refused_and_left_alone(old: Old, postgres_database: str) -> None:
    settings = replace(old.settings, database_url=postgres_database)
    await execute(postgres_database, "INSERT INTO outbox VALUES (7, 'release', 1, 1, 1, '{}', 1, 1)")
    with pytest.raises(StartError, match="The target has rows in outbox: name an empty database"):
        await old.move(settings.database_url)
    assert len(await rows(postgres_database, "SELECT * FROM outbox")) == 1


async def test_a_database_of_an_earlier_version_is_not_even_migrated(old: Old, postgres_server: PostgresServer) -> None:
    """Such a ledger belongs to an operator who may be running that version."""
    with fresh_database(postgres_server, "template0") as target:
        await execute(target, "CREATE TABLE outbox (id bigint)", "INSERT INTO outbox VALUES (7)")
        with pytest.raises(StartError, match="The target has rows in outbox: name an empty database"):
            await old.move(target)
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        assert [name for (name,) in await rows(target, tables)] == ["outbox"]
        await execute(target, "DROP TABLE outbox")
        assert (await old.move(target))["orders"] == 3


async def test_nothing_is_moved_from_under_a_running_role(old: Old, postgres_database: str) -> None:
    async with open_engine(old.settings) as engine:
        await engine.board.post(identify("worker"))
    with pytest.raises(StartError, match="is running: stop every role first"):
        await move_ledger(old.settings.database_url, postgres_database, old.settings.redis_url, quietly)
