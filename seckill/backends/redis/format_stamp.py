"""The format of the gate's keys and stream entries, stored beside them for later versions to read.

A format is new only when an earlier version would misread it; a key or a field that earlier versions do not look at
makes no new format. A release writes only what the release before it can read, so that both may run side by side:
docs/upgrades.md.
"""

from typing import Any

from seckill import __version__
from seckill.backends.redis import keys
from seckill.backends.redis.scripts import Script
from seckill.backends.redis.server_calls import Line
from seckill.errors import StartError

# The newest format that this version can read: 2 has entries with several orders.
FORMAT = 2
# The format that a version must be able to read to work beside this one. It is raised when entries with several orders
# are allowed: streams.py.
NEEDS = 1

_STAMP = Script("stamp")
STAMP = _STAMP.source


async def stamp(line: Line) -> Any:
    return await _STAMP.call(line, [keys.FORMAT], [NEEDS, __version__])


def check_stamp(reply: list[bytes], where: str) -> None:
    needs, by = (part.decode(errors="replace") for part in reply)
    if int(needs) > FORMAT:
        raise StartError(
            f"Valkey/Redis at {where} holds what seckill {by} has written, and this version, {__version__}, cannot "
            "read it: install that one or a later one."
        )
