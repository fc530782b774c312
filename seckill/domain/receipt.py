"""A receipt proves that an entry was made in this round at this time. Anyone can verify it with the public key, which
is published. So a buyer who joined in time but is not on the list of a draw can prove it.

A signature took a third of the cost of joining. So buyers who join together share one: it signs the root of a tree of
hashes, and each receipt has the steps from its own hash to the root. Defined in docs/door.md."""

import hashlib
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seckill.domain.line import LineEntry

ALGORITHM = "Ed25519"
# How many share a signature. Doubling this makes receipts longer by one step, but soon hardly any cheaper.
SHARED_BY = 32


class Receipts:
    def __init__(self, key: bytes) -> None:
        seed = hashlib.blake2b(key=key, person=b"receipt-ed25519", digest_size=32).digest()
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_key = self._key.public_key().public_bytes_raw()

    def of(self, entries: Sequence[LineEntry], public_ids: Sequence[str]) -> list[str]:
        heads = [
            f"{public_id}.{entry.joined_ms}.{entry.round_id}"
            for entry, public_id in zip(entries, public_ids, strict=True)
        ]
        return [
            receipt
            for first in range(0, len(heads), SHARED_BY)
            for receipt in self._signed(heads[first : first + SHARED_BY])
        ]

    def _signed(self, heads: Sequence[str]) -> list[str]:
        # Signed and hashed texts begin with their kind, so that none is valid for another purpose.
        said = [f"receipt {head}" for head in heads]
        if len(heads) == 1:
            return [f"{heads[0]}-{self._sign(said[0])}"]
        root, steps = _tree([_hash(each) for each in said])
        signature = self._sign(f"receipts {root}")
        return [f"{head}-{signature}{each}" for head, each in zip(heads, steps, strict=True)]

    def _sign(self, text: str) -> str:
        return self._key.sign(text.encode()).hex()


def _tree(leaves: Sequence[str]) -> tuple[str, list[str]]:
    """Returns the root, and the steps to it from each leaf."""
    steps = [""] * len(leaves)
    nodes, width = list(leaves), 1  # leaves below a node
    while len(nodes) > 1:
        above = []
        for first in range(0, len(nodes), 2):
            if first + 1 == len(nodes):  # a node without a neighbour moves up unchanged
                above.append(nodes[first])
                continue
            left, right = nodes[first], nodes[first + 1]
            middle = (first + 1) * width
            to_right, to_left = f"-r{right}", f"-l{left}"
            for leaf in range(first * width, middle):
                steps[leaf] += to_right
            for leaf in range(middle, min(middle + width, len(leaves))):
                steps[leaf] += to_left
            above.append(_hash(f"node {left} {right}"))
        nodes, width = above, 2 * width
    return nodes[0], steps


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
