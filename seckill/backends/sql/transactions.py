"""Runs a transaction: limits its time, interprets the driver's errors, and repeats it when the database has undone
it."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import Database, ErrorMeaning
from seckill.errors import LedgerRefused, LedgerUnavailable, LedgerUnsuitable, SeckillError

WRITE_WITHIN_S = 15.0
READ_WITHIN_S = 5.0
# The pauses before repeating a transaction that collided with another one.
_PAUSES_S = (0.01, 0.05, 0.2)

T = TypeVar("T")


class LedgerCollided(LedgerUnavailable):
    """The database has undone the transaction because it and another one waited for each other."""


_MEANING: dict[ErrorMeaning, tuple[type[SeckillError], str]] = {
    ErrorMeaning.UNAVAILABLE: (LedgerUnavailable, "The database is away or busy, try again: {}"),
    ErrorMeaning.COLLIDED: (LedgerCollided, "Others were in the way in the database, try again: {}"),
    ErrorMeaning.REFUSED: (LedgerRefused, "The database refuses the data: {}"),
    ErrorMeaning.UNSUITABLE: (LedgerUnsuitable, "The database cannot be used, check its address and rights: {}"),
}


@asynccontextmanager
async def edge(database: Database, within_s: float) -> AsyncIterator[None]:
    """A frozen database neither answers nor hangs up, so all use of one is bounded in time."""
    try:
        async with asyncio.timeout(within_s):
            yield
    except TimeoutError as error:
        raise LedgerUnavailable(f"The database did not answer within {within_s:g} s, try again.") from error
    except SeckillError:
        raise
    except Exception as error:
        if (distrust := _distrust(error)) is not None:
            raise LedgerUnsuitable(
                f"The database's certificate is not believed ({distrust.verify_message}): name the authority that has "
                "signed it in the database address (PostgreSQL: sslrootcert=FILE; MariaDB and MySQL: ssl_ca=FILE)."
            ) from error
        verdict = ErrorMeaning.UNAVAILABLE if _is_lost(error) else database.verdict(error)
        if verdict is None:
            raise
        kind, sentence = _MEANING[verdict]
        raise kind(sentence.format(database.words(error))) from error


@asynccontextmanager
async def writing(database: Database) -> AsyncIterator[AsyncConnection]:
    """A transaction that is durable when the block is left."""
    async with edge(database, WRITE_WITHIN_S), database.writers.begin() as connection:
        yield connection


@asynccontextmanager
async def reading(database: Database) -> AsyncIterator[AsyncConnection]:
    async with edge(database, READ_WITHIN_S), database.readers.connect() as connection:
        yield connection


async def until_not_collided(attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Repeats an attempt while it collides. Each attempt is one transaction, and one that the database has undone has
    changed nothing."""
    for pause_s in _PAUSES_S:
        try:
            return await attempt()
        except LedgerCollided:
            await asyncio.sleep(pause_s * random.random())  # noqa: S311 (so that the two do not meet again)
    return await attempt()


def _is_lost(error: Exception) -> bool:
    """Whether a connection could not be made, or broke."""
    return isinstance(error, OSError) or (isinstance(error, DBAPIError) and error.connection_invalidated)


def _distrust(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Finds an untrusted certificate, which is not a passing trouble. Drivers only say that they could not connect; the
    cause is in the error behind theirs."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, ssl.SSLCertVerificationError):
        behind = behind.__cause__ or behind.__context__
    return behind
