"""Resolves the host names of receivers with the system's resolver.

The system may take long to fail, and a thread is busy for as long, even if the caller has stopped waiting. So lookups
have threads of their own, and each name uses at most one of them at a time, however many deliveries wait for it: a name
that cannot be resolved does not hold up any other.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address

from seckill.domain.webhook_target import Address

# As many as there may be endpoints.
AT_ONCE_MAX = 50


class SystemNames:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="names")
        self._asked: dict[str, asyncio.Future[list[Address]]] = {}  # by name, until there is an answer

    async def __call__(self, host: str) -> list[Address]:
        """Raises OSError."""
        asked = self._asked.get(host)
        if asked is None:
            asked = asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host)
            self._asked[host] = asked
            asked.add_done_callback(partial(self._answered, host))
        return await asyncio.shield(asked)

    def _answered(self, host: str, asked: "asyncio.Future[list[Address]]") -> None:
        del self._asked[host]
        if not asked.cancelled():
            asked.exception()  # marks the error as seen: there may be no caller left


def _look_up(host: str) -> list[Address]:
    return [ip_address(place[0]) for *_, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
