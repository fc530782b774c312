"""The opaque form in which the outside sees numbers.

A plain number would reveal how much was sold. So the outside sees a keyed permutation of it: it has the same size and
no collisions, reveals nothing, and without the key no one can make up a valid one.

It is a Feistel network whose rounds are AES, and a round is one call for all numbers of a batch. Without a compiled
kernel, the left halves of all of them are one long integer and the right halves another: so an id costs 0.9 µs among
250 of them, and 5.7 alone (six keyed hashes for each took 5.9 in either case).
"""

import hashlib
import struct
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from seckill.native.kernel_choice import KERNEL

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

# Crockford's base32: no I, L, O, U, so that a number read out on the phone arrives as it was.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {char: value for value, char in enumerate(_ALPHABET)}
_LENGTH = 13
# What people type instead; separators are for reading only.
_FORGIVE = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None})
_TYPED_LENGTH_MAX = 2 * _LENGTH

# A Feistel network needs four rounds to be a pseudo-random permutation; two more cost little and give a margin.
_FEISTEL_ROUNDS = 6
_BLOCK_BYTES = 16  # AES blocks; a half is in the first four bytes.
_HALF = b"\xff\xff\xff\xff".ljust(_BLOCK_BYTES, b"\0")


@cache
def _triples() -> list[str]:
    """Returns the three characters for each value of fifteen bits. They are the same for every kind of id, and only
    made when one is needed."""
    pairs = [first + second for first in _ALPHABET for second in _ALPHABET]
    return [first + pair for first in _ALPHABET for pair in pairs]


def encode_ids(numbers: Sequence[int], ciphers: Sequence[Callable[[bytes], bytes]]) -> list[str]:
    """Encodes numbers below 2^63. Each of `ciphers` encrypts blocks. Where it is compiled, `native/kernel.c` does the
    same."""
    size = _BLOCK_BYTES * len(numbers)
    halves = int.from_bytes(_HALF * len(numbers), "little")
    left = _in_blocks([n >> 32 for n in numbers])
    right = _in_blocks([n & 0xFFFFFFFF for n in numbers])
    for encrypt in ciphers:
        scrambled = int.from_bytes(encrypt(right.to_bytes(size, "little")), "little") & halves
        left, right = right, left ^ scrambled
    return _spell_ids((left << 32 | right).to_bytes(size, "little"))


def _in_blocks(halves: Sequence[int]) -> int:
    """Returns one long integer with a half in each block."""
    words = [0] * (2 * len(halves))
    words[::2] = halves
    return int.from_bytes(struct.pack(f"<{len(words)}Q", *words), "little")


def _spell_ids(blocks: bytes) -> list[str]:
    """Spells the numbers in the first eight of each sixteen bytes, lowest byte first."""
    triples = _triples()
    return [
        f"{_ALPHABET[v >> 60]}{triples[v >> 45 & 32767]}{triples[v >> 30 & 32767]}{triples[v >> 15 & 32767]}"
        f"{triples[v & 32767]}"
        for v, _ in struct.iter_unpack("<QQ", blocks)
    ]


_encode: Callable[[tuple[int, ...], tuple[Callable[[bytes], bytes], ...]], list[str]] = (
    encode_ids if KERNEL is None else KERNEL.encode_ids
)


class PublicIds:
    """Turns numbers below 2^63 into 13 characters and back. Each kind of thing gets its own permutation."""

    def __init__(self, key: bytes, kind: str) -> None:
        self._keys = [
            hashlib.blake2s(key=key, digest_size=16, person=f"{kind}:{step}".encode()).digest()
            for step in range(_FEISTEL_ROUNDS)
        ]

    @cached_property
    def _rounds(self) -> "list[CipherContext]":
        # Slow to load, and half of the roles make no ids.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415

        # ECB has no state: each block is encrypted independently, as a function requires.
        return [Cipher(algorithms.AES(key), modes.ECB()).encryptor() for key in self._keys]  # noqa: S305

    @cached_property
    def encrypt(self) -> tuple[Callable[[bytes], bytes], ...]:
        """The rounds, each as a function of blocks."""
        return tuple(cipher.update for cipher in self._rounds)

    def encode(self, number: int) -> str:
        return self.encode_all([number])[0]

    def encode_all(self, numbers: Sequence[int]) -> list[str]:
        return _encode(tuple(numbers), self.encrypt)

    def decode(self, text: str) -> int | None:
        """Returns the number, or None for anything that was not made by `encode` with this key."""
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
        for cipher in reversed(self._rounds):
            scrambled = cipher.update(left.to_bytes(_BLOCK_BYTES, "little"))[:4]
            left, right = right ^ int.from_bytes(scrambled, "little"), left
        number = (left << 32) | right
        return None if number >> 63 else number
