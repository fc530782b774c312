"""The doctor's advice about databases."""

import time

import asyncpg
import pytest

from seckill.lab.servers.mariadb import EmbeddedMariaDB
from seckill.operations.doctor.database import examine_database
from tests.fixtures.postgres import PostgresServer


async def test_sound_databases_need_no_mending(ledger_url: str) -> None:
    health = await examine_database(ledger_url)
    assert health.says.startswith(("SQLite 3", "PostgreSQL 1", "MariaDB 1"))
    assert health.mend == []


async def test_the_clock_is_compared(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: real() - 10 * 1_000_000_000)
    [sentence] = (await examine_database(ledger_url)).mend
    assert "ahead of this machine's" in sentence


async def test_postgres_that_spoils_pages(postgres_database: str, postgres_server: PostgresServer) -> None:
    try:
        postgres_server.execute("ALTER SYSTEM SET full_page_writes = off")
        postgres_server.execute("SELECT pg_reload_conf()")
        for _ in range(100):
            if mend := (await examine_database(postgres_database)).mend:
                break
        [sentence] = mend
        assert "full_page_writes = off" in sentence
        assert sentence.endswith("set it to on.")
    finally:
        postgres_server.execute("ALTER SYSTEM RESET full_page_writes")
        postgres_server.execute("SELECT pg_reload_conf()")


async def test_postgres_that_commits_later(own_postgres_database: str, postgres_server: PostgresServer) -> None:
    postgres_server.execute(f"ALTER DATABASE {own_postgres_database.rsplit('/', 1)[1]} SET synchronous_commit = off")
    health = await examine_database(own_postgres_database)
    assert health.mend == []
    assert "synchronous_commit is off by default" in health.advice[0]


async def test_a_user_of_postgres_without_rights(own_postgres_database: str, postgres_server: PostgresServer) -> None:
    """And one who has a few: each that is missing is named."""
    login = own_postgres_database.split("//")[1].split("@")[0]
    limited = own_postgres_database.replace(login, "limited:pw")
    postgres_server.execute("CREATE USER limited PASSWORD 'pw'")
    try:
        named = " ".join((await examine_database(limited)).mend)
        for missing in ("may not create tables", "may not read orders", "may not insert", "does not own the tables"):
            assert missing in named
        some = "GRANT SELECT ON orders TO limited; GRANT CREATE ON SCHEMA public TO limited"
        await execute(own_postgres_database, some)
        named = " ".join((await examine_database(limited)).mend)
        assert "may not insert into orders" in named
        assert "may not update orders" in named
        assert "may not read orders" not in named
        assert "may not create tables" not in named
    finally:
        await execute(own_postgres_database, "DROP OWNED BY limited; DROP USER limited")


async def execute(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statements)
    await connection.close()


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [("read_only", "1", "0"), ("sql_mode", "''", "DEFAULT")],
)
async def test_mariadb_that_is_set_up_wrongly(
    mariadb_database: str, mariadb_server: EmbeddedMariaDB, setting: str, wrong: str, right: str
) -> None:
    await mariadb_server.execute(f"SET GLOBAL {setting} = {wrong}")
    try:
        health = await examine_database(mariadb_database)
    finally:
        await mariadb_server.execute(f"SET GLOBAL {setting} = {right}")
    said = health.advice if setting == "sql_mode" else health.mend
    assert [sentence for sentence in said if setting.replace("_only", "-only") in sentence]


async def test_a_user_of_mariadb_without_rights(mariadb_database: str, mariadb_server: EmbeddedMariaDB) -> None:
    name = mariadb_database.rsplit("/", 1)[1]
    await mariadb_server.execute("CREATE USER looking@'%' IDENTIFIED BY 'pw'", f"GRANT SELECT ON {name}.* TO looking")
    try:
        login = mariadb_database.split("//")[1].split("@")[0]
        mend = (await examine_database(mariadb_database.replace(login, "looking:pw"))).mend
        assert [sentence for sentence in mend if "may not create and drop tables" in sentence]
        assert [sentence for sentence in mend if "may not insert and update orders" in sentence]
    finally:
        await mariadb_server.execute("DROP USER looking@'%'")
