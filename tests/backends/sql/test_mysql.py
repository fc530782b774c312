"""The particulars of MySQL, tried on MariaDB."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pymysql
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from seckill.backends.sql import SqlLedger, mysql, open_ledger, uncancelled_calls
from seckill.backends.sql import ledger as sql
from seckill.backends.sql.database import ErrorMeaning
from seckill.backends.sql.migration import migrate
from seckill.backends.sql.tables import metadata
from seckill.backends.sql.transactions import LedgerCollided, edge
from seckill.errors import LedgerRefused, LedgerUnavailable, LedgerUnsuitable, StartError
from seckill.lab.servers.mariadb import EmbeddedMariaDB
from tests.backends.sql.looking import counts, order_rows, rows, write
from tests.backends.sql.making import admission, draft
from tests.fixtures.mariadb import running_mariadb
from tests.patience import PATIENCE_S


@pytest.fixture
async def ledger(mariadb_database: str) -> AsyncIterator[SqlLedger]:
    opened = open_ledger(mariadb_database)
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[EmbeddedMariaDB]:
    """A server to freeze and kill, without harm to other tests."""
    with running_mariadb() as server:
        yield server


@pytest.fixture
async def own_ledger(own_server: EmbeddedMariaDB) -> AsyncIterator[SqlLedger]:
    """Empty: orders of the test before may have the same numbers."""
    await own_server.execute("CREATE DATABASE own")
    await migrate(own_server.url("own"))
    opened = open_ledger(own_server.url("own"))
    yield opened
    await opened.close()
    await own_server.execute("DROP DATABASE own")


async def test_settings_of_the_connections(ledger: SqlLedger) -> None:
    wanted = {
        "time_zone": "+00:00",
        "innodb_lock_wait_timeout": 10,
        "idle_transaction_timeout": 10,
        "max_statement_time": 30,
        "wait_timeout": mysql.IDLE_S,
        "character_set_client": "utf8mb4",
    }
    names = ", ".join(f"@@{name}" for name in wanted)
    assert [tuple(row) for row in await rows(ledger, text(f"SELECT {names}"))] == [tuple(wanted.values())]
    [(mode,)] = await rows(ledger, text("SELECT @@sql_mode"))
    assert "STRICT_ALL_TABLES" in mode
    async with ledger.database.writers.connect() as connection:
        assert (await connection.execute(text("SELECT @@tx_isolation"))).scalar() == "READ-COMMITTED"


async def test_tables_are_the_same_whatever_the_servers_defaults(ledger: SqlLedger) -> None:
    assert await rows(ledger, text("SELECT @@collation_server")) == [("latin1_swedish_ci",)], "of this server"
    facts = "SELECT DISTINCT engine, table_collation FROM information_schema.tables WHERE table_schema = DATABASE()"
    assert await rows(ledger, text(facts)) == [("InnoDB", "utf8mb4_nopad_bin")]


async def test_buyers_whose_names_look_alike_are_different(ledger: SqlLedger) -> None:
    """To MySQL's usual collations these are one buyer, who may buy once."""
    users = ["a", "A", "á", "a ", "a\u00a0", "ａ", "🎫", "ss", "ß"]
    sale = await ledger.create_sale(draft(units=20), lane=0)
    made = [admission(sale.round, counter, user=user) for counter, user in enumerate(users, 1)]
    assert (await ledger.record(made)).new == len(users)
    assert [row.user_id for row in await order_rows(ledger)] == users
    for user in users:
        assert [order.user for order in await ledger.orders_of(user, None, 10)] == [user]
    assert set(await ledger.holdings(sale.round.id, "", 100)) == set(users)


async def test_only_the_key_is_passed_over(ledger: SqlLedger) -> None:
    """Known numbers, a new one among them, and one that another constraint stands against."""
    sale = await ledger.create_sale(draft(), lane=0)
    known, new = admission(sale.round, 1, user="ann"), admission(sale.round, 2, user="bob")
    await ledger.record([known])
    recorded = await ledger.record([known, new])
    assert (recorded.new, recorded.repeated) == (1, 1)
    with pytest.raises(LedgerRefused, match="uq_orders_round_id_user_id_active_slot"):
        await ledger.record([known, admission(sale.round, 3, user="ann")])
    assert await counts(ledger, sale.round.id) == (2, 2, 2)


async def test_a_number_that_another_worker_commits_while_we_insert_it(
    ledger: SqlLedger, mariadb_database: str
) -> None:
    """We wait for it, then it is there, and what else the batch has is written all the same."""
    sale = await ledger.create_sale(draft(), lane=0)
    both, ours = admission(sale.round, 1), admission(sale.round, 2)
    other = open_ledger(mariadb_database)
    async with other.database.writers.begin() as connection:
        await other._recording.run(connection, [both])
        recording = asyncio.create_task(ledger.record([both, ours]))
        await until_somebody_waits(other)
    recorded = await recording
    assert (recorded.new, recorded.repeated) == (1, 1)
    assert await counts(ledger, sale.round.id) == (2, 2, 2)
    await other.close()


