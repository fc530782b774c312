"""Delivering alarms to the address that the operator has set: one after the other, tried again until they are taken.

Nobody who raises one waits for it. What cannot be delivered waits in memory, in a bounded space, and is given up after
an hour: it is in the log as well."""

import asyncio
import json
import random
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException

import structlog

from seckill.telemetry import ALARMS

log = structlog.get_logger()

TIMEOUT_S = 5.0
RETRY_S_MIN = 1.0
RETRY_S_MAX = 60.0
GIVE_UP_AFTER_S = 3600.0
# Of one kind that wait to be sent. What comes on top is counted in the last of them: a thousand orders that fail for
# the same reason are one piece of news.
SAME_WAITING_MAX = 20


@dataclass(slots=True)
class _Waiting:
    message: Mapping[str, object]
    since_s: float
    more: int = 0

    def body(self) -> bytes:
        return json.dumps({**self.message, **({"more": self.more} if self.more else {})}, default=str).encode()


class AlarmPost:
    def __init__(self, url: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._monotonic = monotonic
        self._waiting: deque[_Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None

    def put(self, message: Mapping[str, object]) -> None:
        kind = _kind(message)
        same = [each for each in self._waiting if _kind(each.message) == kind]
        if len(same) >= SAME_WAITING_MAX:
            same[-1].more += 1
            return
        self._waiting.append(_Waiting(message, self._monotonic()))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())

    async def drain(self, within_s: float) -> None:
        """What is still to be sent, as far as the time allows."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=within_s)
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        if self._waiting:
            log.error("alarms were not delivered", count=len(self._waiting))

    async def _send_all(self) -> None:
        retry_s = RETRY_S_MIN
        while self._waiting:
            first = self._waiting[0]
            failure = await self._send(first)
            if failure is None:
                ALARMS.labels("delivered").inc()
                retry_s = RETRY_S_MIN
            elif self._monotonic() - first.since_s > GIVE_UP_AFTER_S:
                ALARMS.labels("given_up").inc()
                log.error("an alarm could not be delivered, and is given up", reason=failure)
            else:
                ALARMS.labels("failed").inc()
                if retry_s == RETRY_S_MIN:
                    log.warning("an alarm could not be delivered, and is tried again", reason=failure)
                await asyncio.sleep(retry_s * random.uniform(0.5, 1.0))  # noqa: S311 (jitter, not a secret)
                retry_s = min(2 * retry_s, RETRY_S_MAX)
                continue
            self._waiting.popleft()

    async def _send(self, waiting: _Waiting) -> str | None:
        """Why it was not taken; None: it was."""
        try:
            async with asyncio.timeout(2 * TIMEOUT_S):  # also when it answers, but byte by byte
                await asyncio.to_thread(self._post, waiting.body())
        except (OSError, ValueError, HTTPException) as error:
            return str(error) or type(error).__name__
        return None

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310 (checked)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310 (http or https by the settings)
            pass


def _kind(message: Mapping[str, object]) -> tuple[object, object]:
    return message.get("alarm"), message.get("resolved")
