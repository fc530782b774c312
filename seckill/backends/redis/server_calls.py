"""Calls to a server of the gate, each over a connection that is reserved for its duration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redis import exceptions

from seckill.backends.redis.servers import Server


@dataclass(frozen=True, slots=True)
class Line:
    """A connection that is reserved for one call, and the server at its other end."""

    connection: Any
    server: Server

    async def send(self, commands: Sequence[Sequence[object]]) -> list[Any]:
        """Returns one reply for each command. An error reply is returned, not raised."""
        await self.connection.send_packed_command(self.connection.pack_commands(commands))
        replies: list[Any] = []
        for _ in commands:  # read all replies even after an error: the next caller would get the rest
            try:
                replies.append(await self.connection.read_response())
            except exceptions.ResponseError as error:
                replies.append(error)
        return replies


async def execute(line: Line, *command: object) -> Any:
    return (await pipeline(line, [command]))[0]


async def pipeline(
    line: Line, commands: Sequence[Sequence[object]], given: Callable[[object], bool] = lambda _: False
) -> list[Any]:
    """Returns one reply for each command. An error reply is raised, unless it is of a kind in `given`."""
    replies = await line.send(commands)
    for reply in replies:
        if isinstance(reply, exceptions.ResponseError) and not given(reply):
            raise reply
    return replies
