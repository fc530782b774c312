"""How a draw gives places, in a way that anyone can check. Pure.

`commitment` is known before the first entry, `list_hash` when the list is closed, and the seed when it is drawn. See
docs/line.md.
"""

import hashlib
from collections.abc import Iterable

SEED_BYTES = 32
ALGORITHM = "sha256(seed:beacon:list_hash:entry_id)"


def commitment(seed: str) -> str:
    return _hex(seed)


def list_hash(entry_ids: Iterable[str]) -> str:
    """Of all entry ids, sorted as text."""
    digest = hashlib.sha256()
    for place, entry_id in enumerate(entry_ids):
        digest.update(f"\n{entry_id}".encode() if place else entry_id.encode())
    return digest.hexdigest()


class Ranking:
    """Places follow the ranks in ascending order."""

    def __init__(self, seed: str, beacon: str | None, hash_of_list: str) -> None:
        # The part that is the same for all entries is hashed once.
        self._head = hashlib.sha256(f"{seed}:{beacon or ''}:{hash_of_list}:".encode())

    def rank(self, entry_id: str) -> bytes:
        digest = self._head.copy()
        digest.update(entry_id.encode())
        return digest.digest()


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
