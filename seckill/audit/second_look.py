"""Whatever looks wrong is looked at once more before anybody is told: it may have been on its way from one store to the
other, or read from a server that is just being replaced."""

import asyncio

from seckill.audit.gate import GateReader

BEFORE_SECOND_LOOK_S = 0.1
# Where one server may take the place of another: Sentinels tell each other of a new primary every two seconds, nodes of
# a cluster every second, and a keeper notices within one what a new primary lacks.
BEFORE_SECOND_LOOK_ELSEWHERE_S = 3.0


async def look_again(gate: GateReader) -> None:
    """Before the second look: late enough, and over its own connections."""
    await asyncio.sleep(BEFORE_SECOND_LOOK_S if gate.lasting else BEFORE_SECOND_LOOK_ELSEWHERE_S)
    await gate.drop_connections()
