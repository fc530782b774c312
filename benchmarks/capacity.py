"""What a claim costs each part with one API process, one lane and one primary, and how well that predicts others.

    .venv/bin/python benchmarks/capacity.py [SECONDS] [--times 3] [--only WORD]

The figures of docs/capacity.md. Fresh servers for each set-up: Valkey that syncs before every answer, or a cluster of
several, SQLite, a worker and a keeper. CPU time, as every process reports it, over the claims and orders that it
reports: on a machine that has other things to do, that changes much less than rates do. Waits for no goal: the load is
as much as there is room for. All set-ups are measured in turns.

A part has so many µs for each claim, and so many for each call to the gate, which claims share: they also share the
entry that a worker reads. Both come from the set-ups with one server on the same machine; with them, all others are
predicted.

"apart" has the gate in a network namespace of its own, behind a pair of virtual interfaces that count the bytes
between the gate and everything else (Linux, as root; left out otherwise).
"""

import argparse
import asyncio
import contextlib
import os
import secrets
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from seckill.backends.redis.server_choice import open_servers
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.sale import Sale, SaleDraft
from seckill.errors import SeckillError, StartError
from seckill.lab.bench.claim_lines import make_tokens, write_lines
from seckill.lab.bench.load import CONNECTIONS, generator, load
from seckill.lab.bench.measures import UNITS
from seckill.lab.bench.place import HOUR_MS, BenchPlace, Running, engine_on, place
from seckill.lab.rehearsal.capacity import PLANNED_BATCH, needs
from seckill.lab.rehearsal.part_costs import Costs
from seckill.lab.rehearsal.watch import metrics_in
from seckill.lab.servers.cluster import LocalCluster
from seckill.local.valkey import EmbeddedValkey, find_server
from seckill.operations.presence import EVERY_S
from seckill.settings import Role, Secret, Settings

T = TypeVar("T")

TOLD_S = EVERY_S + 0.3  # every process tells of itself once a second
IDLE_S = 3.0
WRITTEN_WITHIN_S = 60.0
RATES = (10_000, 100_000, 1_000_000)
GATE_HOST, OUR_HOST, GATE_PORT = "10.213.7.2", "10.213.7.1", 6379


@dataclass(frozen=True, slots=True)
class SetUp:
    api: int = 1
    lanes: int = 1
    primaries: int = 0  # of a cluster; 0: one server that is none
    replicas: int = 0  # of each primary, which all have to have an order before its answer
    apart: bool = False

    def __str__(self) -> str:
        servers = f"{self.primaries} of a cluster" if self.primaries else "1"
        more = (f" + {self.replicas} replica each" if self.replicas else "") + (" apart" if self.apart else "")
        return f"{self.api:3}  {self.lanes:5}  {servers + more:32}"


ONE_SERVER = (SetUp(), SetUp(api=2), SetUp(api=4), SetUp(lanes=4), SetUp(api=2, lanes=8))
OTHERS = (
    SetUp(primaries=1),
    SetUp(lanes=2, primaries=2),
    SetUp(lanes=3, primaries=3),
    SetUp(api=2, lanes=6, primaries=3),
    SetUp(lanes=3, primaries=3, replicas=1),
    SetUp(apart=True),
)


@dataclass(frozen=True, slots=True)
class Used:
    at_s: float
    api: float
    worker: float
    keeper: float
    gate: float
    replicas: float
    claims: int
    written: int
    gate_bytes: int
    wire_bytes: int  # between gate and everything else, where that can be seen


@dataclass(frozen=True, slots=True)
class Found:
    costs: Costs
    keeper_us: float
    replica_us: float  # of all replicas
    wire_bytes: float
    batch: float  # claims that shared a call to the gate
    accepted_per_s: float


