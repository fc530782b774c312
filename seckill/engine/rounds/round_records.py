"""Lets operators look up the rounds of a sale, long after a node has forgotten them."""

from collections.abc import Sequence

from seckill.domain.sale import Round, Sale
from seckill.engine.rounds.unit_custody import UnitCustody, take_custody
from seckill.ports.gate import CustodyGate
from seckill.ports.history import RoundHistory
from seckill.ports.ledger import RoundRecordsLedger


class RoundRecords:
    def __init__(self, ledger: RoundRecordsLedger, gate: CustodyGate, history: RoundHistory) -> None:
        self._ledger = ledger
        self._gate = gate
        self._history = history

    async def find(self, sale_id: int, round_id: int) -> Sale | None:
        """Returns the sale with that round, as the ledger has it, or None if the round belongs to another sale."""
        return await self._ledger.sale(sale_id, round_id)

    async def newest(self, sale_id: int, before: int | None, count: int) -> Sequence[Sale]:
        """Returns the sale with each of its rounds made before the given one, newest first."""
        return await self._history.rounds(sale_id, before, count)

    async def custody(self, round_: Round) -> UnitCustody | None:
        return await take_custody(round_, self._gate, self._ledger)
