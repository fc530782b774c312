"""Sends claims as fast as the server answers. Uses wrk where it is installed, otherwise our own generator, which is
written in Python and may itself limit the figures."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import msgspec
import structlog

from seckill.errors import StartError

log = structlog.get_logger()

# Enough for claims to share batches: a client that waits for an answer sends nothing else, so no batch is larger than
# this.
CONNECTIONS = 500
ENDS_WITHIN_S = 60.0  # after its time is up: a generator that runs longer is stuck
_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the generator saw."""

    answers: int
    refusals: int  # how many of them were not 2xx
    took_s: float
    p50_ms: float
    p99_ms: float

    @property
    def per_s(self) -> float:
        return self.answers / self.took_s

    @property
    def accepted_per_s(self) -> float:
        return (self.answers - self.refusals) / self.took_s


def has_wrk() -> bool:
    return shutil.which("wrk") is not None


def generator() -> str:
    return "wrk" if has_wrk() else "our own generator (wrk was not found)"


async def load(address: str, lines: Path, *, seconds: float, cycle: bool = False) -> Load:
    """Sends the claims of the file `lines` over many connections for this many seconds, as fast as they are
    answered. If they are too few, it says so, because the server could have answered more."""
    environ = {**os.environ, "LINES": str(lines)} | ({"CYCLE": "1"} if cycle else {})
    seen = await _load(address, environ, seconds)
    if not cycle and seen.answers + CONNECTIONS > _count(lines):
        log.warning("the generator ran out of claims: more would have been answered", answers=seen.answers)
    return seen


def _count(lines: Path) -> int:
    return lines.read_bytes().count(b"\n")


async def _load(address: str, environ: Mapping[str, str], seconds: float) -> Load:
    if has_wrk():
        script = str(files("seckill.lab.bench") / "load.lua")
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", "--timeout", "30s", "--latency", "-s", script]
        return _of_wrk(await _output([*command, address], environ, seconds))
    return await _ours(address, seconds, environ)


async def crowd(address: str, lines: Path, *, seconds: float, per_s: float, connections: int) -> Load:
    """Sends the claims of `per_s` people every second, whatever the server does. A person who finds all `connections`
    taken waits for one."""
    environ = {**os.environ, "LINES": str(lines), "PER_S": f"{per_s:.1f}", "CONNECTIONS": str(connections)}
    return await _ours(address, seconds, environ)


async def _ours(address: str, seconds: float, environ: Mapping[str, str]) -> Load:
    command = [sys.executable, "-m", "seckill.lab.bench.generator", address, str(seconds)]
    return msgspec.json.decode(await _output(command, environ, seconds), type=Load)


async def _output(command: list[str], environ: Mapping[str, str], seconds: float) -> bytes:
    process = await asyncio.create_subprocess_exec(*command, env=environ, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(seconds + ENDS_WITHIN_S):
            output, _ = await process.communicate()
    except TimeoutError:
        raise StartError(f"{command[0]} should have ended after {seconds:.0f} s and did not: it was stopped.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise StartError(f"{command[0]} ended with {process.returncode}: run it by hand to see why.")
    return output


def _of_wrk(output: bytes) -> Load:
    text = output.decode()
    done = re.search(r"(\d+) requests in ([\d.]+)(\w+),", text)
    assert done is not None, text
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return Load(
        answers=int(done[1]),
        refusals=int(refused[1]) if refused else 0,
        took_s=float(done[2]) * _MS[done[3]] / 1000,
        p50_ms=_share(text, "50%"),
        p99_ms=_share(text, "99%"),
    )


def _share(text: str, share: str) -> float:
    found = re.search(rf"^ +{share} +([\d.]+)(us|ms|s|m) *$", text, re.MULTILINE)
    return round(float(found[1]) * _MS[found[2]], 2) if found else 0.0
