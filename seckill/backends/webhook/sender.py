"""Sends a webhook: one POST over a connection of its own, to an address that was checked.

The name is resolved here, once, and the connection goes to the address that was checked, even if the name stands for
another one a moment later. No redirect is followed, no proxy is used, and nothing of the answer but its status is kept.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence

import httptools
import structlog

from seckill.backends.webhook.host_lookup import SystemNames
from seckill.domain.webhook import DeliveryTrouble
from seckill.domain.webhook_retries import SEND_WITHIN_S
from seckill.domain.webhook_target import Address, Target, is_public
from seckill.http_reply import HttpReply, ReplyTooLarge
from seckill.ports.webhook import Sent

log = structlog.get_logger()

# The limit for an answer's head and body together. A receiver only has to say whether it has taken the webhook.
REPLY_BYTES_MAX = 64 * 1024
RETRY_AFTER_S_MAX = 3600.0
# How many addresses of a name are tried.
ADDRESSES_MAX = 4

Resolve = Callable[[str], Awaitable[Sequence[Address]]]


class NotAllowed(Exception):
    pass


class HttpSender:
    """Implements `seckill.ports.webhook.WebhookSender`."""

    def __init__(
        self,
        *,
        private: bool,
        within_s: float = SEND_WITHIN_S,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._private = private
        self._within_s = within_s
        self._resolve = SystemNames() if resolve is None else resolve
        self._tls = tls

    async def send(self, target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> Sent:
        began_s = time.monotonic()
        reply = HttpReply(REPLY_BYTES_MAX)
        try:
            async with asyncio.timeout(self._within_s):
                await self._exchange(target, headers, body, reply)
        except NotAllowed:
            # Only the log names the reason: its readers run the keeper and know its network.
            log.warning("a webhook leads to an address that is not public", host=target.host)
            return Sent(status=None, trouble=DeliveryTrouble.NOT_ALLOWED)
        except (OSError, ValueError, TimeoutError, ReplyTooLarge, httptools.HttpParserError) as error:
            if not reply.has_head:
                log.info("a webhook was not answered", host=target.host, reason=str(error) or type(error).__name__)
                return Sent(status=None, trouble=DeliveryTrouble.NO_ANSWER)
        took_ms = int((time.monotonic() - began_s) * 1000)
        return Sent(status=reply.status, took_ms=took_ms, retry_after_s=_retry_after_s(reply))

    async def _exchange(
        self, target: Target, headers: Sequence[tuple[str, str]], body: bytes, reply: HttpReply
    ) -> None:
        addresses = await self._addresses(target)
        reader, writer = await self._connect(target, addresses)
        try:
            writer.write(_written(target, headers, body))
            await writer.drain()
            while not reply.is_done:
                reply.feed(await reader.read(REPLY_BYTES_MAX))
        finally:
            writer.transport.abort()

    async def _addresses(self, target: Target) -> list[Address]:
        found = list(dict.fromkeys(await self._resolve(target.host)))
        # All addresses must be public: no honest receiver's name also stands for an address in our network.
        if not self._private and not all(map(is_public, found)):
            raise NotAllowed
        return found[:ADDRESSES_MAX]

    async def _connect(
        self, target: Target, addresses: Sequence[Address]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        failure: OSError = OSError("the name stands for no address")
        for address in addresses:
            try:
                # Connects to the address, so that the name is not resolved again. The certificate is checked against
                # the name.
                return await asyncio.open_connection(
                    str(address),
                    target.port,
                    ssl=self._context() if target.secure else None,
                    server_hostname=target.host if target.secure else None,
                )
            except ssl.SSLError:
                raise
            except OSError as error:
                failure = error
        raise failure

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


def _written(target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    all_headers = [("Host", target.authority), ("Content-Length", str(len(body))), ("Connection", "close"), *headers]
    lines = "".join(f"{name}: {value}\r\n" for name, value in all_headers)
    return f"POST {target.path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


def _retry_after_s(reply: HttpReply) -> float | None:
    """Reads whole seconds and ignores dates. The number may have any number of digits, because a stranger sent it."""
    wait = reply.headers.get("retry-after", "")
    return min(float(wait), RETRY_AFTER_S_MAX) if wait.isascii() and wait.isdigit() else None
