"""How hard a proof of work is: harder for an address that asks for many."""

from seckill.engine.door.address_rate import AddressRate

# One address gets this many easy challenges, and one more every twelve seconds; after that they get harder, up to the
# factor below.
EASY_CHALLENGES = 50
EASY_AGAIN_AFTER_S = 600
HARDER_MAX = 16


class WorkDifficulty:
    def __init__(self) -> None:
        self._asked = AddressRate(EASY_CHALLENGES / EASY_AGAIN_AFTER_S, at_once_s=HARDER_MAX * EASY_AGAIN_AFTER_S)

    def harder(self, address: str, now: float) -> float:
        """Counts one more challenge for this address, and returns how many times harder than the sale demands it has to
        be."""
        self._asked.wait_s(address, now)
        return min(max(1.0, self._asked.level(address, now) / EASY_CHALLENGES), HARDER_MAX)
