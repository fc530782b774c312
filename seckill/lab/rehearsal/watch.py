"""Reads the figures that every part of the deployment publishes while the crowd is there."""

import asyncio
import contextlib
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from redis import exceptions

from seckill.backends.redis.server_choice import open_servers
from seckill.client import ClientError
from seckill.client.connections import HttpTransport, Message
from seckill.errors import SeckillError
from seckill.lab.rehearsal.deployment import OperatorSite
from seckill.loops import Stop

EVERY_S = 1.0
ASK_WITHIN_S = 5.0
# Counters, of which only the sums over all labels are kept.
METRICS = (
    "seckill_admit_batch_size_sum",
    "seckill_admit_batch_size_count",
    "seckill_admit_seconds_sum",
    "seckill_admit_seconds_count",
    "seckill_record_batch_size_sum",
    "seckill_record_batch_size_count",
    "seckill_record_seconds_sum",
    "seckill_connections",
)
_SAMPLE = re.compile(r"^(\w+)(?:\{[^}]*\})? ([-+.\deE]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    role: str
    host: str
    at_s: float  # when it published this, by the gate's clock
    cpu_s: float
    memory_bytes: int
    claims: int
    recorded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFigures:
    """Figures of all primaries. CPU times are those of each one's main thread, which runs the scripts."""

    cpu_s: Sequence[float]
    memory_bytes: int
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReading:
    at_s: float
    nodes: Mapping[str, NodeFigures] = field(default_factory=dict)
    accepted: int | None = None
    persisted: int = 0
    backlog: int = 0
    lag_ms: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    gate: GateFigures | None = None
    cores: tuple[float, float] | None = None  # of this machine: seconds used, and seconds in total
    machine_cores: int | None = None


class Watch:
    """`metrics`: addresses at which other roles serve theirs. `redis_url`: the gate's address, if we know it."""

    def __init__(self, site: OperatorSite, sale_id: str, metrics: Sequence[str], redis_url: str) -> None:
        self._site = site
        self._sale_id = sale_id
        self._others = [HttpTransport(url.removesuffix("/metrics")) for url in metrics]
        self._servers = open_servers(redis_url) if redis_url and not redis_url.startswith("memory:") else None
        self._began_s = time.monotonic()
        self.readings: list[WatchReading] = []

    def now_s(self) -> float:
        return time.monotonic() - self._began_s

    async def close(self) -> None:
        for transport in self._others:
            await transport.close()
        if self._servers is not None:
            await self._servers.close()

    async def run(self, stop: Stop) -> None:
        while not await stop.wait(EVERY_S):
            live = await self._live()  # the other figures take the deployment longer
            self.readings.append(WatchReading(at_s=self.now_s(), **live))

    async def read(self) -> WatchReading:
        """Reads all figures. A part that does not answer is left out."""
        live, metrics, gate = await asyncio.gather(self._live(), self._metrics(), self._gate())
        reading = WatchReading(
            at_s=self.now_s(), metrics=metrics, gate=gate, cores=_cores(), machine_cores=os.cpu_count(), **live
        )
        self.readings.append(reading)
        return reading

    async def _live(self) -> dict[str, Any]:
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                told = await self._site.live()
        except (ClientError, TimeoutError):
            return {}
        nodes = {node["id"]: _node(node) for node in told["nodes"] if node["state"] == "ok"}
        ours = next((sale for sale in told["sales"] if sale["sale_id"] == self._sale_id), None)
        if ours is None:
            return {"nodes": nodes}
        return {
            "nodes": nodes,
            "accepted": ours["accepted_units"],
            "persisted": ours["persisted_units"],
            "backlog": ours["backlog"],
            "lag_ms": ours["lag_ms"],
        }

    async def _metrics(self) -> dict[str, float]:
        texts = [await self._site.text("/metrics", as_operator=True, within_s=ASK_WITHIN_S)]
        for transport in self._others:
            message = Message(method="GET", path="/metrics", headers={}, body=b"", repeatable=True)
            with contextlib.suppress(ClientError):
                reply = await transport.send(message, ASK_WITHIN_S)
                texts.append(reply.body.decode(errors="replace") if reply.status == 200 else None)
        return metrics_in([text for text in texts if text is not None])

    async def _gate(self) -> GateFigures | None:
        if self._servers is None:
            return None
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                found = [await server.client.info("everything") for server in await self._servers.primaries()]
        except (exceptions.RedisError, OSError, TimeoutError, SeckillError):
            return None
        return GateFigures(
            cpu_s=[
                info.get("used_cpu_user_main_thread", info["used_cpu_user"])
                + info.get("used_cpu_sys_main_thread", info["used_cpu_sys"])
                for info in found
            ],
            memory_bytes=sum(int(info["used_memory"]) for info in found),
            at_s=time.monotonic(),
        )


def metrics_in(texts: Sequence[str]) -> dict[str, float]:
    """Adds up the metrics of several processes."""
    found: dict[str, float] = {}
    for text in texts:
        for name, value in _SAMPLE.findall(text):
            if name in METRICS:
                found[name] = found.get(name, 0.0) + float(value)
    return found


def _node(told: Mapping[str, Any]) -> NodeFigures:
    return NodeFigures(
        role=told["role"],
        host=told["host"],
        at_s=datetime.fromisoformat(told["seen_at"]).timestamp(),
        cpu_s=told.get("cpu_s", 0.0),  # an older version does not report it
        memory_bytes=told.get("memory_bytes", 0),
        claims=told["claims"],
        recorded=told["recorded"],
    )


def here() -> str:
    return socket.gethostname()


def _cores() -> tuple[float, float] | None:
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return None
    idle = ticks[3] + ticks[4]
    return float(sum(ticks) - idle), float(sum(ticks))
