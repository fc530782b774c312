"""Measures the time of `seckill up` from the command to the first accepted claim, and the memory of all its processes
at that moment."""

import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from seckill.client import NoAnswer
from seckill.client.connections import HttpTransport, Message
from seckill.errors import StartError
from seckill.lab.bench.child import child
from seckill.lab.bench.place import READY_WITHIN_S
from seckill.lab.bench.processes import children_of
from seckill.lab.bench.tokens import Tokens
from seckill.lab.servers.ports import HOST, free_port
from seckill.settings import Secret

POLL_S = 0.01
SETTLE_S = 1.0
MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    start_s: float
    memory_mb: float  # shared memory counts once; includes Valkey


async def startup() -> Startup:
    """Starts it on an empty data folder with the defaults: embedded Valkey, SQLite, two API processes, worker and
    keeper."""
    secret = Secret(secrets.token_urlsafe(32))
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as folder:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
        environ |= {"SECKILL_JWT_SECRET": secret.reveal(), "SECKILL_LOG_LEVEL": "error"}
        command = [sys.executable, "-m", "seckill", "up", "--demo", "--data", folder, "--port", str(port)]
        began_s = time.perf_counter()
        async with child(command, environ=environ, quiet=True) as pid:
            await _first_claim(f"http://{HOST}:{port}", Tokens(secret).of("first"))
            start_s = time.perf_counter() - began_s
            await asyncio.sleep(SETTLE_S)
            return Startup(start_s=start_s, memory_mb=sum(map(_proportional_bytes, _tree(pid))) / MB)


async def _first_claim(address: str, token: str) -> None:
    transport = HttpTransport(address)
    give_up_at_s = time.monotonic() + READY_WITHIN_S
    try:
        while not await _claimed(transport, token):
            if time.monotonic() > give_up_at_s:
                raise StartError("seckill up accepted no claim in time: try again on a quieter machine.")
            await asyncio.sleep(POLL_S)
    finally:
        await transport.close()


async def _claimed(transport: HttpTransport, token: str) -> bool:
    try:
        listed = await transport.send(Message(method="GET", path="/v1/sales", headers={}, body=b"", repeatable=True), 2)
        sales = msgspec.json.decode(listed.body)["sales"] if listed.status == 200 else []
        if not sales:
            return False
        message = Message(
            method="POST",
            path=f"/v1/sales/{sales[0]['id']}/orders",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            body=b"{}",
            repeatable=True,
        )
        return (await transport.send(message, 2)).status == 202
    except NoAnswer:
        return False


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for each in children_of(pid):
        yield from _tree(each)


def _proportional_bytes(pid: int) -> int:
    """Divides memory that several processes share among them."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # gone meanwhile, or not Linux
        return 0
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