async def until_somebody_waits(ledger: SqlLedger) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await rows(ledger, text("SELECT count(*) FROM information_schema.innodb_lock_waits")) == [(0,)]:
            await asyncio.sleep(0.02)


async def crossing(ledger: SqlLedger, first: int, second: int, met: asyncio.Barrier) -> None:
    async with edge(ledger.database, 10), ledger.database.writers.begin() as connection:
        for place, number in enumerate((first, second)):
            await connection.execute(text("UPDATE rounds SET lane = lane + 1 WHERE id = :id"), {"id": number})
            if place == 0 and not met.broken:
                await met.wait()


class Crossing:
    """Two who lock the same two rows the other way round, with `to_the_end` or without."""

    def __init__(self, ledger: SqlLedger) -> None:
        self.tasks = uncancelled_calls.Calls()
        self.attempts = 0
        self._ledger = ledger
        self._met = asyncio.Barrier(2)

    async def cross(self, first: int, second: int) -> None:
        self.attempts += 1
        if self.attempts > 2:  # the loser comes again, alone
            await self._met.abort()
        await crossing(self._ledger, first, second, self._met)

    carried = uncancelled_calls.to_the_end(cross)


async def test_the_loser_of_a_deadlock_comes_again(ledger: SqlLedger) -> None:
    one, two = [(await ledger.create_sale(draft(), lane=0)).round.id for _ in range(2)]
    control = Crossing(ledger)
    results = await asyncio.gather(control.cross(one, two), control.cross(two, one), return_exceptions=True)
    assert [type(result) for result in results if result] == [LedgerCollided], "they do meet"
    tried = Crossing(ledger)
    await asyncio.gather(tried.carried(one, two), tried.carried(two, one))
    assert tried.attempts == 3
    lanes = await rows(ledger, text("SELECT lane FROM rounds ORDER BY id"))
    assert [row.lane for row in lanes] == [3, 3]


async def test_a_frozen_server_is_given_up_in_time_and_works_afterwards(
    own_ledger: SqlLedger, own_server: EmbeddedMariaDB
) -> None:
    sale = await own_ledger.create_sale(draft(), lane=0)
    one = admission(sale.round, 1)
    own_server.pause()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("seckill.backends.sql.transactions.WRITE_WITHIN_S", 1.0)
            patch.setattr("seckill.backends.sql.transactions.READ_WITHIN_S", 1.0)
            patch.setattr(sql, "PING_WITHIN_S", 0.5)
            for attempt in (own_ledger.record([one]), own_ledger.sales(), own_ledger.ping()):
                with pytest.raises(LedgerUnavailable, match="did not answer within"):
                    await attempt
    finally:
        own_server.resume()
    assert (await own_ledger.record([one])).states == {"unpaid": [int(one.number)]}
    assert own_ledger.database.writers.pool.checkedout() == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("moment", ["before_cursor_execute", "commit"])
async def test_killed_in_the_middle_of_a_transaction(
    own_ledger: SqlLedger, own_server: EmbeddedMariaDB, moment: str
) -> None:
    """Whether the commit was carried out cannot be known: the same again finds out. What was committed is there."""
    sale = await own_ledger.create_sale(draft(), lane=0)
    known, new = admission(sale.round, 1), admission(sale.round, 2)
    await own_ledger.record([known])
    event.listen(own_ledger.database.writers.sync_engine, moment, lambda *_: own_server.kill(), once=True)
    with pytest.raises(LedgerUnavailable):
        await own_ledger.record([new])
    with pytest.raises(LedgerUnavailable):
        await own_ledger.ping()
    await own_server.start()
    await own_server.ready()
    recorded = await own_ledger.record([known, new])
    assert (recorded.new, recorded.repeated) == (1, 1)
    assert await counts(own_ledger, sale.round.id) == (2, 2, 2)


async def test_connections_that_the_server_closed_are_replaced(
    ledger: SqlLedger, mariadb_server: EmbeddedMariaDB
) -> None:
    await asyncio.gather(*[ledger.sales() for _ in range(20)])
    open_ones = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    killed = [number for (number,) in await rows(ledger, text(open_ones))]
    for number in killed:
        await mariadb_server.execute(f"KILL {number}")
    still = f"SELECT id FROM information_schema.processlist WHERE id IN ({', '.join(map(str, killed))})"
    async with asyncio.timeout(PATIENCE_S):
        while await mariadb_server.execute(still):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)  # what the server has said is read before anybody asks for a connection
    await asyncio.gather(*[ledger.sales() for _ in range(20)])


