"""A poison entry among a thousand good ones, with worker, keeper and API running as they do in production."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine
from seckill.domain.admission import Claim
from seckill.domain.dead_letter import LetterState
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundRef
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.worker import run_worker
from seckill.loops import Stop
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Served, buyer, keeping, token
from tests.backends.sql.looking import order_rows
from tests.live import stream
from tests.patience import PATIENCE_S

GOOD = 1000
UNITS = GOOD + 10
DELAYS_S = (0.1, 0.2, 0.3)


@pytest.fixture
def settings(settings: Settings, ledger_url: str) -> Settings:
    return replace(settings, database_url=ledger_url, retry_delays_s=DELAYS_S, backlog_max=10 * GOOD)


async def admit(engine: Engine, ref: RoundRef, users: list[str]) -> None:
    reply = await engine.gate.admit(ref, [Claim(user, 1) for user in users])
    assert {answer.outcome for answer in reply.answers} == {Outcome.ADMITTED}


async def poison(redis_url: str, stream_key: str) -> None:
    """Bob's entry claims an epoch that never was, Carol's a version to come, and one is not JSON at all."""
    client: Any = connect(redis_url)
    for user, good, bad in ((b"bob", b'"epoch":1', b'"epoch":9'), (b"carol", b'"v":1', b'"v":2')):
        name = b'"user":"%b"' % user
        ((entry_id, fields),) = [e for e in await client.xrange(stream_key) if name in e[1].get(b"order", b"")]
        await client.xdel(stream_key, entry_id)
        await client.xadd(stream_key, {"order": fields[b"order"].replace(good, bad)})
    await client.xadd(stream_key, {"order": b"{garbage"})
    await client.aclose()


async def test_a_poison_entry_among_a_thousand(
    served: Served, engine: Engine, settings: Settings, ledger: SqlLedger, redis_url: str
) -> None:
    node = served.node
    sale = await node.create(units=UNITS)
    (known,) = await ledger.sales()
    ref = known.round.ref
    await admit(engine, ref, [f"early-{i}" for i in range(GOOD // 2)])
    order_id = str((await node.buy(sale, "bob")).json()["order_id"])
    assert (await node.buy(sale, "carol")).status_code == 202
    await poison(redis_url, keys.orders(ref.lane))
    await admit(engine, ref, [f"late-{i}" for i in range(GOOD // 2)])

    stop = Stop()
    async with AsyncExitStack() as opened, asyncio.timeout(PATIENCE_S):
        told = await opened.enter_async_context(stream(served.url, order_id, token("bob")))
        first = await told.next()
        assert first is not None
        assert first.id == "queued"
        polling = asyncio.create_task(
            node.http.get(f"/v1/orders/{order_id}?wait=30&seen=queued", headers=buyer("bob"), timeout=PATIENCE_S)
        )
        working = asyncio.create_task(run_worker(node.worker, stop))
        while await engine.transport.backlog([ref.lane]):
            await asyncio.sleep(0.01)
        # All good ones are done, while the bad ones have not been tried a second time.
        assert Counter(row.state for row in await order_rows(ledger)) == {"unpaid": GOOD}
        waiting = await ledger.letters(LetterState.RETRYING, 10)
        assert [letter.attempts for letter in waiting] == [1, 1, 1]
        async with keeping(settings, engine):
            assert await told.states() == ["failed"], "and the stream ends"
            assert (await polling).json()["state"] == "failed"
            while len(await ledger.letters(LetterState.DEAD, 10)) < 3 or await ledger.outbox(1):
                await asyncio.sleep(0.05)
        stop.set()
        await working
    await check_the_end(served, engine, sale, ref)


async def check_the_end(served: Served, engine: Engine, sale: dict[str, Any], ref: RoundRef) -> None:
    node = served.node
    dead = (await node.http.get("/v1/admin/dead", headers=OPERATOR)).json()["dead"]
    # An epoch that is over never comes back: the first try again is the last.
    assert sorted(len(letter["history"]) for letter in dead) == [2, 1 + len(DELAYS_S), 1 + len(DELAYS_S)]
    assert sorted(letter["order_id"] is None for letter in dead) == [False, False, True]
    reasons = " ".join(letter["reason"] for letter in dead)
    assert all(words in reasons for words in ("epoch 9 are void", "cannot be read", "version 2"))
    view = await engine.gate.inspect(ref)
    assert view is not None
    assert (view.admitted, view.released, view.available) == (GOOD + 2, 2, UNITS - GOOD), "each unit is back, once"
    for user in ("bob", "carol"):
        assert (await node.buy(sale, user)).status_code == 202, "they may try again"


async def test_impossible_numbers_stop_nobody(
    served: Served, engine: Engine, settings: Settings, ledger: SqlLedger, redis_url: str
) -> None:
    """No database can hold them: they become dead letters, and what came after them is written."""
    node = served.node
    sale = await node.create(units=UNITS)
    (known,) = await ledger.sales()
    stream_key = keys.orders(known.round.lane)
    assert (await node.buy(sale, "ann")).status_code == 202
    client: Any = connect(redis_url)
    ((_, fields),) = await client.xrange(stream_key)
    changes = {b'"round":%d' % known.round.id: 2**63, b'"quantity":1': 2**70}
    changes[next(part for part in fields[b"order"].split(b",") if part.startswith(b'"seconds"'))] = 2**40
    for good, value in changes.items():
        name = good.partition(b":")[0]
        for version in (b'"v":1', b'"v":2'):  # the second is salvaged when it is given up, if it can be
            bad = fields[b"order"].replace(good, b"%b:%d" % (name, value)).replace(b'"v":1', version)
            assert bad.count(b"%d" % value) == 1
            await client.xadd(stream_key, {"order": bad})
    await client.aclose()
    assert (await node.buy(sale, "bob")).status_code == 202
    await node.work()
    assert Counter(row.state for row in await order_rows(ledger)) == {"unpaid": 2}
    failures = DeadLetterDesk(ledger, Alarm(""), (0, 0, 0))
    async with asyncio.timeout(PATIENCE_S):
        while await failures.retry_due():
            pass
    assert len(await ledger.letters(LetterState.DEAD, 10)) == 2 * len(changes)
    assert await ledger.outbox(1) == [], "nothing is given back that nobody can name"
