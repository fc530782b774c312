"""A list of buyers as a sale's audience has it: digests in ascending order, so that a million of them are eight
megabytes, and nobody's name. Pure."""

from array import array
from bisect import bisect_left
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Digests: TypeAlias = array[int]
else:
    Digests = array  # which takes no parameter in Python 3.11

BUYERS_MAX = 2_000_000
DIGEST_TYPE = "q"  # eight bytes, with a sign, as the large integers of databases have


def digest_of(user: str) -> int:
    """Of a million buyers, any two have the same with a chance of one in thirty million."""
    return int.from_bytes(blake2b(user.encode(), digest_size=8).digest(), "big", signed=True)


def has(digests: Digests, digest: int) -> bool:
    place = bisect_left(digests, digest)
    return place < len(digests) and digests[place] == digest
