"""On which server a lane is at home. Another one than before may lack the newest orders: it admits no one until the
keeper has compared it with the ledger and vouched for it."""

from datetime import UTC, datetime

from seckill.backends.redis import keys
from seckill.backends.redis.server_calls import Line, execute, pipeline
from seckill.backends.redis.servers import Servers
from seckill.backends.redis.suitability import parse_info
from seckill.errors import GateUnavailable

# More than a lane admits in a second, and few of the 16 million that a lane has for a day.
NUMBERS_PASSED_OVER = 65_536


async def read(line: Line, lane: int) -> tuple[str, str | None]:
    """Which server this is and since when it is the primary, and the one that the keeper has vouched for. A server gets
    another replication id whenever it takes over or is started: one that was replaced, and takes over again from the
    one that replaced it, has that one's data and not what it had itself."""
    info, home = await pipeline(line, [("INFO", "replication"), ("GET", keys.home(lane))])
    reign = f"{line.server.name} {parse_info(info).get('master_replid', '')}"
    return reign, None if home is None else home.decode()


async def require(line: Line, lane: int, servers: Servers) -> None:
    """Asked once over each connection, and again when one server was seen to take the place of another."""
    vouched, changes = line.connection.vouched, servers.changes
    if servers.lasting or vouched.get(lane) == changes:
        return
    reign, home = await read(line, lane)
    if home is None:  # then no round was ever opened here, as the script will say
        return
    if home not in (reign, reign + keys.COMPARED_ONCE):
        raise GateUnavailable("The gate's data is on another server now, which the keeper has to compare first.")
    vouched[lane] = changes


async def vouch(line: Line, lane: int, server: str, *, for_good: bool) -> None:
    reign, _ = await read(line, lane)
    if reign != server:  # it has moved on meanwhile, and has to be compared again
        return
    if for_good:
        await execute(line, "SET", keys.home(lane), server)
        return
    seconds, _ = await execute(line, "TIME")
    today = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y%m%d")
    # The server before may have given out numbers, in this very second, that are not known here.
    passed_over = ("HINCRBY", keys.days(lane), today, NUMBERS_PASSED_OVER)
    await pipeline(line, [passed_over, ("SET", keys.home(lane), server + keys.COMPARED_ONCE)])


async def settle_in(line: Line, lane: int) -> None:
    """Notes where a lane is before there is anything in it, so that any server with its rounds has the note too."""
    reign, home = await read(line, lane)
    if home is None:
        await execute(line, "SET", keys.home(lane), reign, "NX")
