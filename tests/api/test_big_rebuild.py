"""A hundred thousand orders in the ledger, and a gate that was restarted empty."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import orders
from seckill.bootstrap.engine import Engine, open_engine
from seckill.domain.idempotency_key import request_id
from seckill.local.valkey import EmbeddedValkey
from seckill.settings import Settings
from tests.api.conftest import keeping, make_node
from tests.backends.sql.filling import fill
from tests.backends.sql.looking import write
from tests.backends.sql.making import number
from tests.fixtures.valkey import OwnValkey
from tests.patience import PATIENCE_S

ORDERS = 100_000
UNITS = ORDERS + 10


@pytest.fixture
async def valkey(own_valkey: OwnValkey) -> EmbeddedValkey:
    return await own_valkey(durability="strict")


@pytest.fixture
def settings(settings: Settings, valkey: EmbeddedValkey, ledger_url: str) -> Settings:
    return replace(settings, redis_url=valkey.url, database_url=ledger_url, gate_timeout_s=1.0)


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    async with open_engine(settings) as engine:
        yield engine


async def restart_empty(valkey: EmbeddedValkey) -> None:
    await valkey.stop()
    shutil.rmtree(Path(valkey.log).parent / "appendonlydir")
    await valkey.start()
    await valkey.ready()


async def test_a_gate_that_was_restarted_empty_sells_again(
    settings: Settings, engine: Engine, ledger: SqlLedger, valkey: EmbeddedValkey
) -> None:
    node = await make_node(settings, engine)
    sale = await node.create(units=UNITS)
    (known,) = await ledger.sales()
    await fill(ledger, known.round, ORDERS)
    some = {i: int(number(known.round, i)) for i in (1, 777, ORDERS)}
    for i, order in some.items():
        await write(ledger, update(orders).where(orders.c.id == order).values(request_id=request_id(f"key-{i}")))
    await restart_empty(valkey)
    refused = await node.buy(sale, "early")
    assert (refused.status_code, refused.json()["code"]) == (503, "not_ready")

    began_s = time.monotonic()
    async with node.api.running(), keeping(settings, engine):
        codes = set()
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await node.buy(sale, "early", key="k")).status_code != 202:
                codes.add(answer.json()["code"])
                await asyncio.sleep(0.2)
        took_s = time.monotonic() - began_s
    print(f"selling again after {took_s:.1f} s")  # noqa: T201
    assert codes <= {"not_ready"}, "never sold out, and nothing sold before it was whole"
    (found,) = await ledger.sales()
    assert found.round.epoch == known.round.epoch + 1
    view = await engine.gate.inspect(found.round.ref)
    assert view is not None
    assert (view.admitted, view.available, view.buyers) == (ORDERS + 1, 9, ORDERS + 1)
    assert [(await node.buy(sale, f"late-{i}")).status_code for i in range(10)] == [202] * 9 + [409]
    for i, order in some.items():
        again = await node.buy(sale, f"buyer-{i}", key=f"key-{i}")
        assert again.json()["order_id"] == engine.order_ids.encode(order), "keys are remembered"
        assert (await node.buy(sale, f"buyer-{i}")).json()["code"] == "limit_reached"
    await node.http.aclose()
