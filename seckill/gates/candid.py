"""Connections whose end is always told as one."""

from collections.abc import Iterable

from redis import exceptions
from redis.asyncio.connection import AbstractConnection


def candid(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """uvloop answers a write to a connection that the other side has reset with a RuntimeError. The library passes it
    on as it is, and nobody takes it for what it means."""

    class Candid(kind):  # type: ignore[misc, valid-type]
        async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
            try:
                await super().send_packed_command(command, check_health)
            except RuntimeError as error:
                raise exceptions.ConnectionError(f"The connection was closed ({error}).") from error

    return Candid
