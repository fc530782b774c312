"""Measures bare answers of granian, the fastest HTTP server that pip installs; its HTTP code is compiled."""

import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seckill.lab.bench.child import child
from seckill.lab.bench.claim_lines import write_lines
from seckill.lab.bench.load import load
from seckill.lab.bench.place import until_answering
from seckill.lab.bench.services import ANSWER
from seckill.lab.servers.ports import HOST, free_port

HEADERS = [("content-type", "application/json")]


async def app(_scope: Any, protocol: Any) -> None:
    """Uses granian's own interface, which costs less than ASGI."""
    protocol.response_bytes(202, HEADERS, ANSWER)


@asynccontextmanager
async def granian() -> AsyncIterator[str]:
    """Runs one process and yields its address."""
    port = free_port()
    options = ["--interface", "rsgi", "--http", "1", "--no-ws", "--workers", "1", "--no-log"]
    where = ["--host", HOST, "--port", str(port)]
    async with child([sys.executable, "-m", "granian", *options, *where, f"{__name__}:app"]):
        address = f"http://{HOST}:{port}"
        await until_answering(address)
        yield address


async def native_http(seconds: float) -> float | None:
    """Returns None if granian is not installed."""
    if find_spec("granian") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        lines = write_lines(Path(folder) / "lines", "/v1/sales/0000000000000/orders", ["x" * 150])
        async with granian() as address:
            return (await load(address, lines, seconds=seconds, cycle=True)).per_s
