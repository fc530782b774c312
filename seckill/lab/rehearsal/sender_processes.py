"""The processes that send the crowd."""

import asyncio
import os
import resource
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from seckill.errors import StartError
from seckill.lab.rehearsal.crowd import Phase
from seckill.lab.rehearsal.sender_messages import PhaseOrders, PhaseSeen, SenderOrders, together
from seckill.local.tether import tethered

SENDERS_MAX = 64
# A delay with which all senders begin at the same moment, however busy the machine is.
BEGINS_AFTER_S = 0.3
# An answer of a sender may be long.
LINE_BYTES_MAX = 1 << 20
# How many of the files that a process may have open are kept for other uses than connections.
FILES_KEPT = 64
CONNECTIONS_MAX = 20_000


def connections_max() -> int:
    """Returns how many connections each sender may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = CONNECTIONS_MAX if hard == resource.RLIM_INFINITY else hard - FILES_KEPT
    return max(1, min(CONNECTIONS_MAX, allowed))


class Senders:
    def __init__(self, processes: list[asyncio.subprocess.Process]) -> None:
        self._processes = processes

    async def play(self, phase: Phase) -> PhaseSeen:
        """Lets each sender send its share."""
        share = msgspec.structs.replace(phase, rate=phase.rate / len(self._processes))
        orders = msgspec.json.encode(PhaseOrders(phase=share, begins_s=time.time() + BEGINS_AFTER_S)) + b"\n"
        return together(await asyncio.gather(*(_told(process, orders) for process in self._processes)))


async def _told(process: asyncio.subprocess.Process, orders: bytes) -> PhaseSeen:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(orders)
    line = await process.stdout.readline()
    if not line:
        raise StartError("A process that sends the crowd has ended: see above for why, and try again.")
    return msgspec.json.decode(line, type=PhaseSeen)


@asynccontextmanager
async def senders(orders: SenderOrders) -> AsyncIterator[Senders]:
    """Starts as many senders as the orders say. They end with us."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    processes: list[asyncio.subprocess.Process] = []
    try:
        for number in range(orders.senders):
            command = tethered([sys.executable, "-m", "seckill.lab.rehearsal.sender"])
            process = await asyncio.create_subprocess_exec(
                *command,
                env=environ,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=LINE_BYTES_MAX,
            )
            processes.append(process)
            assert process.stdin is not None
            own = msgspec.structs.replace(orders, number=number)
            process.stdin.write(msgspec.json.encode(own) + b"\n")
        yield Senders(processes)
    finally:
        for process in processes:
            if process.returncode is None:
                process.terminate()
        for process in processes:
            await process.wait()
