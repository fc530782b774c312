import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from sqlalchemy import event, make_url, text
from sqlalchemy.exc import DBAPIError

from seckill.backends.sql import SqlLedger, open_ledger, postgres
from seckill.backends.sql import ledger as sql
from seckill.backends.sql.database import ErrorMeaning
from seckill.backends.sql.migration import migrate
from seckill.backends.sql.transactions import LedgerCollided, edge
from seckill.errors import LedgerRefused, LedgerUnavailable, LedgerUnsuitable, StartError
from seckill.lab.servers.proxy import Proxy, Trouble
from tests.backends.sql.looking import counts, rows, write
from tests.backends.sql.making import admission, draft
from tests.backends.sql.test_races import try_to_record
from tests.fixtures.postgres import PostgresServer, running_postgres
from tests.patience import PATIENCE_S


@pytest.fixture
async def ledger(own_postgres_database: str) -> AsyncIterator[SqlLedger]:
    opened = open_ledger(own_postgres_database)
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server to freeze, without harm to other tests."""
    with running_postgres() as server:
        yield server


@pytest.fixture
async def own_ledger(own_server: PostgresServer) -> AsyncIterator[SqlLedger]:
    url = own_server.url("postgres")
    await migrate(url)
    opened = open_ledger(url)
    yield opened
    await opened.close()


@contextlib.contextmanager
def frozen(server: PostgresServer) -> Iterator[None]:
    """The ledger is impatient only as long as nothing could answer: on a busy machine a second is soon over."""
    with pytest.MonkeyPatch.context() as patch, server.frozen():
        patch.setattr("seckill.backends.sql.transactions.WRITE_WITHIN_S", 1.0)
        patch.setattr("seckill.backends.sql.transactions.READ_WITHIN_S", 1.0)
        patch.setattr(sql, "PING_WITHIN_S", 0.5)
        yield


async def test_a_server_that_may_lose_what_it_has_committed_is_not_written_to(
    own_server: PostgresServer, own_ledger: SqlLedger
) -> None:
    """If it is told so while it is in use, that holds for each new connection."""
    sale = await own_ledger.create_sale(draft(units=10), lane=0)
    try:
        own_server.execute("ALTER SYSTEM SET fsync = off")
        own_server.execute("SELECT pg_reload_conf()")
        async with asyncio.timeout(PATIENCE_S):
            while await rows(own_ledger, text("SHOW fsync")) != [("off",)]:
                await asyncio.sleep(0.01)
        await own_ledger.database.writers.dispose()
        with pytest.raises(LedgerUnsuitable, match="fsync = off"):
            await own_ledger.record([admission(sale.round, 1)])
        with pytest.raises(StartError, match="set it to on"):
            await migrate(own_server.url("postgres"))
    finally:
        own_server.execute("ALTER SYSTEM RESET fsync")
        own_server.execute("SELECT pg_reload_conf()")
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with contextlib.suppress(LedgerUnsuitable):
                assert (await own_ledger.record([admission(sale.round, 1)])).new == 1
                break


async def test_settings_of_the_connections(ledger: SqlLedger) -> None:
    for setting, value in {
        "application_name": "seckill",
        "jit": "off",
        "transaction_isolation": "read committed",
        "statement_timeout": "30s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "10s",
        "synchronous_commit": "on",
    }.items():
        assert [(value,)] == await rows(ledger, text(f"SHOW {setting}"))


@pytest.mark.parametrize(("default", "used"), [("off", "on"), ("remote_apply", "remote_apply")])
async def test_commits_are_on_the_disk_whatever_the_default(
    ledger: SqlLedger, own_postgres_database: str, default: str, used: str
) -> None:
    name = own_postgres_database.rsplit("/", 1)[1]
    await write(ledger, f"ALTER DATABASE {name} SET synchronous_commit = {default}")
    later = open_ledger(own_postgres_database)
    assert [(used,)] == await rows(later, text("SHOW synchronous_commit"))
    await later.close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_what_a_transaction_sees_is_the_same_whatever_the_default(own_postgres_database: str, level: str) -> None:
    """Two workers and a crowd. With the snapshots of these levels orders are refused because others were written."""
    connection = await asyncpg.connect(own_postgres_database)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    await connection.close()
    ledgers = [open_ledger(own_postgres_database) for _ in range(2)]
    sale = await ledgers[0].create_sale(draft(units=20), lane=0)
    new = await asyncio.gather(
        *[try_to_record(ledgers[counter % 2], admission(sale.round, counter)) for counter in range(1, 41)]
    )
    assert sum(new) == 20
    assert await counts(ledgers[0], sale.round.id) == (20, 20, 20)
    for each in ledgers:
        await each.close()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_cannot_keep_every_name(postgres_server: PostgresServer, encoding: str) -> None:
    name = f"as_{encoding.lower()}"
    postgres_server.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    try:
        if encoding == "LATIN1":
            with pytest.raises(StartError, match="keeps texts as LATIN1"):
                await migrate(postgres_server.url(name))
            return
        await migrate(postgres_server.url(name))
        ledger = open_ledger(postgres_server.url(name))
        sale = await ledger.create_sale(draft(units=1), lane=0)
        assert (await ledger.record([admission(sale.round, 1, user="李")])).new == 1
        assert list(await ledger.holdings(sale.round.id, "", 10)) == ["李"]
        await ledger.close()
    finally:
        postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_frozen_server_is_given_up_and_works_afterwards(
    own_ledger: SqlLedger, own_server: PostgresServer
) -> None:
    sale = await own_ledger.create_sale(draft(), lane=0)
    one = admission(sale.round, 1)
    with frozen(own_server):
        for attempt in (own_ledger.record([one]), own_ledger.sales(), own_ledger.ping(), own_ledger.order(one.number)):
            with pytest.raises(LedgerUnavailable, match=r"did not answer within (1|0\.5) s"):
                await attempt
        crowd = [own_ledger.record([admission(sale.round, counter)]) for counter in range(2, 22)]
        answers = await asyncio.gather(*crowd, return_exceptions=True)
        assert {type(answer) for answer in answers} == {LedgerUnavailable}
    assert (await own_ledger.record([one])).states == {"unpaid": [int(one.number)]}
    assert await own_ledger.sale(sale.id) is not None
    assert own_ledger.database.writers.pool.checkedout() == 0  # type: ignore[attr-defined]


async def test_closing_does_not_wait_for_a_frozen_server(own_ledger: SqlLedger, own_server: PostgresServer) -> None:
    await asyncio.gather(*[own_ledger.sales() for _ in range(20)])
    with own_server.frozen():  # it goes on when the ledger is closed, not before
        async with asyncio.timeout(PATIENCE_S):
            await own_ledger.close()


@pytest.mark.parametrize("moment", ["before_cursor_execute", "commit", "rollback"])
async def test_frozen_in_the_middle_of_a_transaction(
    own_ledger: SqlLedger, own_server: PostgresServer, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the commit was carried out cannot be known: the same again finds out."""
    sale = await own_ledger.create_sale(draft(), lane=0)
    known, new = admission(sale.round, 1), admission(sale.round, 2)
    await own_ledger.record([known])
    # A number that is taken makes it a rollback.
    batch = [new, admission(sale.round, 1, user="mallory")] if moment == "rollback" else [new]
    engine = own_ledger.database.writers.sync_engine
    with contextlib.ExitStack() as stack:
        hits: list[None] = []

        def freeze(*_: object) -> None:
            if not hits:
                hits.append(stack.enter_context(own_server.frozen()))

        event.listen(engine, moment, freeze)
        for within_s in (1.0, 8.0, 64.0):  # a busy machine may need more than a second to get so far
            monkeypatch.setattr("seckill.backends.sql.transactions.WRITE_WITHIN_S", within_s)
            with pytest.raises(LedgerUnavailable):
                await own_ledger.record(batch)
            if hits:
                break
        event.remove(engine, moment, freeze)
    assert hits, "it was frozen in the middle"
    recorded = await own_ledger.record([new])
    assert recorded.new + recorded.repeated == 1
    assert await counts(own_ledger, sale.round.id) == (2, 2, 2)
    assert own_ledger.database.writers.pool.checkedout() == 0  # type: ignore[attr-defined]