@pytest.mark.parametrize("flush", [0, 2])
async def test_a_server_that_may_lose_what_it_has_committed_is_not_written_to(
    own_server: EmbeddedMariaDB, own_ledger: SqlLedger, flush: int
) -> None:
    """If it is told so while it is in use, that holds as soon as connections are replaced."""
    sale = await own_ledger.create_sale(draft(units=10), lane=0)
    await own_server.execute(f"SET GLOBAL innodb_flush_log_at_trx_commit = {flush}")
    try:
        await own_ledger.database.writers.dispose()
        with pytest.raises(LedgerUnsuitable, match=f"innodb_flush_log_at_trx_commit = {flush}"):
            await own_ledger.record([admission(sale.round, 1)])
        with pytest.raises(StartError, match="set it to 1"):
            await migrate(own_server.url("own"))
    finally:
        await own_server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    assert (await own_ledger.record([admission(sale.round, 1)])).new == 1


async def test_too_many_connections(own_server: EmbeddedMariaDB, own_ledger: SqlLedger) -> None:
    await own_server.execute("CREATE USER few@'%' IDENTIFIED BY 'few' WITH MAX_USER_CONNECTIONS 1")
    await own_server.execute("GRANT ALL ON own.* TO few@'%'")
    other = open_ledger(f"mysql://few:few@127.0.0.1:{own_server.port}/own")
    async with other.database.writers.connect() as connection:
        await connection.execute(text("SELECT 1"))
        with pytest.raises(LedgerUnavailable, match="max_user_connections"):
            await other.ping()
    await other.close()


@pytest.mark.parametrize(
    ("number", "meaning"),
    [
        (1040, ErrorMeaning.UNAVAILABLE),  # too many connections
        (1114, ErrorMeaning.UNAVAILABLE),  # disk full
        (1205, ErrorMeaning.UNAVAILABLE),
        (1290, ErrorMeaning.UNAVAILABLE),  # read only
        (1213, ErrorMeaning.COLLIDED),
        (1062, ErrorMeaning.REFUSED),
        (3819, ErrorMeaning.REFUSED),
        (1045, ErrorMeaning.UNSUITABLE),
        (1064, None),  # a mistake of ours is not explained away
    ],
)
def test_error_numbers_have_their_meaning(mariadb_database: str, number: int, meaning: ErrorMeaning | None) -> None:
    error = OperationalError("", {}, pymysql.err.OperationalError(number, "because"))
    assert open_ledger(mariadb_database).database.verdict(error) is meaning


async def test_a_letter_longer_than_the_usual_text(ledger: SqlLedger) -> None:
    long = "x" * 100_000
    statement = (
        "INSERT INTO dead_letters (lane, entry_id, reason, history, payload, state, attempts, created_ms) "
        "VALUES (0, '1-1', 'r', '[]', :payload, 'dead', 1, 1)"
    )
    await write(ledger, statement, payload=long)
    assert [(long,)] == await rows(ledger, text("SELECT payload FROM dead_letters"))


async def test_logins_names_and_rights_that_are_wrong(mariadb_server: EmbeddedMariaDB, mariadb_database: str) -> None:
    await mariadb_server.execute("CREATE USER reader@'%' IDENTIFIED BY 'pw'")
    await mariadb_server.execute(f"GRANT SELECT ON {mariadb_database.rsplit('/', 1)[1]}.* TO reader@'%'")
    right = mariadb_server.url("migrated")
    reader = right.replace(right.split("//")[1].split("@")[0], "reader:pw")
    for wrong in (right.replace("seckill:", "seckill:x"), f"{right}x", reader):
        ledger = open_ledger(wrong)
        with pytest.raises(LedgerUnsuitable, match="check its address and rights") as refused:
            await ledger.create_sale(draft(), lane=0)
        assert wrong not in str(refused.value)
        await ledger.close()


@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "mysql+aiomysql", "mariadb+aiomysql"])
async def test_addresses(mariadb_database: str, scheme: str) -> None:
    ledger = open_ledger(mariadb_database.replace("mysql:", f"{scheme}:"))
    await ledger.ping()
    await ledger.close()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("mysql://u@h", "names no database"),
        ("mysql://u@h/x?charset=latin1", "not known here"),
        ("mysql://u@h/x?ssl_ca=/nowhere.pem", "ssl_ca"),
        ("mysql+mysqldb://u@h/x", "no ledger for"),
    ],
)
def test_addresses_that_cannot_be_meant(address: str, says: str) -> None:
    with pytest.raises(StartError, match=says):
        open_ledger(address)


@pytest.mark.parametrize("version", ["5.5.5-10.3.39-MariaDB", "10.5.1-MariaDB-log", "5.7.44", "8.0.11"])
async def test_servers_that_are_too_old(mariadb_database: str, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("aiomysql.Connection.get_server_info", lambda _: version)
    ledger = open_ledger(mariadb_database)
    with pytest.raises(StartError, match=r"use MariaDB 10\.6, MySQL 8\.0\.17 or later"):
        await ledger.ping()
    with contextlib.suppress(StartError):
        await ledger.close()


async def test_every_table_of_ours_is_there(ledger: SqlLedger) -> None:
    found = await rows(ledger, text("SHOW TABLES"))
    assert {row[0] for row in found} == {*metadata.tables, "alembic_version"}
