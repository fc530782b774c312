"""How much one address may ask for: a number of requests a second, and at once as many as in ten seconds.

An address is whatever its caller counts as one client. A school or an office is one, and everybody in it presses in
the same second: hence the ten seconds at once. Each API process counts for itself.

Of an address only the time is kept at which its requests will have been worked off. Whoever asked for nothing for ten
seconds is forgotten. There are places for a fixed number of addresses: when a flood has filled them, those that were
silent for longest go first. So a flood of addresses costs no more memory, and makes no other address wait.
"""

import math

AT_ONCE_S = 10.0
# About 20 MB, if each of them asks within ten seconds.
ADDRESSES_MAX = 100_000
_ROUNDING_S = 1e-6  # what sums of fractions are off by


class AddressRate:
    def __init__(self, per_second: float, at_once_s: float = AT_ONCE_S, addresses_max: int = ADDRESSES_MAX) -> None:
        self._each_s = 1 / per_second if per_second else 0.0  # 0: no limit
        self._at_once_s = at_once_s
        self._addresses_max = addresses_max
        # By address: until when its requests keep us busy, at that rate. Those who asked lately are in the newer one.
        self._newer: dict[str, float] = {}
        self._older: dict[str, float] = {}
        self._renew_at = 0.0

    @property
    def limited(self) -> bool:
        return bool(self._each_s)

    def wait_s(self, address: str, now: float) -> int:
        """0: it may, and it is counted. Otherwise how long to wait, in whole seconds. An empty address is nobody in
        particular, and may always."""
        if not (self._each_s and address):
            return 0
        # For each claim, so what is one line is not called.
        until = self._newer.get(address) or self._older.get(address, now)
        if until < now:
            until = now
        late_s = until + self._each_s - now - self._at_once_s
        if now >= self._renew_at or len(self._newer) >= self._addresses_max // 2:
            self._older, self._newer = self._newer, {}
            self._renew_at = now + self._at_once_s
        # Also when it is refused: whoever presses on is not forgotten.
        allowed = late_s <= _ROUNDING_S
        self._newer[address] = until + self._each_s if allowed else until
        return 0 if allowed else math.ceil(late_s)

    def level(self, address: str, now: float) -> float:
        """How many requests of this address are counted now."""
        return self._busy_s(address, now) / self._each_s if self._each_s else 0.0

    def _busy_s(self, address: str, now: float) -> float:
        until = self._newer.get(address) or self._older.get(address)
        return until - now if until is not None and until > now else 0.0

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)
