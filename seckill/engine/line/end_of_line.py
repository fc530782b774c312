"""Whether buyers who wait in a line may still get a unit: they may as long as one of what they want is left or may come
back."""

from collections.abc import Callable, Collection

from seckill.domain.item import NO_ITEM
from seckill.domain.sale import Round
from seckill.engine.rounds.unit_custody import UnitCustody, take_custody
from seckill.errors import GateUnavailable
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

    async def gone(self, round_: Round) -> frozenset[int]:
        """Returns the items of which all units are paid for, so that none can come back. Checks only now and then, and
        returns nothing in between."""
        now_s = self._monotonic()
        if now_s - self._looked_s.get(round_.id, -LOOK_EVERY_S) < LOOK_EVERY_S:
            return frozenset()
        self._looked_s[round_.id] = now_s
        try:
            custody = await take_custody(round_, self._gate, self._ledger)
        except GateUnavailable:  # what is left is given out meanwhile
            return frozenset()
        if custody is None:
            return frozenset()
        return frozenset(item for item, units in (custody.items or {NO_ITEM: custody}).items() if _are_paid_for(units))

    def forget_others(self, rounds: Collection[int]) -> None:
        self._looked_s = {round_id: at_s for round_id, at_s in self._looked_s.items() if round_id in rounds}


def _are_paid_for(units: UnitCustody) -> bool:
    return not (units.available or units.queued or units.unpaid or units.returning)
