"""Finds out which commands our user may run on a server.

A server with users (ACL) may forbid some commands or keys, and a managed one may have renamed some. Inside MULTI, every
command is checked when it is queued, and DISCARD drops them all: so all are tried and none is carried out.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redis import exceptions

from seckill.backends.redis import keys
from seckill.errors import StartError

# Returns one reply for each command, all over one connection. An error reply is returned, not raised.
Send = Callable[[Sequence[Sequence[object]]], Awaitable[list[Any]]]


@dataclass(frozen=True, slots=True)
class _NoRound:
    id: int = 0
    lane: int = 0


_ROUND = keys.round_(_NoRound())
_STREAM = keys.orders(0)
_GROUP = keys.WORKERS_GROUP
# Every command that our scripts and clients send to a server.
NEEDED: tuple[tuple[object, ...], ...] = (
    ("DEL", _ROUND),
    ("EVAL", "return 1", 1, _ROUND),
    ("EVALSHA", "0" * 40, 1, _ROUND),
    ("EVALSHA_RO", "0" * 40, 1, _ROUND),
    ("EXISTS", _ROUND),
    ("EXPIRE", _ROUND, 1),
    ("GET", keys.LEDGER),
    ("HDEL", _ROUND, "x"),
    ("HGET", _ROUND, "x"),
    ("HGETALL", _ROUND),
    ("HINCRBY", _ROUND, "x", 1),
    ("HKEYS", _ROUND),
    ("HLEN", _ROUND),
    ("HMGET", _ROUND, "x"),
    ("HSCAN", _ROUND, 0),
    ("HSET", _ROUND, "x", 1),
    ("HVALS", _ROUND),
    ("INFO",),
    ("PING",),
    ("PUBLISH", keys.STATES_CHANNEL, ""),
    ("PUBLISH", keys.VERSIONS_CHANNEL, ""),
    ("SCRIPT LOAD", "return 1"),
    ("SET", keys.LEDGER, "x", "NX"),
    ("TIME",),
    ("TYPE", _ROUND),
    ("UNLINK", _ROUND),
    ("XACK", _STREAM, _GROUP, "0-1"),
    ("XADD", _STREAM, "*", "x", 1),
    ("XAUTOCLAIM", _STREAM, _GROUP, "x", 1, 0),
    ("XCLAIM", _STREAM, _GROUP, "x", 0, "0-1"),
    ("XDEL", _STREAM, "0-1"),
    ("XGROUP CREATE", _STREAM, _GROUP, 0),
    ("XGROUP DELCONSUMER", _STREAM, _GROUP, "x"),
    ("XGROUP SETID", _STREAM, _GROUP, 0),
    ("XINFO CONSUMERS", _STREAM, _GROUP),
    ("XINFO GROUPS", _STREAM),
    ("XINFO STREAM", _STREAM),
    ("XLEN", _STREAM),
    ("XPENDING", _STREAM, _GROUP),
    ("XRANGE", _STREAM, "-", "+"),
    ("XREADGROUP", "GROUP", _GROUP, "x", "STREAMS", _STREAM, ">"),
    ("ZADD", keys.NODES_SEEN, 1, "x"),
    ("ZRANGE", keys.NODES_SEEN, 0, -1),
    ("ZRANGEBYSCORE", keys.NODES_SEEN, 0, 1),
    ("ZREM", keys.NODES_SEEN, "x"),
)


async def check_rights(send: Send) -> None:
    missing = await refused(send, NEEDED)
    if missing:
        raise StartError(
            f"The user of SECKILL_REDIS_URL may not run {', '.join(missing)} on seckill's keys there: allow it "
            "(ACL SETUSER, or the settings of the provider), or use a server that has these commands."
        )


async def refused(send: Send, commands: tuple[tuple[object, ...], ...]) -> list[str]:
    """Returns the commands that the server would not run for us. Other errors are no objection to a command.

    Makes two calls, however many commands there are: even over a slow network, the whole check must take no longer than
    a claim may."""
    (begun,) = await send([("MULTI",)])
    if isinstance(begun, exceptions.ResponseError):
        return ["MULTI"]
    # A second, empty transaction shows whether EXEC is allowed.
    *replies, _, executed, _ = await send([*commands, ("DISCARD",), ("MULTI",), ("EXEC",), ("DISCARD",)])
    tried = zip((*commands, ("DISCARD",), ("EXEC",)), (*replies, executed), strict=True)
    return sorted({str(command[0]) for command, reply in tried if _is_refusal(reply)})


def _is_refusal(reply: object) -> bool:
    unknown = isinstance(reply, exceptions.ResponseError) and str(reply).lower().startswith("unknown command")
    # The refusal of EXEC itself comes wrapped, because it ends the transaction.
    wrapped = isinstance(reply, exceptions.ExecAbortError) and "NOPERM" in str(reply)
    return unknown or wrapped or isinstance(reply, exceptions.NoPermissionError)
