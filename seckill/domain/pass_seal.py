"""A pass: a short-lived, signed permission of one buyer to press in one round. Pure.

It is text: its end, in seconds, and an HMAC over round, end and buyer. So nothing has to be stored or looked up to
verify it. Using it again or stealing it brings nothing: only its buyer can use it, and the buyer's limit counts.
"""

import hmac

from seckill.domain.keyed_hash import KeyedHash

_MAC_BYTES = 16
_END_DIGITS = 10  # until the year 2286


class PassSeal:
    def __init__(self, key: bytes) -> None:
        self._hash = KeyedHash(key)

    def seal(self, round_id: int, user: str, ends_s: int) -> str:
        end = b"%010d" % ends_s
        return f"{end.decode()}.{self._mac(round_id, end, user)}"

    def holds(self, sent: bytes, round_id: int, user: str, now_s: float) -> bool:
        """Whether the pass is this buyer's, for this round, and has not ended."""
        end, _, mac = sent.partition(b".")
        if len(end) != _END_DIGITS or not end.isdigit() or int(end) <= now_s:
            return False
        return hmac.compare_digest(self._mac(round_id, end, user).encode(), mac)

    def _mac(self, round_id: int, end: bytes, user: str) -> str:
        return self._hash.digest(b"%d %b %b" % (round_id, end, user.encode()))[:_MAC_BYTES].hex()