@asynccontextmanager
async def several(set_up: SetUp) -> AsyncIterator[tuple[BenchPlace, LocalCluster]]:
    """A cluster instead of the one server."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True)))
        cluster = LocalCluster(folder, primaries=set_up.primaries, replicas=set_up.replicas)
        stack.push_async_callback(cluster.stop)
        await cluster.start()
        yield bench_place(folder, cluster.url, cluster.nodes[0].pid, set_up.replicas), cluster


@asynccontextmanager
async def apart() -> AsyncIterator[BenchPlace]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True)))
        name = namespace()
        stack.callback(subprocess.run, ["ip", "netns", "del", name], check=True)
        program = folder / "valkey-server"
        program.write_text(f'#!/bin/sh\nexec ip netns exec {name} "{find_server()}" "$@"\n')
        program.chmod(0o700)
        options = {"port": str(GATE_PORT), "bind": GATE_HOST, "protected-mode": "no"}
        valkey = EmbeddedValkey(folder, durability="strict", program=program, options=options)
        stack.push_async_callback(valkey.stop)
        await valkey.start()
        await valkey.ready()
        yield bench_place(folder, f"redis://{GATE_HOST}:{GATE_PORT}", valkey.pid, 0)


def namespace() -> str:
    """With a pair of interfaces, of which ours is named like it."""
    name = f"sk{os.getpid()}"
    for command in (
        f"ip netns add {name}",
        f"ip link add {name} type veth peer name gate netns {name}",
        f"ip addr add {OUR_HOST}/24 dev {name}",
        f"ip link set {name} up",
        f"ip -n {name} addr add {GATE_HOST}/24 dev gate",
        f"ip -n {name} link set gate up",
    ):
        subprocess.run(command.split(), check=True)
    return name


def can_be_apart() -> bool:
    name = f"sk{os.getpid()}"
    done = subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True).returncode == 0
    return done and subprocess.run(["ip", "link", "show", name], check=False, capture_output=True).returncode != 0


def bench_place(folder: Path, redis_url: str, pid: int, replica_acks: int) -> BenchPlace:
    settings = Settings(
        redis_url=redis_url,
        database_url=f"sqlite:///{folder / 'ledger.db'}",
        data_dir=folder,
        jwt_secret=Secret(secrets.token_urlsafe(32)),
        admin_key=Secret(secrets.token_urlsafe(32)),
        replica_acks=replica_acks,
    )
    return BenchPlace(settings=settings, folder=folder, valkey_pid=pid)


def wire_bytes() -> int:
    folder = Path(f"/sys/class/net/sk{os.getpid()}/statistics")
    try:
        return sum(int((folder / name).read_text()) for name in ("rx_bytes", "tx_bytes"))
    except OSError:
        return 0


def cpu(info: Mapping[str, float]) -> float:
    return info["used_cpu_user"] + info["used_cpu_sys"]


async def replicas_cpu_s(cluster: LocalCluster | None) -> float:
    if cluster is None:
        return 0.0
    all_s = [await node.facts("cpu") for node in cluster.nodes]
    primaries = [await node.facts("cpu") for node in await cluster.primaries()]

    def together(facts: Sequence[Mapping[str, str]]) -> float:
        return sum(cpu({name: float(each[name]) for name in ("used_cpu_user", "used_cpu_sys")}) for each in facts)

    return together(all_s) - together(primaries)


async def asked_again(ask: Callable[[], Awaitable[T]]) -> T:
    """On a machine that is full, an answer may be too late."""
    for _ in range(5):
        with contextlib.suppress(SeckillError):
            return await ask()
    return await ask()


async def used(running: Running, cluster: LocalCluster | None) -> Used:
    await asyncio.sleep(TOLD_S)
    _, seen = await asked_again(running.engine.board.reports)
    reports = [one.report for one in seen]
    servers = open_servers(running.place.settings.redis_url)
    try:
        infos = [await server.client.info("everything") for server in await servers.primaries()]
    finally:
        await servers.close()
    return Used(
        at_s=time.monotonic(),
        **{role: sum(each.cpu_s for each in reports if each.role == role) for role in ("api", "worker", "keeper")},
        gate=sum(map(cpu, infos)),
        replicas=await replicas_cpu_s(cluster),
        claims=sum(each.claims for each in reports if each.role == "api"),
        written=sum(each.recorded for each in reports),
        gate_bytes=sum(int(info["used_memory"]) for info in infos),
        wire_bytes=wire_bytes(),
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


async def batches(running: Running) -> Mapping[str, float]:
    return metrics_in([await running.metrics()])


async def measured(set_up: SetUp, seconds: float) -> Found:
    roles: list[Role] = ["worker", "keeper"]
    roles.extend("api" for _ in range(set_up.api))
    async with AsyncExitStack() as stack:
        cluster: LocalCluster | None = None
        if set_up.primaries:
            here, cluster = await stack.enter_async_context(several(set_up))
        elif set_up.apart:
            here = await stack.enter_async_context(apart())
        else:
            here = await stack.enter_async_context(place(""))
        more = {"SECKILL_REPLICA_ACKS": str(set_up.replicas)}
        running = await stack.enter_async_context(engine_on(here, roles, **more))
        path = running.path(await sale_with(running, set_up.lanes))
        tokens = make_tokens(here.settings, seconds + 1)
        early = int(len(tokens) / (seconds + 1))
        await load(running.address, write_lines(here.folder / "early", path, tokens[:early]), seconds=1)
        lines = write_lines(here.folder / "lines", path, tokens[early:])
        idle = await used(running, cluster)
        await asyncio.sleep(IDLE_S)
        began, batches_before = await used(running, cluster), await batches(running)
        seen = await load(running.address, lines, seconds=seconds)
        after = await used(running, cluster)
        give_up_s = time.monotonic() + WRITTEN_WITHIN_S
        while after.written - began.written < seen.answers - seen.refusals and time.monotonic() < give_up_s:
            after = await used(running, cluster)
        batches_after = await batches(running)
        return found(idle, began, after, batches_before, batches_after, seen.accepted_per_s)


def found(
    idle: Used,
    began: Used,
    after: Used,
    batches_before: Mapping[str, float],
    batches_after: Mapping[str, float],
    accepted_per_s: float,
) -> Found:
    claims, written = after.claims - began.claims, after.written - began.written
    if not claims or not written:
        raise StartError("Nothing was accepted in that time: give it more SECONDS, on a quieter machine.")

    def each_us(part: str, over: int) -> float:
        """Without what it uses when nobody is there."""
        quiet = (getattr(began, part) - getattr(idle, part)) / (began.at_s - idle.at_s)
        spent = getattr(after, part) - getattr(began, part) - quiet * (after.at_s - began.at_s)
        return max(0.0, float(spent)) / over * 1e6

    calls, in_calls = (
        batches_after[name] - batches_before[name]
        for name in ("seckill_admit_batch_size_count", "seckill_admit_batch_size_sum")
    )
    return Found(
        costs=Costs(
            api_us=each_us("api", claims),
            worker_us=each_us("worker", written),
            gate_us=each_us("gate", claims),
            gate_bytes=(after.gate_bytes - began.gate_bytes) / written,
        ),
        keeper_us=each_us("keeper", claims),
        replica_us=each_us("replicas", claims),
        wire_bytes=(after.wire_bytes - began.wire_bytes) / claims,
        batch=in_calls / max(calls, 1),
        accepted_per_s=accepted_per_s,
    )


PARTS = ("api_us", "gate_us", "worker_us")


@dataclass(frozen=True, slots=True)
class Middle:
    """Of the turns of a set-up."""

    parts: Mapping[str, float]
    batch: float
    gate_bytes: float
    keeper_us: float
    replica_us: float
    wire_bytes: float
    accepted_per_s: float


def middle(turns: Sequence[Found]) -> Middle:
    def of(name: str) -> float:
        return float(statistics.median(getattr(turn, name) for turn in turns))

    def of_costs(name: str) -> float:
        return float(statistics.median(getattr(turn.costs, name) for turn in turns))

    return Middle(
        parts={part: of_costs(part) for part in PARTS},
        batch=of("batch"),
        gate_bytes=of_costs("gate_bytes"),
        keeper_us=of("keeper_us"),
        replica_us=of("replica_us"),
        wire_bytes=of("wire_bytes"),
        accepted_per_s=of("accepted_per_s"),
    )


Law = Mapping[str, tuple[float, float]]  # of each part: µs a claim, µs a call


def law(seen: Sequence[Middle]) -> Law:
    """The straight line over calls a claim that is nearest to what was measured."""
    found = {}
    calls = [1 / each.batch for each in seen]
    for part in PARTS:
        costs = [each.parts[part] for each in seen]
        call_us = max(0.0, statistics.linear_regression(calls, costs).slope)  # a call costs nobody less than nothing
        found[part] = (statistics.mean(costs) - call_us * statistics.mean(calls), call_us)
    return found


def predicted(by: Law, batch: float) -> dict[str, float]:
    return {part: claim_us + call_us / batch for part, (claim_us, call_us) in by.items()}


def show(set_up: SetUp, seen: Middle, by: Law) -> None:
    """Measured, predicted, and by how much that is off."""
    expected = predicted(by, seen.batch)
    total, foreseen = sum(seen.parts.values()), sum(expected.values())
    columns = [f"{seen.parts[part]:4.0f} {expected[part]:4.0f}" for part in PARTS]
    print(
        f"{set_up}  {'   '.join(columns)}   {total:4.0f} {foreseen:4.0f} {foreseen / total - 1:+5.0%}  "
        f"{seen.batch:5.0f}  {seen.replica_us:7.0f}  "
        f"{seen.keeper_us:6.0f}  {seen.gate_bytes:5.0f}  {seen.wire_bytes:5.0f}  {seen.accepted_per_s:10,.0f}",
        flush=True,
    )


async def main(seconds: float, times: int, only: str) -> None:
    others = [each for each in OTHERS if only in str(each) and (not each.apart or can_be_apart())]
    set_ups = [*ONE_SERVER, *others]
    print(f"{generator()}, {CONNECTIONS} connections, {seconds:g} s, medians of {times}; load {os.getloadavg()[0]:.1f}")
    turns: dict[SetUp, list[Found]] = {each: [] for each in set_ups}
    for turn in range(times):
        for each in set_ups:
            turns[each].append(await measured(each, seconds))
        print(f"after turn {turn + 1} of {times}, load {os.getloadavg()[0]:.1f}")
        tell(turns)


def tell(turns: Mapping[SetUp, Sequence[Found]]) -> None:
    found = {set_up: middle(each) for set_up, each in turns.items()}
    by = law([found[each] for each in ONE_SERVER])
    for part, (claim_us, call_us) in by.items():
        print(f"{part}: {claim_us:.1f} a claim, {call_us:.0f} a call")
    print(
        "API  lanes  primaries                         API µs      gate µs     worker µs   all         off    "
        "batch  replica  keeper  bytes   wire  accepted/s"
    )
    for set_up, seen in found.items():
        show(set_up, seen, by)
    gate_bytes = statistics.median(each.gate_bytes for each in found.values())
    planned = Costs(gate_bytes=gate_bytes, **predicted(by, PLANNED_BATCH))
    for rate in RATES:
        print(asdict(needs(rate, planned)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seconds", type=float, nargs="?", default=3)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="", help="set-ups whose row has this word, such as cluster or apart")
    options = parser.parse_args()
    asyncio.run(main(options.seconds, options.times, options.only))
