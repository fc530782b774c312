"""The database's own guards, tried with SQL that no code of ours would write."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.database import ErrorMeaning
from tests.backends.sql.looking import order_rows, rows, write
from tests.backends.sql.making import admission, draft

PAYMENT = "order_id, provider, provider_ref, amount_cents, currency, settles, next_ms, created_ms"
OF_NO_ROUND = "an order of no round"
LEFT_BEHIND = "a round goes, its orders stay"
ORDER = "quantity, state, slot, request_id, epoch, price_cents, currency, created_ms, recorded_ms"
COLUMNS = "sale_id, ordinal, lane, total, limit_per_buyer, scheduled_ms, begins_ms, ends_ms, status"


@pytest.fixture
async def full(ledger: SqlLedger) -> SqlLedger:
    """Two units, both sold: to ann in slot 1, and to bob."""
    sale = await ledger.create_sale(draft(units=2), lane=0)
    await ledger.record([admission(sale.round, 1, user="ann"), admission(sale.round, 2, user="bob")])
    return ledger


@pytest.mark.parametrize(
    "forbidden",
    [
        pytest.param("UPDATE rounds SET sold = 3", id="more sold than there is"),
        pytest.param("UPDATE rounds SET sold = -1", id="less than nothing sold"),
        pytest.param("UPDATE rounds SET total = 1", id="a total below what is sold"),
        pytest.param("UPDATE rounds SET ends_ms = begins_ms", id="no time between beginning and end"),
        pytest.param("UPDATE rounds SET sold = 0, total = 0", id="nothing to sell"),
        pytest.param("UPDATE rounds SET limit_per_buyer = 0", id="nobody may buy"),
        pytest.param(
            f"INSERT INTO rounds ({COLUMNS}) SELECT sale_id, ordinal, lane, 1, 1, 1, 1, 2, status FROM rounds",
            id="two rounds of one ordinal",
        ),
        pytest.param(
            f"INSERT INTO rounds ({COLUMNS}) "
            "SELECT sale_id, 2, lane, 1, 1, scheduled_ms, begins_ms + 1, ends_ms, status FROM rounds",
            id="two rounds for one occurrence of a sale",
        ),
        pytest.param(
            f"INSERT INTO rounds ({COLUMNS}) VALUES (999, 1, 0, 1, 1, 1, 1, 2, 'open')", id="a round of no sale"
        ),
        pytest.param("UPDATE orders SET quantity = 0", id="an order of nothing"),
        pytest.param("UPDATE orders SET round_id = 999", id=OF_NO_ROUND),
        pytest.param(
            f"INSERT INTO orders (id, round_id, sale_id, user_id, {ORDER}) "
            f"SELECT id + 9, CASE user_id WHEN 'ann' THEN round_id ELSE 999 END, sale_id, 'eve', {ORDER} FROM orders",
            id=f"of two new ones, one is {OF_NO_ROUND}",
        ),
        pytest.param("UPDATE orders SET user_id = 'ann'", id="one slot for two orders of a buyer"),
        pytest.param("UPDATE orders SET id = 1", id="one number for two orders"),
        pytest.param("DELETE FROM rounds", id=LEFT_BEHIND),
        pytest.param("UPDATE rounds SET id = 999", id=f"under another id, {LEFT_BEHIND}"),
        pytest.param("UPDATE orders SET state = NULL", id="an order in no state"),
        pytest.param(
            "INSERT INTO outbox (kind, order_id, round_id, epoch, payload, created_ms) "
            "SELECT 'release', 1, round_id, 1, '', 1 FROM orders",
            id="a release decided twice",
        ),
        pytest.param(
            f"INSERT INTO payments ({PAYMENT}) SELECT id, 'p', 'r1', 1, 'CNY', id, NULL, 1 FROM orders",
            id="one payment for two orders",
        ),
        pytest.param(
            f"INSERT INTO payments ({PAYMENT}) SELECT id, 'p', user_id, 1, 'CNY', 1, NULL, 1 FROM orders",
            id="an order paid twice",
        ),
        pytest.param(
            f"INSERT INTO payments ({PAYMENT}) VALUES (1, 'p', 'r1', 1, 'CNY', 1, 1, 1)",
            id="a payment that is settled and undecided",
        ),
        pytest.param(
            f"INSERT INTO payments ({PAYMENT}) VALUES (1, 'p', 'r1', 0, 'CNY', NULL, 1, 1)", id="a payment of nothing"
        ),
        pytest.param(
            "INSERT INTO refunds (payment_id, amount_cents, currency, reason, attempts, created_ms) "
            "VALUES (999, 1, 'CNY', 'r', 0, 1)",
            id="a refund of no payment",
        ),
    ],
)
async def test_forbidden(full: SqlLedger, forbidden: str, request: pytest.FixtureRequest) -> None:
    if full.database.writers.dialect.name == "mysql" and request.node.callspec.id.endswith((OF_NO_ROUND, LEFT_BEHIND)):
        pytest.skip("a reference from orders to rounds would lock the round with every change in MySQL, see tables.py")
    before = await order_rows(full)
    with pytest.raises(DBAPIError) as refused:
        await write(full, forbidden)
    assert full.database.verdict(refused.value) is ErrorMeaning.REFUSED
    assert await order_rows(full) == before


async def test_orders_that_are_over_share_a_slot(full: SqlLedger) -> None:
    await write(full, "UPDATE orders SET active_slot = NULL")
    await write(full, "UPDATE orders SET user_id = 'ann'")


async def test_the_id_of_a_round_never_comes_back(ledger: SqlLedger) -> None:
    first = await ledger.create_sale(draft(), lane=0)
    await write(ledger, "DELETE FROM rounds")
    await write(ledger, "DELETE FROM sales")
    second = await ledger.create_sale(draft(), lane=0)
    assert second.round.id > first.round.id
    assert second.id > first.id


async def test_the_sweep_for_expired_orders_has_an_index_of_unpaid_ones_only(full: SqlLedger) -> None:
    sale_cache = {
        "sqlite": "SELECT sql FROM sqlite_master",
        "postgresql": "SELECT indexdef FROM pg_indexes",
        # It has no index of some rows only, but one in which they stand together.
        "mysql": "SELECT concat(index_name, ' begins with ', column_name, ' as in ''unpaid''') "
        "FROM information_schema.statistics WHERE seq_in_index = 1 AND column_name = 'state'",
    }[full.database.readers.dialect.name]
    definitions = [str(row[0]) for row in await rows(full, text(sale_cache))]
    [unpaid] = [definition for definition in definitions if "ix_orders_unpaid" in definition]
    assert "'unpaid'" in unpaid
