"""Makes a database of our own for the time of a run."""

import secrets
from contextlib import AsyncExitStack
from pathlib import Path

from sqlalchemy import make_url

from seckill.errors import StartError

_MUST_CREATE = "The user of SECKILL_DATABASE_URL must be allowed to create databases."


async def scratch_database(stack: AsyncExitStack, url: str, file: Path) -> str:
    """Returns the address of a new database on that PostgreSQL or MariaDB, which is dropped at the end, or of a file if
    there is no server."""
    name = f"seckill_compare_{secrets.token_hex(6)}"
    if url.startswith("postgres"):
        return await _on_postgres(stack, url, name)
    if url.startswith(("mysql", "mariadb")):
        return await _on_mariadb(stack, url, name)
    return f"sqlite:///{file}"


async def _on_postgres(stack: AsyncExitStack, url: str, name: str) -> str:
    import asyncpg  # noqa: PLC0415 (only needed for PostgreSQL)

    address = make_url(url)
    maintenance = address.set(drivername="postgresql").render_as_string(hide_password=False)

    async def execute(statement: str) -> None:
        try:
            connection = await asyncpg.connect(maintenance, timeout=10)
        except (OSError, asyncpg.PostgresError) as error:
            raise StartError(
                f"PostgreSQL at SECKILL_DATABASE_URL cannot be used ({error}): mend that first."
            ) from error
        try:
            await connection.execute(statement)
        except asyncpg.InsufficientPrivilegeError as error:
            raise StartError(_MUST_CREATE) from error
        finally:
            await connection.close()

    await execute(f"CREATE DATABASE {name}")
    stack.push_async_callback(execute, f"DROP DATABASE {name} WITH (FORCE)")
    return address.set(drivername="postgresql", database=name).render_as_string(hide_password=False)


async def _on_mariadb(stack: AsyncExitStack, url: str, name: str) -> str:
    import aiomysql  # noqa: PLC0415 (only needed for MariaDB)
    import pymysql  # noqa: PLC0415

    address = make_url(url)

    async def execute(statement: str) -> None:
        try:
            connection = await aiomysql.connect(
                host=address.host,
                port=address.port or 3306,
                user=address.username,
                password=address.password or "",
                autocommit=True,
                connect_timeout=10,
            )
        except (OSError, pymysql.MySQLError) as error:
            raise StartError(f"MariaDB at SECKILL_DATABASE_URL cannot be used ({error}): mend that first.") from error
        try:
            async with connection.cursor() as cursor:
                await cursor.execute(statement)
        except pymysql.MySQLError as error:
            raise StartError(_MUST_CREATE) from error
        finally:
            connection.close()

    await execute(f"CREATE DATABASE {name}")
    stack.push_async_callback(execute, f"DROP DATABASE {name}")
    return address.set(drivername="mysql", database=name).render_as_string(hide_password=False)
