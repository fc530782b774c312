"""What one buyer's cancelled orders cost the gate: its CPU time for a claim, of that buyer and of everybody else.

    make check && .venv/bin/python benchmarks/past_orders.py

The figures of docs/speed.md. A fresh Valkey without fsync, so that nothing is measured but the script; CPU time of the
server, so that it does not matter what else the machine does.
"""

import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate, connect
from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundStatus
from seckill.local.valkey import EmbeddedValkey
from seckill.ports.gate import Release

CANCELLED = (0, 500, 2_000, 5_000)
CLAIMS = 200  # of the buyer, one a call
CROWD = 20_000  # claims of others, 100 a call
BATCH = 100
TIMES = 7  # of which the quickest counts: others on the machine can only make it slower


async def measure(folder: Path) -> None:
    valkey = EmbeddedValkey(folder, durability="fast")
    await valkey.start()
    await valkey.ready()
    try:
        gate = RedisGate(valkey.url, timeout_s=60, backlog_max=10_000_000)
        client: Any = connect(valkey.url)
        round_ = await opened(gate)
        done = 0
        print("cancelled  record  past entries  bytes each  µs of CPU a claim of the buyer")
        for cancelled in CANCELLED:
            await buy_and_cancel(gate, round_, done, cancelled)
            done = cancelled
            spent_us = min([await press(gate, client, round_) for _ in range(TIMES)])
            record = await client.hstrlen(keys.buyers(round_.ref), "ann")
            past = await client.hlen(keys.past(round_.ref))
            room = await client.memory_usage(keys.past(round_.ref), samples=0) or 0
            print(f"{cancelled:9}  {record:6}  {past:12}  {room / past if past else 0:10.0f}  {spent_us:10.1f}")
        spent_us = min([await crowd(gate, client) for _ in range(TIMES)])
        print(f"everybody else, new buyers, {BATCH} a call: {spent_us:.2f} µs of CPU a claim")
        await client.aclose()
        await gate.close()
    finally:
        await valkey.stop()


async def opened(gate: RedisGate, round_id: int = 1) -> Round:
    now_ms, _ = await gate.pulses([])
    round_ = Round(
        id=round_id,
        sale_id=1,
        ordinal=1,
        lane=0,
        total=1_000_000_000,
        limit_per_buyer=1,
        scheduled_ms=now_ms,
        begins_ms=now_ms - 1000,
        ends_ms=now_ms + 86_400_000,
        status=RoundStatus.OPEN,
        epoch=1,
        revision=1,
        synced_revision=0,
        opened_ms=None,
    )
    round_ = replace(round_, opened_ms=(await gate.open_round(round_)).opened_ms)
    await gate.update_round(round_)
    return round_


async def buy_and_cancel(gate: RedisGate, round_: Round, start: int, end: int) -> None:
    for i in range(start, end):
        key = f"past{i:012}"
        (answer,) = (await gate.admit(round_.ref, [Claim("ann", 1, key)])).answers
        assert answer.outcome is Outcome.ADMITTED, answer
        await gate.release(round_.ref, [Release(answer.holdings[0].number, "ann", 1, key, lapsed=True)])


async def press(gate: RedisGate, client: Any, round_: Round) -> float:
    """Refused, being above the limit: the record is read, and nothing changes."""
    began_s = await cpu_s(client)
    for i in range(CLAIMS):
        await gate.admit(round_.ref, [Claim("ann", 2, f"{i:016x}")])
    return (await cpu_s(client) - began_s) * 1e6 / CLAIMS


async def crowd(gate: RedisGate, client: Any) -> float:
    round_ = await opened(gate, await client.incr("crowds") + 1)
    began_s = await cpu_s(client)
    for start in range(0, CROWD, BATCH):
        claims = [Claim(f"buyer-{i}", 1, f"{i:016x}") for i in range(start, start + BATCH)]
        await gate.admit(round_.ref, claims)
    return (await cpu_s(client) - began_s) * 1e6 / CROWD


async def cpu_s(client: Any) -> float:
    used = await client.info("cpu")
    return float(used["used_cpu_user_main_thread"]) + float(used["used_cpu_sys_main_thread"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        began = time.monotonic()
        asyncio.run(measure(Path(scratch)))
        print(f"({time.monotonic() - began:.0f} s)")
