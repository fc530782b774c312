"""Calls to a server of the gate, over a connection that is ours for so long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redis import exceptions

from seckill.backends.redis.servers import Server


@dataclass(frozen=True, slots=True)
class Line:
    """A connection that is ours for one call, and the server at its other end."""

    connection: Any
    server: Server

    async def send(self, commands: Sequence[Sequence[object]]) -> list[Any]:
        """One reply for each command; an error reply is given, not raised."""
        await self.connection.send_packed_command(self.connection.pack_commands(commands))
        replies: list[Any] = []
        for _ in commands:  # all of them, also after an error, or the rest would be the next caller's
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
    """One reply for each command. An error reply is raised, unless it is one to be `given`."""
    replies = await line.send(commands)
    for reply in replies:
        if isinstance(reply, exceptions.ResponseError) and not given(reply):
            raise reply
    return replies
