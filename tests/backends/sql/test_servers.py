"""PostgreSQL and MariaDB alike: locks that another session holds, and values that do not fit."""

from typing import Any

import pytest
from sqlalchemy import text

from seckill.backends.sql import SqlLedger, mysql, open_ledger, postgres
from seckill.backends.sql.transactions import edge
from seckill.errors import LedgerRefused, LedgerUnavailable
from tests.backends.sql.looking import counts
from tests.backends.sql.making import admission, draft
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.parametrize("ledger_url", ["postgres", "mariadb"], indirect=True)


async def test_a_lock_that_another_session_holds(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch, ledger: SqlLedger
) -> None:
    monkeypatch.setitem(postgres._SERVER_SETTINGS, "lock_timeout", "200ms")
    monkeypatch.setitem(mysql._SESSION, "innodb_lock_wait_timeout", "1")
    sale = await ledger.create_sale(draft(), lane=0)
    hasty = open_ledger(ledger_url)
    async with ledger.database.writers.begin() as connection:
        await connection.execute(text("SELECT 1 FROM rounds FOR UPDATE"))
        with pytest.raises(LedgerUnavailable, match=r"lock timeout|Lock wait timeout"):
            await hasty.record([admission(sale.round, 1)])
    assert (await hasty.record([admission(sale.round, 1)])).new == 1
    await hasty.close()


async def test_a_worker_that_was_stopped_in_a_transaction_loses_it(ledger_url: str, ledger: SqlLedger) -> None:
    """The others wait no longer than the server lets it idle, and its own commit comes to nothing."""
    sale = await ledger.create_sale(draft(), lane=0)
    stopped = open_ledger(ledger_url)
    patience = {"postgresql": "idle_in_transaction_session_timeout = 300", "mysql": "idle_transaction_timeout = 1"}

    async def record_with_a_stop() -> None:
        async with edge(stopped.database, PATIENCE_S), stopped.database.writers.begin() as connection:
            await stopped._recording.run(connection, [admission(sale.round, 1)])
            await connection.execute(text(f"SET {patience[ledger_url.partition(':')[0]]}"))  # instead of 10 s
            assert (await ledger.record([admission(sale.round, 2)])).new == 1

    with pytest.raises(LedgerUnavailable):
        await record_with_a_stop()
    assert await counts(ledger, sale.round.id) == (1, 1, 1)
    assert (await stopped.record([admission(sale.round, 1)])).new == 1
    await stopped.close()


@pytest.mark.parametrize("bad", [{"user": "x" * 129}, {"user": "\ud800"}, {"quantity": 2**40}])
async def test_values_that_do_not_fit(ledger: SqlLedger, bad: dict[str, Any]) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    with pytest.raises(LedgerRefused):
        await ledger.record([admission(sale.round, 1, **bad)])
