"""What a claim costs each part with one API process and one lane, and how well that predicts other set-ups.

    .venv/bin/python benchmarks/capacity.py [SECONDS]

The figures of docs/capacity.md. Fresh servers for each set-up: Valkey that syncs before every answer, SQLite, a worker
and a keeper. CPU time, as every process reports it, over the claims and orders that it reports: on a machine that has
other things to do, that changes much less than rates do. Waits for no goal: the load is as much as there is room for.
"""

import asyncio
import statistics
import sys
from dataclasses import asdict, dataclass

import redis.asyncio

from seckill.bootstrap.use_cases import UseCases
from seckill.domain.sale import Sale, SaleDraft
from seckill.lab.bench.claim_lines import make_tokens, write_lines
from seckill.lab.bench.load import CONNECTIONS, generator, load
from seckill.lab.bench.measures import UNITS
from seckill.lab.bench.place import HOUR_MS, Running, engine_on, place
from seckill.lab.rehearsal.capacity import needs
from seckill.lab.rehearsal.parts import Costs
from seckill.operations.presence import EVERY_S
from seckill.settings import Role

SETUPS = ((1, 1), (2, 1), (4, 1), (1, 4), (2, 8))  # API processes, lanes
TIMES = 3  # of which the medians count
RATES = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Used:
    api: float
    worker: float
    keeper: float
    gate: float
    claims: int
    written: int
    gate_bytes: int


async def used(running: Running) -> Used:
    await asyncio.sleep(EVERY_S + 0.3)  # every process tells of itself once a second
    _, seen = await running.engine.board.reports()
    cpu_s = {role: sum(one.report.cpu_s for one in seen if one.report.role == role) for role in ("worker", "keeper")}
    api = [one.report for one in seen if one.report.role == "api"]
    async with redis.asyncio.Redis.from_url(running.place.settings.redis_url) as client:
        info = await client.info("everything")
    return Used(
        api=sum(report.cpu_s for report in api),
        worker=cpu_s["worker"],
        keeper=cpu_s["keeper"],
        gate=info["used_cpu_user"] + info["used_cpu_sys"],
        claims=sum(report.claims for report in api),
        written=sum(one.report.recorded for one in seen),
        gate_bytes=info["used_memory"],
    )


async def sale_with(running: Running, lanes: int) -> Sale:
    now_ms = await running.engine.gate.pulses([])
    draft = SaleDraft(
        title="Capacity",
        units=UNITS,
        limit_per_buyer=1,
        price_cents=100,
        currency="CNY",
        begins_ms=now_ms[0] - HOUR_MS,
        ends_ms=now_ms[0] + 24 * HOUR_MS,
        pay_within_s=6 * 3600,
        lanes=lanes,
    )
    return await UseCases(running.engine, running.place.settings).operator_desk.announce(draft, 0)


async def costs_of(api: int, lanes: int, seconds: float) -> tuple[Costs, float]:
    """Also accepted claims a second."""
    roles: list[Role] = ["worker", "keeper"]
    roles.extend("api" for _ in range(api))
    async with place("") as here, engine_on(here, roles) as running:
        idle = await used(running)
        began = await used(running)
        lines = write_lines(
            here.folder / "lines", running.path(await sale_with(running, lanes)), make_tokens(here.settings, seconds)
        )
        seen = await load(running.address, lines, seconds=seconds)
        after = await used(running)
        quiet_s, busy_s = EVERY_S + 0.3, seconds + EVERY_S + 0.3

        def each_us(part: str, over: int) -> float:
            spent: float = getattr(after, part) - getattr(began, part)
            spent -= (getattr(began, part) - getattr(idle, part)) / quiet_s * busy_s
            return max(0.0, spent) / over * 1e6

        claims, written = after.claims - began.claims, after.written - began.written
        cost = Costs(
            api_us=each_us("api", claims),
            worker_us=each_us("worker", written),
            gate_us=each_us("gate", claims),
            gate_bytes=(after.gate_bytes - began.gate_bytes) / written,
        )
        return cost, seen.accepted_per_s


def in_all(cost: Costs) -> float:
    """For an accepted claim, which is also an order."""
    return sum(part or 0.0 for part in (cost.api_us, cost.gate_us, cost.worker_us))


async def main(seconds: float) -> None:
    print(f"{generator()}, {CONNECTIONS} connections, {seconds:g} s, medians of {TIMES}")
    print("API  lanes   API µs   gate µs  worker µs   all µs  off by   bytes  accepted/s")
    base: Costs | None = None
    for api, lanes in SETUPS:
        found = [await costs_of(api, lanes, seconds) for _ in range(TIMES)]
        cost = Costs(
            **{
                name: statistics.median(getattr(each, name) for each, _ in found)
                for name in ("api_us", "worker_us", "gate_us", "gate_bytes")
            }
        )
        base = base or cost
        total, predicted = in_all(cost), in_all(base)
        accepted = statistics.median(rate for _, rate in found)
        print(
            f"{api:3}  {lanes:5}  {cost.api_us:7.0f}  {cost.gate_us:8.0f}  {cost.worker_us:9.0f}  {total:7.0f}  "
            f"{total / predicted - 1:+6.0%}  {cost.gate_bytes:6.0f}  {accepted:10,.0f}"
        )
    assert base is not None
    for rate in RATES:
        print(asdict(needs(rate, base)))


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 3))
