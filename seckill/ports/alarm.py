"""Telling people: a POST to an address that the operator has set. Best effort, and it never blocks other work."""

import asyncio
import json
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException

import structlog

log = structlog.get_logger()

TIMEOUT_S = 5.0


class Alarm:
    """Without an address, the log has to do."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def raise_(self, what: str, facts: Mapping[str, object]) -> None:
        log.critical(what, **facts)
        await self._tell({"alarm": what, **facts})

    async def resolve(self, what: str, facts: Mapping[str, object]) -> None:
        """The trouble that an alarm was raised for is over."""
        log.warning(what, **facts)
        await self._tell({"resolved": what, **facts})

    async def _tell(self, message: Mapping[str, object]) -> None:
        if self._url:
            try:
                async with asyncio.timeout(2 * TIMEOUT_S):  # also when it answers, but byte by byte
                    await asyncio.to_thread(self._post, json.dumps(message).encode())
            except (OSError, ValueError, HTTPException) as error:
                log.error("the alarm could not be delivered", reason=str(error))

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310 (checked)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310 (http or https by the settings)
            pass
