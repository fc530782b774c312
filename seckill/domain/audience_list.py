"""The list of buyers in a sale's audience: digests in ascending order, so that a million take eight megabytes and
contain no one's name. Pure."""

from array import array
from bisect import bisect_left
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Digests: TypeAlias = array[int]
else:
    Digests = array  # takes no type parameter in Python 3.11

BUYERS_MAX = 2_000_000
DIGEST_TYPE = "q"  # eight bytes, signed like the large integers of databases


def digest_of(user: str) -> int:
    """Among a million buyers, the chance that any two share a digest is one in thirty million."""
    return int.from_bytes(blake2b(user.encode(), digest_size=8).digest(), "big", signed=True)


def has(digests: Digests, digest: int) -> bool:
    place = bisect_left(digests, digest)
    return place < len(digests) and digests[place] == digest
