"""How hard a proof of work is for whoever asks: harder for an address that asks for many."""

from seckill.engine.door.address_rate import AddressRate

# Challenges for one address, that is one more every twelve seconds, before they get harder; and how hard they get.
EASY_CHALLENGES = 50
EASY_AGAIN_AFTER_S = 600
HARDER_MAX = 16


class WorkDifficulty:
    def __init__(self) -> None:
        self._asked = AddressRate(EASY_CHALLENGES / EASY_AGAIN_AFTER_S, at_once_s=HARDER_MAX * EASY_AGAIN_AFTER_S)

    def harder(self, address: str, now: float) -> float:
        """How many times as hard as the sale demands the next one of this address is, which is counted."""
        self._asked.wait_s(address, now)
        return min(max(1.0, self._asked.level(address, now) / EASY_CHALLENGES), HARDER_MAX)
