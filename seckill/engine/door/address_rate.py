"""Limits the requests of one address: a number a second on average, and a burst of as many as ten seconds allow.

An address is whatever the caller of this module counts as one client. A school or an office may share one address, and
everyone there presses "buy" in the same second: hence the burst. Each API process counts for itself.

For each address, only the time is kept at which its requests will have been worked off. An address that has been silent
for ten seconds is forgotten. The table holds a fixed number of addresses; when a flood has filled it, those silent for
longest go first. So a flood of addresses neither costs more memory nor makes other addresses wait.
"""

import math

AT_ONCE_S = 10.0
# About 20 MB, if each of them asks within ten seconds.
ADDRESSES_MAX = 100_000
_ROUNDING_S = 1e-6  # the rounding error of adding up fractions


class AddressRate:
    def __init__(self, per_second: float, at_once_s: float = AT_ONCE_S, addresses_max: int = ADDRESSES_MAX) -> None:
        self._each_s = 1 / per_second if per_second else 0.0  # 0: no limit
        self._at_once_s = at_once_s
        self._addresses_max = addresses_max
        # For each address, the time at which its requests will have been worked off. Addresses seen lately are in the
        # newer table.
        self._newer: dict[str, float] = {}
        self._older: dict[str, float] = {}
        self._renew_at = 0.0

    @property
    def limited(self) -> bool:
        return bool(self._each_s)

    def wait_s(self, address: str, now: float) -> int:
        """Returns 0 if the address may ask now, and counts the request; otherwise the whole seconds to wait. An empty
        address belongs to no particular client and is never limited."""
        if not (self._each_s and address):
            return 0
        # This runs for every claim, so one-line helpers are written out here.
        until = self._newer.get(address) or self._older.get(address, now)
        if until < now:
            until = now
        late_s = until + self._each_s - now - self._at_once_s
        if now >= self._renew_at or len(self._newer) >= self._addresses_max // 2:
            self._older, self._newer = self._newer, {}
            self._renew_at = now + self._at_once_s
        # Noted even when it is refused, so that an address that keeps pressing is not forgotten.
        allowed = late_s <= _ROUNDING_S
        self._newer[address] = until + self._each_s if allowed else until
        return 0 if allowed else math.ceil(late_s)

    def level(self, address: str, now: float) -> float:
        """The number of this address's requests that are not worked off yet."""
        return self._busy_s(address, now) / self._each_s if self._each_s else 0.0

    def _busy_s(self, address: str, now: float) -> float:
        until = self._newer.get(address) or self._older.get(address)
        return until - now if until is not None and until > now else 0.0

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)
