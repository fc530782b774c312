"""Examines the database, beyond the checks of every start."""

import time
from collections.abc import Awaitable, Callable

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.disk_space import disk_space
from seckill.backends.sql.database_choice import open_database
from seckill.backends.sql.transactions import edge
from seckill.operations.doctor.certificate import check_certificate
from seckill.operations.doctor.clock_skew import check_clock
from seckill.operations.doctor.disk import note_disk
from seckill.operations.doctor.examination import Health

WITHIN_S = 10.0
_OWNS_TABLES = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'orders'::regclass"


async def examine_database(url: str, *, rights: bool = True) -> Health:
    """`rights`: also tries out what the account may do, which MySQL and MariaDB do not reveal in any other way."""
    database = open_database(url)
    try:
        async with edge(database, WITHIN_S), database.writers.connect() as connection:
            examine = _EXAMINERS[connection.dialect.name]
            health = await examine(connection)
            if rights and connection.dialect.name == "mysql":
                await _check_grants(connection, health)
            before_ms = time.time_ns() // 1_000_000
            now_ms = (await connection.execute(select(database.now_ms))).scalar_one()
            check_clock(health, "the database", now_ms, before_ms, time.time_ns() // 1_000_000)
            driver = (await connection.get_raw_connection()).driver_connection
            channel = getattr(driver, "_transport", None) or getattr(driver, "_writer", None)  # asyncpg's, aiomysql's
            check_certificate(health, "the database", channel)
            if database.folder is not None and (disk := await disk_space(database.folder)) is not None:
                note_disk(health, "the database", disk)
            await connection.rollback()
    finally:
        await database.close()
    return health


async def _value(connection: AsyncConnection, sql: str) -> str:
    return str((await connection.execute(text(sql))).scalar_one())


async def _sqlite(connection: AsyncConnection) -> Health:
    health = Health(f"SQLite {await _value(connection, 'SELECT sqlite_version()')}")
    health.advice.append(
        "SQLite is for one machine: for several, or for copies of your data elsewhere, use PostgreSQL or MySQL."
    )
    return health


async def _postgres(connection: AsyncConnection) -> Health:
    version = (await _value(connection, "SHOW server_version")).split()[0]
    health = Health(f"PostgreSQL {version}, {await _replicas(connection)}")
    if await _value(connection, "SHOW full_page_writes") == "off":
        health.mend.append("PostgreSQL runs with full_page_writes = off, so a power cut can spoil pages: set it to on.")
    default = await _value(connection, "SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'")
    if default == "off":
        health.advice.append(
            "synchronous_commit is off by default on this server; seckill switches it on for itself, others do not."
        )
    if await _value(connection, "SELECT pg_is_in_recovery()") == "True":
        health.mend.append("PostgreSQL is a read-only standby: point SECKILL_DATABASE_URL at the primary.")
    for right, sentence in (
        ("has_schema_privilege(current_schema(), 'CREATE')", "create tables, which `seckill migrate` has to"),
        ("has_table_privilege('orders', 'SELECT')", "read orders"),
        ("has_table_privilege('orders', 'INSERT')", "insert into orders"),
        ("has_table_privilege('orders', 'UPDATE')", "update orders"),
    ):
        if await _value(connection, f"SELECT {right}") != "True":
            health.mend.append(f"The user of SECKILL_DATABASE_URL may not {sentence}: GRANT it.")
    if await _value(connection, _OWNS_TABLES) != "True":
        health.mend.append(
            "The user of SECKILL_DATABASE_URL does not own the tables, so `seckill migrate` may not change them: GRANT "
            "it the role of their owner."
        )
    return health


async def _replicas(connection: AsyncConnection) -> str:
    names = await _value(connection, "SHOW synchronous_standby_names")
    return f"synchronous standbys: {names}" if names else "no synchronous standby"


async def _mysql(connection: AsyncConnection) -> Health:
    version = await _value(connection, "SELECT VERSION()")
    product = "MariaDB" if "mariadb" in version.lower() else "MySQL"
    health = Health(f"{product} {version.split('-')[0]}")
    if await _value(connection, "SELECT @@innodb_doublewrite") in ("0", "OFF"):
        health.mend.append(f"{product} runs with innodb_doublewrite off, so a power cut can spoil pages: set it to ON.")
    if await _value(connection, "SELECT @@log_bin") == "1":
        if await _value(connection, "SELECT @@sync_binlog") != "1":
            health.advice.append("sync_binlog is not 1, so after a power cut replicas may miss orders: set it to 1.")
        if await _value(connection, "SELECT @@binlog_format") == "STATEMENT":
            health.mend.append(f"{product} has binlog_format = STATEMENT, which refuses our writes: set it to ROW.")
    if await _value(connection, "SELECT @@read_only") == "1":
        health.mend.append(f"{product} is read-only, a replica: point SECKILL_DATABASE_URL at the primary.")
    if "STRICT" not in await _value(connection, "SELECT @@GLOBAL.sql_mode"):
        health.advice.append("sql_mode is not strict by default; seckill makes it so for itself, others do not.")
    return health


async def _check_grants(connection: AsyncConnection, health: Health) -> None:
    """Tries the rights out, because reading them (roles, wildcards) would be too complicated."""
    try:
        await connection.execute(text("CREATE TABLE seckill_doctor (id INTEGER)"))
        await connection.execute(text("DROP TABLE seckill_doctor"))
    except Exception:  # whatever the reason, `seckill migrate` could not do it either
        health.mend.append(
            "The user of SECKILL_DATABASE_URL may not create and drop tables, which `seckill migrate` has to: GRANT it."
        )
    try:
        await connection.execute(text("INSERT INTO orders SELECT * FROM orders WHERE FALSE"))
        await connection.execute(text("UPDATE orders SET state = state WHERE FALSE"))
    except Exception:  # as above
        health.mend.append("The user of SECKILL_DATABASE_URL may not insert and update orders: GRANT it.")


_EXAMINERS: dict[str, Callable[[AsyncConnection], Awaitable[Health]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "mysql": _mysql,
}
