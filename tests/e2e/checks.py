"""Checks that must hold when everything has come to rest."""

import asyncio
import contextlib
import time
from collections.abc import Collection
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from seckill.audit import Verdict
from seckill.bootstrap.engine import Engine
from seckill.domain.sale import Sale
from seckill.errors import TransportUnavailable
from seckill.ports.gate import GateView
from tests.patience import PATIENCE_S


async def until_drained(engine: Engine, within_s: float = PATIENCE_S) -> None:
    lanes = await engine.ledger.lanes_in_use()
    deadline_s = time.monotonic() + within_s
    while await _waits(engine, lanes):
        assert time.monotonic() < deadline_s, "the streams did not drain"
        await asyncio.sleep(0.05)


async def _waits(engine: Engine, lanes: Collection[int]) -> bool:
    with contextlib.suppress(TransportUnavailable):  # a server that has too much to do
        return await engine.transport.backlog(lanes) > 0
    return True


async def until_passed_on(engine: Engine, within_s: float = PATIENCE_S) -> None:
    """The keeper passes on what was decided a few times a second; what a payment made just now announces may wait."""
    deadline_s = time.monotonic() + within_s
    while await engine.ledger.outbox(1):
        assert time.monotonic() < deadline_s, "the outbox did not drain"
        await asyncio.sleep(0.05)


async def rows(database_url: str, sql: str) -> list[Any]:
    url = database_url.replace("sqlite:", "sqlite+aiosqlite:").replace("postgresql:", "postgresql+asyncpg:")
    url = url.replace("mysql:", "mysql+aiomysql:")
    database = create_async_engine(url)
    try:
        async with database.connect() as connection:
            return list((await connection.execute(text(sql))).all())
    finally:
        await database.dispose()


async def check_audit(engine: Engine) -> None:
    """Audits with code that shares nothing with the engine."""
    assert engine.auditor is not None
    async with asyncio.timeout(PATIENCE_S):
        while (report := await engine.auditor.read(full=True)).reasons():  # a server that has too much to do
            await asyncio.sleep(0.1)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())


async def check_conservation(engine: Engine, sale: Sale, database_url: str, accepted: dict[str, str]) -> GateView:
    """design: T = a + (N − P) + UNPAID + PAID, with nothing in flight; every 202 is a row, none twice."""
    view = await engine.gate.inspect(sale.round.ref)
    assert view is not None
    orders = await rows(
        database_url,
        f"SELECT id, user_id, quantity, state FROM orders WHERE round_id = {sale.round.id} ORDER BY id",
    )
    units = sum(order.quantity for order in orders)
    ((sold,),) = await rows(database_url, f"SELECT sold FROM rounds WHERE id = {sale.round.id}")
    assert view.available == view.total - view.admitted + view.released
    assert 0 <= view.available <= view.total
    assert view.admitted == units == sold <= view.total
    per_buyer: dict[str, int] = {}
    for order in orders:
        per_buyer[order.user_id] = per_buyer.get(order.user_id, 0) + order.quantity
    assert max(per_buyer.values(), default=0) <= view.limit_per_buyer
    by_id = {engine.order_ids.encode(order.id): order.user_id for order in orders}
    assert len(by_id) == len(orders)
    for user, order_id in accepted.items():
        assert by_id.get(order_id) == user, f"{user} was promised {order_id}"
    await check_audit(engine)
    return view
