"""Order numbers.

An order number has 63 bits and sorts by time: 31 bits of seconds since 2020-01-01 UTC, 8 bits of lane, 24 bits of the
lane's counter of that day. The gate mints seconds and counter; they are put together here, because Lua counts in
doubles and those are exact to 53 bits only.
"""

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

    @property
    def minted_ms(self) -> int:
        """To the second."""
        return (self.seconds + ORIGIN_S) * 1000

    def __int__(self) -> int:
        return (self.seconds << 32) | (self.lane << 24) | self.counter