async def test_connections_that_the_server_closed_are_replaced(ledger: SqlLedger, own_postgres_database: str) -> None:
    await asyncio.gather(*[ledger.sales() for _ in range(20)])
    other = await asyncpg.connect(own_postgres_database)
    await other.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await other.close()
    await asyncio.sleep(0.2)
    await asyncio.gather(*[ledger.sales() for _ in range(20)])


async def test_a_connection_that_breaks_at_work(ledger: SqlLedger) -> None:
    with pytest.raises(LedgerUnavailable) as raised:
        async with edge(ledger.database, 10), ledger.database.writers.begin() as connection:
            await connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert raised.value.__cause__ is not None
    await ledger.ping()


@contextlib.asynccontextmanager
async def without_goodbyes(server: PostgresServer) -> AsyncIterator[str]:
    """An address at which everything that the server says arrives, but not that it has hung up."""
    there = make_url(server.url("postgres"))
    assert there.host is not None
    assert there.port is not None
    async with Proxy((there.host, there.port)) as proxy:
        proxy.set_trouble(Trouble.NO_GOODBYE)
        yield there.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)


async def test_a_connection_that_the_server_ends_while_it_is_made(
    own_ledger: SqlLedger, own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away. It is no error of ours: a buyer is not told 500, and no loop logs a traceback."""
    execute = postgres._Connection.execute

    async def late(connection: asyncpg.Connection, *arguments: object) -> object:
        own_server.execute(f"SELECT pg_terminate_backend({connection.get_server_pid()}, 10000)")
        async with asyncio.timeout(PATIENCE_S):
            while True:  # until the driver has read why
                await asyncio.sleep(0.01)
                try:
                    await execute(connection, *arguments)
                except asyncpg.AdminShutdownError:
                    continue

    async with without_goodbyes(own_server) as url:
        ledger = open_ledger(url)
        await ledger.ping()
        await ledger.close()
        monkeypatch.setattr(postgres._Connection, "execute", late)
        ledger = open_ledger(url)
        with pytest.raises(LedgerUnavailable, match="another operation") as raised:
            await ledger.sales()
        assert raised.value.__cause__ is not None
        monkeypatch.undo()
        await ledger.sales()
        await ledger.close()


async def test_a_table_that_is_changed_while_it_is_in_use(ledger: SqlLedger, own_postgres_database: str) -> None:
    """Statements that were prepared before have to be prepared once more. That is no error of ours."""
    known = text("SELECT user_id FROM orders")
    async with ledger.database.readers.connect() as connection:
        await connection.execute(known)
        other = await asyncpg.connect(own_postgres_database)
        await other.execute("ALTER TABLE orders ALTER COLUMN user_id TYPE char(300)")
        await other.close()
        with pytest.raises(LedgerCollided, match="cached statement plan is invalid"):
            async with edge(ledger.database, PATIENCE_S):
                await connection.execute(known)
    async with edge(ledger.database, PATIENCE_S), ledger.database.readers.connect() as connection:
        await connection.execute(known)


# The first order once more, for another buyer, in the last round.
_ONE_MORE = (
    "INSERT INTO orders (id, round_id, sale_id, user_id, quantity, state, slot, request_id, epoch, price_cents, "
    "currency, created_ms, recorded_ms) SELECT id + 1, (SELECT max(id) FROM rounds), sale_id, 'eve', quantity, state, "
    "slot, request_id, epoch, price_cents, currency, created_ms, recorded_ms FROM orders"
)
_WAITING = text("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
_DELETE_LAST = "DELETE FROM rounds WHERE id = (SELECT max(id) FROM rounds)"


@pytest.mark.parametrize(
    ("first", "second", "left"), [(_ONE_MORE, _DELETE_LAST, (2, 2)), (_DELETE_LAST, _ONE_MORE, (1, 1))]
)
async def test_no_round_goes_while_an_order_of_it_is_written(
    ledger: SqlLedger, first: str, second: str, left: tuple[int, int]
) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, 1)])
    numbered = second.replace("(SELECT max(id) FROM rounds)", str(sale.round.id + 1))
    async with ledger.database.writers.begin() as connection:
        await connection.execute(text(first))
        later = asyncio.create_task(write(ledger, numbered))
        async with asyncio.timeout(PATIENCE_S):
            while not later.done() and not await rows(ledger, _WAITING):
                await asyncio.sleep(0.01)
    with pytest.raises(DBAPIError) as refused:
        await later
    assert ledger.database.verdict(refused.value) is ErrorMeaning.REFUSED
    [found] = await rows(ledger, text("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM rounds)"))
    assert tuple(found) == left


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_rounds_do_not_go_where_new_orders_cannot_be_seen(ledger: SqlLedger, level: str) -> None:
    """Even a round without orders: one may have come since the transaction began."""
    await ledger.create_sale(draft(), lane=0)
    async with ledger.database.writers.connect() as connection:
        await connection.execute(text(f"SET TRANSACTION ISOLATION LEVEL {level}"))
        with pytest.raises(DBAPIError, match="read committed"):
            await connection.execute(text(_DELETE_LAST))


async def test_rounds_are_not_truncated_away_from_their_orders(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, 1)])
    with pytest.raises(DBAPIError, match="rounds have orders"):
        await write(ledger, "TRUNCATE rounds CASCADE")
    await write(ledger, "TRUNCATE rounds, orders CASCADE")


async def test_a_standby_is_waited_for(ledger: SqlLedger, own_postgres_database: str) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    name = own_postgres_database.rsplit("/", 1)[1]
    await write(ledger, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    standby = open_ledger(own_postgres_database)
    with pytest.raises(LedgerUnavailable, match="read-only"):
        await standby.record([admission(sale.round, 1)])
    with pytest.raises(LedgerUnavailable, match="read-only"):
        await standby.try_writing()
    assert await standby.sale(sale.id) == sale
    await standby.close()


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        ("40001", LedgerUnavailable),  # serialization failure
        ("40P01", LedgerUnavailable),  # deadlock
        ("53100", LedgerUnavailable),  # disk full
        ("53300", LedgerUnavailable),  # too many connections
        ("57014", LedgerUnavailable),  # statement timeout
        ("57P03", LedgerUnavailable),  # starting up
        ("58030", LedgerUnavailable),  # input/output error
        ("22003", LedgerRefused),  # number out of range
        ("23514", LedgerRefused),  # check violation
    ],
)
async def test_error_codes_have_their_meaning(ledger: SqlLedger, code: str, meaning: type[Exception]) -> None:
    with pytest.raises(meaning, match="because"):
        async with edge(ledger.database, 10):
            await write(ledger, f"DO $$ BEGIN RAISE EXCEPTION 'because' USING ERRCODE = '{code}'; END $$")


async def test_what_nobody_expects_is_not_explained_away(ledger: SqlLedger) -> None:
    with pytest.raises(Exception, match="no_such_table") as raised:
        async with edge(ledger.database, 10):
            await write(ledger, "SELECT * FROM no_such_table")
    assert not isinstance(raised.value, LedgerUnavailable | LedgerRefused)
