"""A primary with replicas, watched by Sentinels, which say which server is the primary now."""

import asyncio
from collections.abc import Sequence
from typing import Any

from redis import exceptions

from seckill.backends.redis.addresses import Address
from seckill.backends.redis.servers import CONNECTIONS_MAX, LOOK_UP_WITHIN_S, FoundServers, Server


class SentinelServers(FoundServers):
    def __init__(self, url: str, connections_max: int = CONNECTIONS_MAX) -> None:
        super().__init__(url, connections_max)
        self._epoch = -1
        self._primary: Server | None = None

    async def of(self, key: str) -> Server:
        await self._current()
        assert self._primary is not None
        return self._primary

    async def primaries(self) -> Sequence[Server]:
        return [await self.of("")]

    async def _look_up(self) -> None:
        """Asks all Sentinels: one that was cut off may still name a replaced primary."""
        found = await asyncio.gather(*map(self._ask, self.url.seeds), return_exceptions=True)
        failures = [failure for failure in found if isinstance(failure, BaseException)]
        answers = [answer for answer in found if not isinstance(answer, BaseException)]
        if not answers:
            raise failures[-1]
        epoch, (host, port) = max(answers)
        if epoch >= self._epoch:
            self._epoch = epoch
            primary = Server(f"{host}:{port}", self.client_at((host, port)))
            self.changes += primary != self._primary
            self._primary = primary

    async def _ask(self, seed: Address) -> tuple[int, Address]:
        name = self.url.name
        sentinel = self.client(self.url.of_sentinel(seed))
        try:
            async with asyncio.timeout(LOOK_UP_WITHIN_S):
                # Sent as two words, because for "SENTINEL MASTER" the library would reshape the reply.
                reply: Any = await sentinel.execute_command("SENTINEL", "MASTER", name)  # type: ignore[no-untyped-call]
        except exceptions.AuthenticationError:
            raise
        except exceptions.ResponseError as error:
            raise exceptions.ConnectionError(f"Sentinel watches no primary named {name!r}: {error}") from error
        except (exceptions.RedisError, OSError, TimeoutError) as error:
            raise exceptions.ConnectionError(f"no Sentinel answers, the last one said: {error!r}") from error
        facts = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
        return int(facts[b"config-epoch"]), (facts[b"ip"].decode(), int(facts[b"port"]))
