"""Calls a payment provider's API. Each call ends within a deadline, and no redirect is followed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from seckill.errors import ProviderUnavailable

WITHIN_S = 10.0
# Connections of one process at a time. A caller who waits for one longer than the deadline is told that the provider is
# away.
CONNECTIONS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReply:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class ProviderHttp:
    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._client: httpx.AsyncClient | None = None

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> ProviderReply:
        """Raises ProviderUnavailable. Its message contains nothing of what was sent."""
        if self._client is None:  # opened only when it is needed, because that loads all certificates
            limits = httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX)
            self._client = httpx.AsyncClient(timeout=WITHIN_S, limits=limits, follow_redirects=False)
        try:
            async with asyncio.timeout(WITHIN_S):
                answer = await self._client.request(method, url, headers=dict(headers), content=body)
        except TimeoutError:
            raise ProviderUnavailable(f"{self._whose} did not answer within {WITHIN_S:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ProviderUnavailable(f"{self._whose} cannot be reached ({type(error).__name__}).") from error
        lower = {name.lower(): value for name, value in answer.headers.items()}
        return ProviderReply(status=answer.status_code, headers=lower, body=answer.content)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None
