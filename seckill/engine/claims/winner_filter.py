"""A Bloom filter of the buyers who may have an order in a round.

After the sell-out nearly every buyer who presses "buy" can be refused without a call to the gate, except that a winner
who repeats must find their own order. "Not in the filter" is certain; "in the filter" costs a call and decides nothing.
"""

# 16 bits and 7 probes: about one stranger in two thousand is sent to the gate, for two bytes a buyer.
_BITS_PER_BUYER = 16
_PROBES = 7


class WinnerFilter:
    def __init__(self, buyers: int) -> None:
        self._size = max(1024, buyers * _BITS_PER_BUYER)
        self._bits = bytearray(self._size // 8 + 1)

    def add(self, user: str) -> None:
        position, stride = _hash(user)
        for _ in range(_PROBES):
            bit = position % self._size
            self._bits[bit >> 3] |= 1 << (bit & 7)
            position += stride

    def __contains__(self, user: str) -> bool:
        position, stride = _hash(user)
        for _ in range(_PROBES):
            bit = position % self._size
            if not self._bits[bit >> 3] & (1 << (bit & 7)):
                return False
            position += stride
        return True


def _hash(user: str) -> tuple[int, int]:
    """Python's own keyed hash: the filter never leaves its process, and this costs a tenth of a digest."""
    value = hash(user)
    return value & 0xFFFFFFFF, (value >> 32 & 0xFFFFFFFF) | 1
