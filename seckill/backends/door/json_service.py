"""Calls other people's services with a deadline. It has at most one call under way for each thread; any further caller
is told at once that the service is away. So a service that hangs costs us nothing."""

import asyncio
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from seckill import http_call
from seckill.ports.door import QuestionRefused, ServiceAway

AT_ONCE_MAX = 32
ANSWER_BYTES_MAX = 64 * 1024
# Statuses that concern the content rather than the sender or the service: bad request, too large, cannot be processed.
_NOT_UNDERSTOOD = (400, 413, 422)

T = TypeVar("T")


class JsonService:
    def __init__(self, name: str, url: str, within_s: float) -> None:
        self._name = name
        self._url = url
        self._within_s = within_s
        self._threads = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix=name)
        self._asking = 0

    async def ask(self, body: bytes, media_type: str, answer: msgspec.json.Decoder[T]) -> T:
        """Sends a POST. Raises ServiceAway, and its subclass QuestionRefused."""
        request = urllib.request.Request(self._url, body, {"Content-Type": media_type})  # noqa: S310 (checked)
        return await self._send(request, answer)

    async def read(self, url: str, answer: msgspec.json.Decoder[T]) -> T:
        """Sends a GET to one of several addresses. Raises ServiceAway."""
        if not url.startswith(("http://", "https://")):
            raise ServiceAway(f"{self._name} is no address of HTTP.")
        return await self._send(urllib.request.Request(url), answer)  # noqa: S310 (checked)

    async def _send(self, request: urllib.request.Request, answer: msgspec.json.Decoder[T]) -> T:
        if self._asking >= AT_ONCE_MAX:
            raise ServiceAway(f"{self._name} has too much to answer.")
        self._asking += 1
        asked = asyncio.get_running_loop().run_in_executor(self._threads, self._open, request)
        asked.add_done_callback(self._answered)
        try:
            async with asyncio.timeout(self._within_s):
                return answer.decode(await asyncio.shield(asked))
        except (*http_call.FAILURES, msgspec.MsgspecError) as error:  # also TimeoutError
            blames_us = isinstance(error, urllib.error.HTTPError) and error.code in _NOT_UNDERSTOOD
            kind = QuestionRefused if blames_us else ServiceAway
            raise kind(f"{self._name} does not answer ({type(error).__name__}: {error}).") from error

    def _answered(self, asked: "asyncio.Future[bytes]") -> None:
        self._asking -= 1  # only now is its thread free again
        if not asked.cancelled():
            asked.exception()  # marks the error as seen: there may be no caller left

    def _open(self, request: urllib.request.Request) -> bytes:
        try:
            with http_call.open_url(request, self._within_s) as answer:
                found: bytes = answer.read(ANSWER_BYTES_MAX)
        except urllib.error.HTTPError as error:
            error.close()  # the error holds the connection
            raise
        return found
