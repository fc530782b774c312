"""Whether buyers who wait in a line may still get a unit: they may as long as one is left or may come back."""

from collections.abc import Callable, Collection

from seckill.domain.sale import Round
from seckill.engine.rounds.unit_custody import take_custody
from seckill.ports.gate import CustodyGate
from seckill.ports.ledger import CustodyLedger

# How often to check, while no one can be served, whether anyone ever can be.
LOOK_EVERY_S = 2.0


class LineHope:
    def __init__(self, ledger: CustodyLedger, gate: CustodyGate, monotonic: Callable[[], float]) -> None:
        self._ledger = ledger
        self._gate = gate
        self._monotonic = monotonic
        self._looked_s: dict[int, float] = {}

    async def is_gone(self, round_: Round) -> bool:
        """Returns True once all units are paid for, so that none can come back. Checks only now and then, and returns
        False in between."""
        now_s = self._monotonic()
        if now_s - self._looked_s.get(round_.id, -LOOK_EVERY_S) < LOOK_EVERY_S:
            return False
        self._looked_s[round_.id] = now_s
        custody = await take_custody(round_, self._gate, self._ledger)
        return custody is not None and not (custody.available or custody.queued or custody.unpaid or custody.returning)

    def forget_others(self, rounds: Collection[int]) -> None:
        self._looked_s = {round_id: at_s for round_id, at_s in self._looked_s.items() if round_id in rounds}
