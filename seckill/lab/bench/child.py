"""Runs a server to compare a figure with, in a process that ends when the measurement does, or when we die."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from seckill.local.tether import tethered


@asynccontextmanager
async def child(
    command: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    quiet: bool = False,
) -> AsyncIterator[int]:
    """Yields its pid. `quiet`: discards its output."""
    process = await asyncio.create_subprocess_exec(
        *tethered(command),
        env=environ,
        pass_fds=pass_fds,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL if quiet else None,
        stderr=asyncio.subprocess.DEVNULL if quiet else None,
        start_new_session=True,
    )
    try:
        yield process.pid
    finally:
        # Kills the whole group, because some servers start further processes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        await process.wait()
