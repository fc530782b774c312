"""Anything that looks wrong is checked once more before it is reported: it may have been on its way from one store to
the other, or read from a server that is just being replaced."""

import asyncio

from seckill.audit.gate import GateReader

BEFORE_SECOND_LOOK_S = 0.1
# The pause where one server may replace another: Sentinels tell each other about a new primary every two seconds, and
# nodes of a cluster every second, and a keeper notices within one second what a new primary lacks.
BEFORE_SECOND_LOOK_ELSEWHERE_S = 3.0


async def look_again(gate: GateReader) -> None:
    """Prepares the second look: waits long enough, and makes it use new connections."""
    await asyncio.sleep(BEFORE_SECOND_LOOK_S if gate.lasting else BEFORE_SECOND_LOOK_ELSEWHERE_S)
    await gate.drop_connections()
