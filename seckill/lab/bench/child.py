"""A server that a figure is compared with, as a process of its own, gone at the end and gone when we are gone."""

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
    """Its pid. `quiet`: what it prints is for nobody."""
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
        # The whole group: some of them have processes of their own.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        await process.wait()
