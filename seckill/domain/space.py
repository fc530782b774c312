"""How much space a store has left, and when that is too little. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class SpaceKind(StrEnum):
    DISK = "disk"
    MEMORY = "memory"


# Less than this share of its size is too little …
SHORT_SHARE = 0.1
# … unless it is still more than this: orders of millions of buyers fit into it.
SHORT_BYTES_MAX = 5_000_000_000
# What was short counts as ample again when this much more than that is free, so that operators do not hear of it again
# and again.
AMPLE_TIMES = 1.25


@dataclass(frozen=True, slots=True)
class Space:
    """`where`: a folder or a server, for operators."""

    kind: SpaceKind
    where: str
    free_bytes: int
    size_bytes: int

    @property
    def is_short(self) -> bool:
        return self.free_bytes < self._enough_bytes

    @property
    def is_ample(self) -> bool:
        return self.free_bytes >= AMPLE_TIMES * self._enough_bytes

    @property
    def free_share(self) -> float:
        return self.free_bytes / self.size_bytes

    @property
    def _enough_bytes(self) -> float:
        return min(SHORT_SHARE * self.size_bytes, SHORT_BYTES_MAX)


def scarcest(spaces: Iterable[Space]) -> dict[SpaceKind, Space]:
    """Returns for each kind the space of which the least share is free."""
    return {space.kind: space for space in sorted(spaces, key=lambda space: space.free_share, reverse=True)}
