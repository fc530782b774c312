"""Connections to RabbitMQ, which are opened when they are needed and opened again after a loss.

Plain connections instead of self-healing ones: after a loss, the user of the connection must know, because deliveries
of the old one can no longer be acknowledged and it is unclear what was published on it.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import aiormq
from aiormq.abc import AbstractChannel, DeliveredMessage

from seckill.errors import StartError, TransportUnavailable

CONNECT_S_MAX = 5.0
CALL_S_MAX = 10.0
CLOSE_S_MAX = 3.0
# After about twice this time, the broker gives up a worker whose machine has fallen silent, and gives its entries to
# others.
HEARTBEAT_S = 10
VHOST_TRIES = 3
VHOST_AGAIN_S = 1.0
# The first version whose quorum queues do not lose dead letters on their way.
VERSION_MIN = (3, 10)

_LOST = (aiormq.AMQPError, OSError, TimeoutError, RuntimeError)


@contextlib.asynccontextmanager
async def translated(within_s: float | None = CALL_S_MAX) -> AsyncIterator[None]:
    """Translates the library's errors and silences into ours."""
    try:
        async with asyncio.timeout(within_s):
            yield
    except _LOST as error:
        raise _unavailable(error) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise _unavailable(error) from error  # the library's own: its connection was lost while we waited for it


def _unavailable(error: BaseException) -> TransportUnavailable:
    return TransportUnavailable(f"RabbitMQ cannot be reached ({type(error).__name__}: {error}).")


class Link:
    """One connection. Publishers and consumers have separate ones: a broker that is short of memory stops reading from
    publishers, and acknowledgements must still get through."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._connection: aiormq.Connection | None = None
        self._opening = asyncio.Lock()

    async def channel(self, *, confirms: bool = False) -> AbstractChannel:
        """A new channel. With `confirms`, publishing waits for the broker's confirmation and raises if the broker
        refuses."""
        async with translated():
            async with self._opening:
                if self._connection is None or not self._connection.is_opened:
                    await self.close()
                    self._connection = await connect(self._url, self._name)
                connection = self._connection
            return await connection.channel(publisher_confirms=confirms, on_return_raises=confirms)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_LOST):
                async with asyncio.timeout(CLOSE_S_MAX):
                    await connection.close()


async def connect(url: str, name: str) -> aiormq.Connection:
    async with asyncio.timeout(CONNECT_S_MAX):
        return await aiormq.connect(with_heartbeat(url), client_properties={"connection_name": f"seckill {name}"})


def with_heartbeat(url: str) -> str:
    parts = urlsplit(url)
    if "heartbeat" in parse_qs(parts.query):
        return url
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, f"heartbeat={HEARTBEAT_S}")))))


class Inbox:
    """Collects what a queue delivers, in the order of arrival, until its channel is lost."""

    def __init__(self, channel: AbstractChannel) -> None:
        self.channel = channel
        self._arrived: asyncio.Queue[DeliveredMessage | None] = asyncio.Queue()
        self._lost = ""

    @classmethod
    async def open(cls, channel: AbstractChannel, queue: str, *, no_ack: bool = False) -> "Inbox":
        inbox = cls(channel)
        channel.on_consumer_cancel_callbacks.add(inbox._on_cancel)
        channel.closing.add_done_callback(inbox._on_close)
        async with translated():
            await channel.basic_consume(queue, inbox._on_message, no_ack=no_ack)
        return inbox

    async def _on_message(self, message: DeliveredMessage) -> None:
        self._arrived.put_nowait(message)

    def _on_cancel(self, _: Any) -> None:
        self._lose("the queue was deleted")

    def _on_close(self, closing: "asyncio.Future[Any]") -> None:
        error = None if closing.cancelled() else closing.exception()
        self._lose("the channel was closed" if error is None else f"{type(error).__name__}: {error}")

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        self._arrived.put_nowait(None)

    async def get(self, count: int, wait_s: float | None) -> list[DeliveredMessage]:
        """Returns up to `count` messages, and waits up to `wait_s` (None: for ever) for the first. Raises
        TransportUnavailable once the channel is lost; its messages are then delivered again on another channel."""
        arrived = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                arrived.append(await self._arrived.get())
        while len(arrived) < count and not self._arrived.empty():
            arrived.append(self._arrived.get_nowait())
        if self._lost:
            raise TransportUnavailable(f"The connection to RabbitMQ was lost ({self._lost}).")
        return [message for message in arrived if message is not None]


async def check_broker(url: str) -> str | None:
    """Returns the broker's version, or None if it does not answer yet, in which case it is waited for. Raises
    StartError with one sentence if an operator has to fix something first."""
    try:
        connection = await _connect_patiently(url)
    except (aiormq.AuthenticationError, aiormq.ProbableAuthenticationError) as error:
        raise StartError("RabbitMQ does not accept the user and password of SECKILL_BROKER_URL.") from error
    except (aiormq.ConnectionClosed, aiormq.InvalidFrameError) as error:  # closed instead of opened
        raise StartError(
            "RabbitMQ does not let this user into the vhost of SECKILL_BROKER_URL: create the vhost, or give the user "
            "rights in it (rabbitmqctl set_permissions)."
        ) from error
    except ValueError as error:
        raise StartError(
            f"SECKILL_BROKER_URL cannot be understood ({error}): use amqp://user:password@host/vhost."
        ) from error
    except _LOST as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, socket.gaierror):
            raise StartError("The host of SECKILL_BROKER_URL is not known: check its name.") from error
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise StartError(
                f"RabbitMQ's certificate is not believed ({cause.verify_message}): name the authority that has signed "
                "it, amqps://…?cafile=FILE."
            ) from error
        return None
    try:
        return _suitable(connection)
    finally:
        await connection.close()


async def _connect_patiently(url: str) -> aiormq.Connection:
    """Tries again, because a broker that has just been started refuses its vhosts for a moment."""
    for _ in range(VHOST_TRIES - 1):
        try:
            return await connect(url, "check")
        except (aiormq.ConnectionClosed, aiormq.InvalidFrameError):
            await asyncio.sleep(VHOST_AGAIN_S)
    return await connect(url, "check")


def _suitable(connection: aiormq.Connection) -> str:
    properties: Any = connection.server_properties
    product, version = str(properties.get("product")), str(properties.get("version"))
    if product != "RabbitMQ":
        raise StartError(f"The broker at SECKILL_BROKER_URL is {product}: seckill needs RabbitMQ.")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < VERSION_MIN:
        needed = ".".join(map(str, VERSION_MIN))
        raise StartError(f"RabbitMQ is version {version}; seckill needs {needed} or newer, please upgrade it.")
    return version
