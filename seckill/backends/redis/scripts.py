"""The gate's Lua scripts."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from redis import exceptions

from seckill.backends.redis.server_calls import Line, execute

_SCRIPTS = files("seckill.backends.redis") / "lua"


class Script:
    """One Lua file, or several put together. It is called by its hash and loaded again when the server has forgotten
    it."""

    def __init__(self, *names: str) -> None:
        self.source = "\n".join((_SCRIPTS / f"{name}.lua").read_text() for name in names)
        self._sha: str | None = None

    async def call(self, line: Line, keys_: Sequence[str], args: Sequence[object]) -> Any:
        return (await self.call_and(line, keys_, args))[0]

    async def call_and(
        self, line: Line, keys_: Sequence[str], args: Sequence[object], *then: Sequence[object]
    ) -> list[Any]:
        """Returns the script's reply and, in the same round trip, the replies to the commands after it. An error among
        the latter is returned, not raised."""
        if self._sha is None:
            self._sha = await self._load(line)
        try:
            return await self._send(line, keys_, args, then)
        except exceptions.NoScriptError:  # nothing was run, so running it now does not repeat anything
            self._sha = await self._load(line)
            return await self._send(line, keys_, args, then)

    async def _send(self, line: Line, keys_: Sequence[str], args: Sequence[object], then: Any) -> list[Any]:
        replies = await line.send([("EVALSHA", self._sha, len(keys_), *keys_, *args), *then])
        if isinstance(replies[0], exceptions.ResponseError):
            raise replies[0]
        return replies

    async def _load(self, line: Line) -> str:
        sha: bytes = await execute(line, "SCRIPT LOAD", self.source)
        return sha.decode()
