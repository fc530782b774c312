"""The admin key of the settings, with which one may do everything."""

import hashlib
import hmac

from seckill.settings import Secret


class AdminKey:
    """Compares in constant time, and hashes first so that not even the length shows. There are several keys while one
    is being replaced."""

    def __init__(self, *keys: Secret | None) -> None:
        self._digests = [_digest(key.reveal()) for key in keys if key is not None]

    def matches(self, candidate: str) -> bool:
        """Never true when no key is set."""
        given = _digest(candidate)
        # Compares with all of them, so that the time does not reveal which one matched.
        matches = [hmac.compare_digest(digest, given) for digest in self._digests]
        return any(matches)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
