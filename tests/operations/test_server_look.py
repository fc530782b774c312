"""Operators are told about the servers that everything runs on."""

from dataclasses import replace

from seckill.backends.sql.database_choice import open_database
from seckill.lab.servers.ports import free_port
from seckill.operations.server_look import ServerLooks, ServerState
from seckill.settings import Settings


async def test_they_are_named_with_their_versions_and_without_their_passwords(redis_url: str, ledger_url: str) -> None:
    looks = await ServerLooks(Settings(redis_url=redis_url, database_url=ledger_url)).look()
    assert [look.part for look in looks] == ["gate", "ledger"]
    gate, ledger = looks
    assert gate.says.startswith(("Valkey ", "Redis "))
    assert ledger.says.startswith(("SQLite 3", "PostgreSQL 1", "MariaDB 1"))
    for look in looks:
        assert look.state in (ServerState.OK, ServerState.ADVICE)
        assert look.answered_ms is not None
        assert look.answered_ms > 0
        assert ":***@" in look.address or "@" not in look.address


async def test_who_only_looks_creates_nothing_in_the_database(ledger_url: str) -> None:
    """Trying out what the account may do is for `seckill doctor`, which an operator starts by hand."""
    asked: list[str] = []
    database = open_database(ledger_url)
    kind = type(database.writers.sync_engine.dialect)
    await database.close()
    execute = kind.do_execute

    def noted(self: object, cursor: object, statement: str, *rest: object, **more: object) -> None:
        asked.append(statement)
        execute(self, cursor, statement, *rest, **more)  # type: ignore[arg-type]

    kind.do_execute = noted  # type: ignore[method-assign]
    try:
        [look] = [
            look
            for look in await ServerLooks(Settings(redis_url="memory://", database_url=ledger_url)).look()
            if look.part == "ledger"
        ]
    finally:
        kind.do_execute = execute  # type: ignore[method-assign]
    assert look.state is not ServerState.AWAY
    assert asked, "nothing was asked"
    assert not [each for each in asked if each.split()[0].upper() in ("CREATE", "DROP", "INSERT", "UPDATE", "DELETE")]


async def test_one_that_is_away_is_told_beside_one_that_is_there(redis_url: str, sqlite_database: str) -> None:
    nowhere = f"redis://:secret-of-the-gate@127.0.0.1:{free_port()}/0"
    settings = Settings(redis_url=redis_url, database_url=sqlite_database)
    gate, ledger = await ServerLooks(replace(settings, redis_url=nowhere)).look()
    assert (gate.state, gate.answered_ms) == (ServerState.AWAY, None)
    assert "does not answer" in gate.says
    assert "secret-of-the-gate" not in f"{gate}"
    assert ledger.state is not ServerState.AWAY


async def test_what_is_not_there_is_not_told_of(sqlite_database: str) -> None:
    looks = await ServerLooks(Settings(redis_url="memory://", database_url=sqlite_database)).look()
    assert [look.part for look in looks] == ["ledger"]
