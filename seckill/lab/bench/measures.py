"""The measurements, each on fresh servers. All rates are per second."""

import asyncio
import itertools
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import redis.asyncio

from seckill.backends.redis.gate import RedisGate
from seckill.backends.sql import SqlLedger
from seckill.backends.sql.database_choice import open_database
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.admission import Claim, Holding
from seckill.domain.door import Door
from seckill.domain.line import LineOrder, LineRules
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Confirm, Sale
from seckill.engine.rounds.rebuild import PORTION
from seckill.lab.bench import claim_lines
from seckill.lab.bench.claim_lines import make_tokens, write_lines
from seckill.lab.bench.cpu_time import by_part_s, ledger_server_pid, per_claim_us
from seckill.lab.bench.load import Load, crowd, load
from seckill.lab.bench.place import Running, engine_on, place, service
from seckill.lab.compare.child import ChildOrders
from seckill.lab.compare.moments import Moments
from seckill.lab.compare.processes import ComparedProcess
from seckill.lab.compare.scripts import COUNTER
from seckill.lab.compare.strategies.async_stream import AsyncStream
from seckill.lab.compare.strategy import CompareServers
from seckill.telemetry import MADE_EVERY_S

UNITS = 100_000_000
DRAW = Door(line=LineRules(order=LineOrder.DRAW))
GATE_BATCH = 100
GATE_CALLS_AT_ONCE = 4
MILLION = 1_000_000
# As multiples of the rate that the engine accepts when claims come as fast as it answers.
OFFERED = 0.5, 1, 2, 4
OFFERED_CONNECTIONS = 2000
DRAIN_S_MAX = 300.0
FILL_WITHIN_S = 60.0
POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What became of one load of distinct buyers with their own tokens, with worker and ledger running."""

    accept: float
    persist: float
    drain_s: float
    p50_ms: float
    p99_ms: float
    mean_batch: float
    cpu_us: Mapping[str, float]  # by part, for each accepted claim until its order was written
    api_bytes_before: int  # memory of the API process
    api_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What became of one load of distinct buyers who join a draw."""

    join: float
    p50_ms: float
    p99_ms: float
    cpu_us: Mapping[str, float]  # by part, for each buyer


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What became of a number of people who came every second. All rates are per second; `backlog`: orders that were
    not yet written at the end."""

    offered: float
    accepted: float
    persisted: float
    backlog: int
    p99_ms: float


async def http_ceiling(seconds: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        lines = write_lines(Path(folder) / "lines", "/v1/sales/0000000000000/orders", ["x" * 150])
        async with service("ceiling") as address:
            return (await load(address, lines, seconds=seconds, cycle=True)).per_s


async def gate_ceiling(seconds: float, ledger_url: str) -> float:
    """Measures the admission script alone, with enough claims for full batches at any time."""
    async with place(ledger_url) as here, engine_on(here, []) as running:
        sale = await running.new_sale(UNITS)
        gate = RedisGate(here.settings.redis_url, timeout_s=10, backlog_max=UNITS)
        numbers = itertools.count()
        admitted = 0
        until_s = time.perf_counter() + seconds

        async def call() -> None:
            nonlocal admitted
            while time.perf_counter() < until_s:
                claims = [Claim(f"buyer-{next(numbers)}", 1) for _ in range(GATE_BATCH)]
                admitted += len((await gate.admit(sale.round.ref, claims)).answers)

        try:
            began_s = time.perf_counter()
            await asyncio.gather(*(call() for _ in range(GATE_CALLS_AT_ONCE)))
            return admitted / (time.perf_counter() - began_s)
        finally:
            await gate.close()


async def plain(seconds: float, ledger_url: str) -> tuple[float, float]:
    """Returns the rates at which the last step of the tutorials accepts and writes orders."""
    async with place(ledger_url) as here:
        urls = here.settings.redis_url, here.settings.database_url
        servers = CompareServers(redis_url=urls[0], gate_url="", database_url=urls[1], ledger_url="", pause_ms=0)
        strategy = AsyncStream(servers, Moments())
        consumer = ComparedProcess(
            ChildOrders(
                strategy=AsyncStream.name, role="consumer", servers=servers, socket=str(here.folder / "consumer")
            )
        )
        try:
            await strategy.prepare(UNITS)
            await consumer.start()
            async with service("plain", servers, here.settings.jwt_secret) as address:
                tokens = make_tokens(here.settings, seconds + 1)
                early = write_lines(here.folder / "early", "/orders", tokens[: claim_lines.CLAIMS_PER_S_MAX])
                lines = write_lines(here.folder / "lines", "/orders", tokens[claim_lines.CLAIMS_PER_S_MAX :])
                await load(address, early, seconds=1)  # connects to everything
                before = await _plain_counts(strategy)
                seen = await load(address, lines, seconds=seconds)
                after = await _plain_counts(strategy)
            return (after[0] - before[0]) / seen.took_s, (after[1] - before[1]) / seen.took_s
        finally:
            await consumer.kill()
            await strategy.close()


async def _plain_counts(strategy: AsyncStream) -> tuple[int, int]:
    return int(await strategy.redis.get(COUNTER) or 0), await strategy.written()


async def accept_and_refuse(seconds: float, ledger_url: str) -> tuple[Accepted, Load]:
    async with place(ledger_url) as here, engine_on(here) as running:
        await _warm_up(running)
        tokens = make_tokens(here.settings, seconds)
        accepted = await _accept(running, await running.new_sale(UNITS), tokens, seconds)
        few = await running.new_sale(1)
        lines = write_lines(here.folder / "refuse", running.path(few), tokens[: claim_lines.CLAIMS_PER_S_MAX * 2])
        await load(running.address, lines, seconds=1, cycle=True)  # until every process knows that it is sold out
        return accepted, await load(running.address, lines, seconds=seconds, cycle=True)


async def joined(seconds: float, ledger_url: str) -> Joined:
    """Measures a draw that all buyers join. Raises an AssertionError if a buyer who was answered is not in the
    ledger."""
    async with place(ledger_url) as here, engine_on(here) as running:
        tokens = make_tokens(here.settings, seconds)
        await _join(running, tokens, 1)  # connects everything to everything
        return await _join(running, tokens, seconds)


async def _join(running: Running, tokens: Sequence[str], seconds: float) -> Joined:
    sale = await running.new_sale(UNITS, door=DRAW)
    lines = write_lines(running.place.folder / "join", running.path(sale, "entries"), tokens)
    ledger_pid = await ledger_server_pid(running.place.settings.database_url)
    spent_s = by_part_s(running.pids, ledger_pid)
    seen = await load(running.address, lines, seconds=seconds)
    accepted = seen.answers - seen.refusals
    cpu_us = per_claim_us(spent_s, by_part_s(running.pids, ledger_pid), max(accepted, 1))
    line = await running.engine.ledger.lines.line(sale.round.id)
    assert line is not None
    assert accepted <= line.waiting, f"{accepted - line.waiting} were told that they had joined, and had not"
    return Joined(join=seen.accepted_per_s, p50_ms=seen.p50_ms, p99_ms=seen.p99_ms, cpu_us=cpu_us)


async def sustained(seconds: float, ledger_url: str, overload_s: float) -> tuple[Accepted, list[Offered]]:
    """Measures a long load that is sent as fast as it is answered, and then lower and higher rates for `overload_s`
    each."""
    async with place(ledger_url) as here, engine_on(here) as running:
        sale = await running.new_sale(UNITS)
        long = await _accept(running, sale, make_tokens(here.settings, seconds), seconds)
        tokens = make_tokens(here.settings, overload_s)
        return long, [await _offer(running, times * long.accept, tokens, overload_s) for times in OFFERED]


async def _offer(running: Running, per_s: float, tokens: Sequence[str], seconds: float) -> Offered:
    sale = await running.new_sale(UNITS)
    lines = write_lines(running.place.folder / "offer", running.path(sale), tokens)
    seen = await crowd(running.address, lines, seconds=seconds, per_s=per_s, connections=OFFERED_CONNECTIONS)
    backlog = await running.engine.transport.backlog([sale.round.lane])
    written = await running.engine.ledger.tally(sale.round.id)
    assert written is not None
    await _until_drained(running, sale)
    return Offered(
        offered=per_s,
        accepted=seen.accepted_per_s,
        persisted=(written.unpaid + written.paid) / seen.took_s,
        backlog=backlog,
        p99_ms=seen.p99_ms,
    )


async def accept_at_1m(seconds: float, rounds: int, ledger_url: str) -> tuple[list[tuple[float, float]], float]:
    """Measures the accepted rates in a new round and in one with a million buyers, in turns, and how many bytes each of
    these buyers costs Valkey."""
    # No keeper runs, because it would repair the round while we fill it.
    async with place(ledger_url) as here, engine_on(here, ["worker", "api"]) as running:
        await _warm_up(running)
        large = await running.new_sale(UNITS)
        began = await _memory(running)
        await _fill(running, large)
        per_buyer = (await _memory(running) - began) / MILLION
        found = []
        tokens = make_tokens(here.settings, rounds * seconds)
        portion = len(tokens) // rounds
        for number in range(rounds):
            buyers = tokens[number * portion :][:portion]
            new = await running.new_sale(UNITS)
            in_turn = (new, large) if number % 2 == 0 else (large, new)  # neither is always the first
            accept = {sale.id: (await _accept(running, sale, buyers, seconds)).accept for sale in in_turn}
            found.append((accept[new.id], accept[large.id]))
        return found, per_buyer


async def confirm(seconds: float, rounds: int, ledger_url: str) -> dict[Confirm, list[Load]]:
    """Sends the same load, in turns, to a sale that confirms at the gate and to one that confirms in the ledger."""
    async with place(ledger_url) as here, engine_on(here) as running:
        await _warm_up(running)
        found: dict[Confirm, list[Load]] = {each: [] for each in Confirm}
        lines = make_tokens(here.settings, seconds)
        for number in range(rounds):
            for each in list(Confirm)[:: 1 if number % 2 == 0 else -1]:  # neither is always the first
                sale = await running.new_sale(UNITS, each)
                file = write_lines(here.folder / "confirm", running.path(sale), lines)
                found[each].append(await load(running.address, file, seconds=seconds))
                await _until_drained(running, sale)
        return found


async def _warm_up(running: Running) -> None:
    """Sends claims for a second so that all connections are open before the measurement, as for the plain service."""
    sale = await running.new_sale(UNITS)
    lines = write_lines(running.place.folder / "early", running.path(sale), make_tokens(running.place.settings, 1))
    await load(running.address, lines, seconds=1)
    await _until_drained(running, sale)


async def _accept(running: Running, sale: Sale, tokens: Sequence[str], seconds: float) -> Accepted:
    gate, ledger = running.engine.gate, running.engine.ledger
    lines = write_lines(running.place.folder / "accept", running.path(sale), tokens)
    before = await _figures(running)
    ledger_pid = await ledger_server_pid(running.place.settings.database_url)
    spent_s = by_part_s(running.pids, ledger_pid)
    api_bytes = _resident(running.pids["api"])
    already = await gate.inspect(sale.round.ref)
    seen: Load = await load(running.address, lines, seconds=seconds)
    written = await ledger.tally(sale.round.id)
    view = await gate.inspect(sale.round.ref)
    assert view is not None
    assert already is not None
    assert written is not None
    drained_s = await _until_drained(running, sale)
    accepted = view.admitted - already.admitted
    cpu_us = per_claim_us(spent_s, by_part_s(running.pids, ledger_pid), max(accepted, 1))
    after = await _figures(running)
    calls, claims = (after[name] - before[name] for name in _BATCH)
    return Accepted(
        accept=accepted / seen.took_s,
        persist=(written.unpaid + written.paid) / seen.took_s,
        drain_s=round(drained_s, 2),
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        mean_batch=round(claims / calls, 1) if calls else 0.0,
        cpu_us=cpu_us,
        api_bytes_before=api_bytes,
        api_bytes=_resident(running.pids["api"]),
    )


async def _until_drained(running: Running, sale: Sale) -> float:
    """Returns how long the queue took to empty."""
    ended_s = time.monotonic()
    while await running.engine.transport.backlog([sale.round.lane]) and time.monotonic() - ended_s < DRAIN_S_MAX:  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)
    return time.monotonic() - ended_s


_BATCH = ("seckill_admit_batch_size_count", "seckill_admit_batch_size_sum")


async def _figures(running: Running) -> Mapping[str, float]:
    await asyncio.sleep(MADE_EVERY_S)  # otherwise the metrics may be the text that was made before the load
    lines = (await running.metrics()).splitlines()
    return {name: sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name)) for name in _BATCH}


class _Million(SqlLedger):
    """A ledger that tells a rebuild that a million buyers have bought before."""

    async def holdings(self, round_id: int, after: str, count: int) -> dict[str, list[Holding]]:
        begin = int(after.removeprefix("early-")) + 1 if after else 0
        return {
            f"early-{number:07}": [Holding(OrderNumber(1, 0, number), 1, 0, "", live=True)]
            for number in range(begin, min(begin + PORTION, MILLION))
        }


async def _newest(ledger: SqlLedger, sale: Sale) -> Sale:
    found = await ledger.sale(sale.id)
    assert found is not None
    return found


async def _fill(running: Running, sale: Sale) -> None:
    """Fills the round with the engine's own rebuild, which writes no orders."""
    ledger = _Million(open_database(running.place.settings.database_url))
    try:
        rebuilder = UseCases(replace(running.engine, ledger=ledger), running.place.settings).rebuilder()
        give_up_at_s = time.monotonic() + FILL_WITHIN_S
        # Claims of the last load may still be under way. Each attempt has an epoch of its own.
        while not await rebuilder.step((await _newest(ledger, sale)).round):
            assert time.monotonic() < give_up_at_s, "the round could not be filled"
            await asyncio.sleep(POLL_S)
    finally:
        await ledger.close()
    # This much data at once makes Valkey rewrite its file. In a sale that grows gradually, it does so without haste.
    while await _rewriting(running):  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)


async def _rewriting(running: Running) -> bool:
    async with redis.asyncio.Redis.from_url(running.place.settings.redis_url) as client:
        found = await client.info("persistence")
        return bool(found["aof_rewrite_in_progress"] or found["aof_rewrite_scheduled"])


async def _memory(running: Running) -> int:
    async with redis.asyncio.Redis.from_url(running.place.settings.redis_url) as client:
        return int((await client.info("memory"))["used_memory"])


def _resident(pid: int) -> int:
    """Returns the process's resident memory in bytes, or 0 where the system does not tell it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
