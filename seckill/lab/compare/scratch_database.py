"""Our own database for the time of a run."""

import secrets
from contextlib import AsyncExitStack
from pathlib import Path

from sqlalchemy import make_url

from seckill.errors import StartError


async def scratch_database(stack: AsyncExitStack, url: str, file: Path) -> str:
    """Our own database on that server, dropped at the end; a file when there is no server."""
    if not url.startswith("postgres"):
        return f"sqlite:///{file}"
    import asyncpg  # noqa: PLC0415 (only who has PostgreSQL has its driver)

    name = f"seckill_compare_{secrets.token_hex(6)}"
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
            raise StartError("The user of SECKILL_DATABASE_URL must be allowed to create databases.") from error
        finally:
            await connection.close()

    await execute(f"CREATE DATABASE {name}")
    stack.push_async_callback(execute, f"DROP DATABASE {name} WITH (FORCE)")
    return address.set(drivername="postgresql", database=name).render_as_string(hide_password=False)
