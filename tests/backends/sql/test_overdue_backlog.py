"""A hundred thousand overdue orders: several keepers drain them in batches, and payments are answered meanwhile."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select, text

from seckill.backends.sql import SqlLedger, mysql, open_ledger, postgres
from seckill.backends.sql.tables import order_events, outbox
from seckill.domain.order_number import OrderNumber
from seckill.engine.keeper import BETWEEN_BATCHES_S
from seckill.engine.orders.releases import BATCH_MAX
from tests.backends.sql.filling import fill
from tests.backends.sql.looking import rows, sold
from tests.backends.sql.making import draft, number
from tests.backends.sql.test_endings import capture
from tests.patience import PATIENCE_S

OVERDUE = 100_000
OTHERS = 1_000
KEEPERS = 3


async def plan(ledger: SqlLedger) -> str:
    """Returns the database's own words for how it finds what is due, whatever the parameters are."""
    dialect = ledger.database.writers.dialect
    due = ledger._endings._due.params(count=BATCH_MAX)
    compiled = due.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    async with ledger.database.writers.begin() as connection:
        if dialect.name == "postgresql":
            await connection.execute(text("SET LOCAL plan_cache_mode = force_generic_plan"))
            await connection.exec_driver_sql(f"PREPARE due AS {compiled}")
            found = await connection.execute(text(f"EXPLAIN EXECUTE due({BATCH_MAX})"))
            await connection.execute(text("DEALLOCATE due"))
        elif dialect.name == "mysql":
            found = await connection.exec_driver_sql(f"EXPLAIN {compiled}", (BATCH_MAX,))
        else:
            found = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", (BATCH_MAX, 0))
    return "\n".join(str(row) for row in found)


@pytest.mark.parametrize(
    ("ledger_url", "overdue"),
    [("sqlite", OVERDUE), ("postgres", OVERDUE), ("mariadb", 20_000)],
    indirect=["ledger_url"],
)
async def test_a_hundred_thousand_overdue_orders(
    ledger: SqlLedger, ledger_url: str, overdue: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This process has all the work, and may come back to a transaction late. That is not what is looked at here.
    monkeypatch.setitem(postgres._SERVER_SETTINGS, "idle_in_transaction_session_timeout", f"{PATIENCE_S:.0f}s")
    monkeypatch.setitem(mysql._SESSION_OF["mariadb"], "idle_transaction_timeout", f"{PATIENCE_S:.0f}")
    sale = await ledger.create_sale(draft(units=overdue + OTHERS), lane=0)
    await fill(ledger, sale.round, overdue + OTHERS, overdue=overdue)
    assert "ix_orders_unpaid" in await plan(ledger)
    ended: list[OrderNumber] = []
    till, *keepers = (open_ledger(ledger_url) for _ in range(1 + KEEPERS))
    shares = [0] * KEEPERS

    async def keep(keeper: int) -> None:
        """Expires orders as the keeper does."""
        while found := await keepers[keeper].expire_due(BATCH_MAX):
            ended.extend(found)
            shares[keeper] += 1
            await asyncio.sleep(BETWEEN_BATCHES_S)

    answered_at: list[int] = []

    async def pay(draining: asyncio.Task[Any]) -> None:
        for i in range(overdue + 1, overdue + OTHERS + 1):
            paid = await till.pay(number(sale.round, i), f"buyer-{i}", capture(f"r{i}"))
            assert paid is not None
            assert paid.done
            if draining.done():
                return
            answered_at.append(len(ended))
            await asyncio.sleep(0.01)

    draining: asyncio.Task[Any] = asyncio.ensure_future(asyncio.gather(*map(keep, range(KEEPERS))))
    await pay(draining)
    await draining
    for each in (till, *keepers):
        await each.close()
    assert len(ended) == len(set(ended)) == overdue
    assert min(shares) > 0, f"each of them has done a share: {shares}"
    assert sum(shares) < 2 * overdue / BATCH_MAX, "in batches that are nearly full"
    moments = len(set(answered_at))
    print(f"batches {shares}, payments {len(answered_at)}, at {moments} moments")  # noqa: T201
    assert moments > 10, "payments were answered all along"
    [(released, different)] = await rows(
        ledger, select(func.count(), func.count(outbox.c.order_id.distinct())).where(outbox.c.kind == "release")
    )
    [(events,)] = await rows(ledger, select(func.count()).where(order_events.c.to_state == "expired"))
    assert released == different == events == overdue
    assert await sold(ledger, sale.round.id) == OTHERS
    assert "ix_orders_unpaid" in await plan(ledger), "what is over costs nothing"
