"""What a store tells of the space that it has left."""

from collections.abc import Sequence
from typing import Protocol

from seckill.domain.space import Space


class SpaciousStore(Protocol):
    async def spaces(self) -> Sequence[Space]:
        """Asks now, and returns what can be told: a server on another machine may know nothing of its disk."""
