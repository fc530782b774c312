"""Reads public random values from drand's HTTP API: JSON with the number that was asked for and its randomness."""

from typing import Annotated

import msgspec
from msgspec import Meta

from seckill.backends.door.json_service import JsonService
from seckill.ports.door import ServiceAway

NAME = "SECKILL_BEACON_URL"
WITHIN_S = 5.0


class _Value(msgspec.Struct):
    round: int
    randomness: Annotated[str, Meta(pattern=r"^[0-9a-f]{32,128}$(?!\n)")]


_value = msgspec.json.Decoder(_Value)


class HttpBeacon:
    """Implements `seckill.ports.door.BeaconReader`."""

    def __init__(self) -> None:
        # The deadline is short because a keeper has other draws to make.
        self._service = JsonService(NAME, "", WITHIN_S)

    async def value(self, address: str, number: int) -> str:
        found = await self._service.read(address, _value)
        if found.round != number:
            raise ServiceAway(f"{NAME} was asked for round {number} and answers with {found.round}.")
        return found.randomness
