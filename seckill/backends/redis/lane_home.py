"""Remembers on which server a lane is at home. If another server has it now, that one may lack the newest orders: it
admits no one until the keeper has compared it with the ledger and vouched for it."""

from datetime import UTC, datetime

from seckill.backends.redis import keys
from seckill.backends.redis.server_calls import Line, execute, pipeline
from seckill.backends.redis.servers import Servers
from seckill.backends.redis.suitability import parse_info
from seckill.errors import GateUnavailable

# More than a lane admits in a second, and few of the 16 million numbers that a lane has for a day.
NUMBERS_PASSED_OVER = 65_536


async def read(line: Line, lane: int) -> tuple[str, str | None]:
    """Returns this server's name with its replication id, and the value of the server that the keeper has vouched for.
    A server gets a new replication id whenever it is started or takes over. So one that was replaced and later takes
    over again is told apart: it has the data of the server that had replaced it, not its own from before."""
    info, home = await pipeline(line, [("INFO", "replication"), ("GET", keys.home(lane))])
    reign = f"{line.server.name} {parse_info(info).get('master_replid', '')}"
    return reign, None if home is None else home.decode()


async def require(line: Line, lane: int, servers: Servers) -> None:
    """Requires that the keeper has vouched for this server. Asks once for each connection, and again after one server
    was seen to replace another."""
    vouched, changes = line.connection.vouched, servers.changes
    if servers.lasting or vouched.get(lane) == changes:
        return
    reign, home = await read(line, lane)
    if home is None:  # no round was ever opened here, as the script will say
        return
    if home not in (reign, reign + keys.COMPARED_ONCE):
        raise GateUnavailable("The gate's data is on another server now, which the keeper has to compare first.")
    vouched[lane] = changes


async def vouch(line: Line, lane: int, server: str, *, for_good: bool) -> None:
    reign, _ = await read(line, lane)
    if reign != server:  # the lane has moved again meanwhile and has to be compared again
        return
    if for_good:
        await execute(line, "SET", keys.home(lane), server)
        return
    seconds, _ = await execute(line, "TIME")
    today = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y%m%d")
    # The previous server may have given out numbers in this very second that are not known here.
    passed_over = ("HINCRBY", keys.days(lane), today, NUMBERS_PASSED_OVER)
    await pipeline(line, [passed_over, ("SET", keys.home(lane), server + keys.COMPARED_ONCE)])


async def settle_in(line: Line, lane: int) -> None:
    """Notes where a lane is before anything is in it, so that every server with its rounds has the note too."""
    reign, home = await read(line, lane)
    if home is None:
        await execute(line, "SET", keys.home(lane), reign, "NX")
