"""What a buyer can show of an entry: that it was made in this round at this time. Anybody can tell that it is true who
has the public key, which is published: so whoever joined in time and is not on the list of a draw can prove it."""

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ALGORITHM = "Ed25519"
# What is signed begins with it, so that it is good for nothing else.
_MEANING = "receipt "


class Receipts:
    def __init__(self, key: bytes) -> None:
        seed = hashlib.blake2b(key=key, person=b"receipt-ed25519", digest_size=32).digest()
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_key = self._key.public_key().public_bytes_raw()

    def sign(self, entry_id: str, joined_ms: int, round_id: int) -> str:
        head = f"{entry_id}.{joined_ms}.{round_id}"
        return f"{head}-{self._key.sign((_MEANING + head).encode()).hex()}"
