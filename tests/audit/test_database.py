"""A database that goes away while a connection is given back is away: the library does not wrap that error."""

from urllib.parse import urlsplit, urlunsplit

import pytest
from sqlalchemy import literal, select

from seckill.audit.database import ReadOnlyDatabase
from seckill.errors import LedgerUnavailable
from seckill.lab.servers.proxy import Proxy

BACK_TO = b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"


async def test_a_connection_that_breaks_when_it_is_given_back(mariadb_database: str) -> None:
    parts = urlsplit(mariadb_database)
    assert parts.hostname is not None
    assert parts.port is not None
    async with Proxy((parts.hostname, parts.port)) as proxy:
        login = parts.netloc.rpartition("@")[0]
        database = ReadOnlyDatabase(urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{proxy.port}")))
        await database.rows(select(literal(1)))
        proxy.lose_answer(BACK_TO)
        with pytest.raises(LedgerUnavailable):
            await database.rows(select(literal(1)))
        assert proxy.hits == 1
        assert len(await database.rows(select(literal(1)))) == 1, "the next one stands"
        await database.close()
