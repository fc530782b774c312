"""The key that a client gives to a press, so that a repetition does not count as a second one."""

import hashlib
import re

LENGTH_MAX = 255
_KEY = re.compile(rb"[ -~]{0,%d}" % LENGTH_MAX)


def read_key(header: bytes) -> str | None:
    """None: it is not made as a key is."""
    key = header.strip()
    return key.decode("ascii") if _KEY.fullmatch(key) else None


def request_id(idempotency_key: str) -> str:
    """Returns what the gate remembers of a key: 16 characters, whatever its length, so that a buyer's record stays
    small."""
    return hashlib.blake2b(idempotency_key.encode(), digest_size=8).hexdigest() if idempotency_key else ""
