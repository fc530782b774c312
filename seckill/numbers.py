"""Order numbers, and the opaque form in which the outside sees numbers.

An order number has 63 bits and sorts by time: 31 bits of seconds since 2020-01-01 UTC, 8 bits of lane, 24 bits of the
lane's counter of that day. The gate mints seconds and counter; they are put together here, because Lua counts in
doubles and those are exact to 53 bits only.

Outside, a number would tell how much was sold. So the outside sees a keyed permutation of it: same size, no collisions,
nothing to infer, and somebody who does not have the key cannot make up one that means anything.
"""

import hashlib
from typing import Self

import msgspec

ORIGIN_S = 1_577_836_800  # 2020-01-01T00:00:00Z
COUNTER_MAX = (1 << 24) - 1


class OrderNumber(msgspec.Struct, frozen=True, order=True, gc=False):
    seconds: int
    lane: int
    counter: int

    @classmethod
    def mint(cls, now_ms: int, lane: int, counter: int) -> Self:
        return cls(now_ms // 1000 - ORIGIN_S, lane, counter)

    @classmethod
    def from_int(cls, value: int) -> Self:
        return cls(value >> 32, (value >> 24) & 0xFF, value & COUNTER_MAX)

    def __int__(self) -> int:
        return (self.seconds << 32) | (self.lane << 24) | self.counter


# Crockford's base32: no I, L, O, U, so that a number read out on the phone arrives as it was.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_VALUES = {char: value for value, char in enumerate(_ALPHABET)}
_LENGTH = 13
# What people type instead; separators are for reading only.
_FORGIVE = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None})
_TYPED_LENGTH_MAX = 2 * _LENGTH

# A Feistel network needs four rounds to be a pseudo-random permutation; two more cost a microsecond and give a margin.
_FEISTEL_ROUNDS = 6


class PublicIds:
    """Turns numbers below 2^63 into 13 characters and back. Each kind of thing gets a permutation of its own."""

    def __init__(self, key: bytes, kind: str) -> None:
        self._rounds = [
            hashlib.blake2s(key=key, digest_size=4, person=f"{kind}:{step}".encode()) for step in range(_FEISTEL_ROUNDS)
        ]

    def encode(self, number: int) -> str:
        left, right = number >> 32, number & 0xFFFFFFFF
        for keyed in self._rounds:
            left, right = right, left ^ _scramble(keyed, right)
        value = (left << 32) | right
        return _ALPHABET[value >> 60] + "".join([_PAIRS[(value >> shift) & 1023] for shift in range(50, -1, -10)])

    def decode(self, text: str) -> int | None:
        """The number, or None for anything that was not made by `encode` with this key."""
        if len(text) > _TYPED_LENGTH_MAX:
            return None
        text = text.upper().translate(_FORGIVE)
        if len(text) != _LENGTH:
            return None
        value = 0
        for char in text:
            digit = _VALUES.get(char)
            if digit is None:
                return None
            value = (value << 5) | digit
        if value >> 64:
            return None
        left, right = value >> 32, value & 0xFFFFFFFF
        for keyed in reversed(self._rounds):
            left, right = right ^ _scramble(keyed, left), left
        number = (left << 32) | right
        return None if number >> 63 else number


def _scramble(keyed: "hashlib.blake2s", half: int) -> int:
    copy = keyed.copy()
    copy.update(half.to_bytes(4, "big"))
    return int.from_bytes(copy.digest(), "big")


def request_id(idempotency_key: str) -> str:
    """What the gate remembers of a key: 16 characters whatever its length, so that a buyer's record stays small."""
    return hashlib.blake2b(idempotency_key.encode(), digest_size=8).hexdigest() if idempotency_key else ""
