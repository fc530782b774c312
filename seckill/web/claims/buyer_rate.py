"""How often one buyer may press "buy": a number of claims in each second, on each API process.

Counting starts over every second, so it costs one dictionary lookup and remembers no buyer for longer than that.
"""


class Rates:
    def __init__(self, claims_per_second: int) -> None:
        self._most = claims_per_second  # 0: unlimited
        self._second = 0
        self._claims: dict[str, int] = {}

    def allow(self, user: str, now: float) -> bool:
        if not self._most:
            return True
        second = int(now)
        if second != self._second:
            self._second = second
            self._claims = {}
        self._claims[user] = claims = self._claims.get(user, 0) + 1
        return claims <= self._most
