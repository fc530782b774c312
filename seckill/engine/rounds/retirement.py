"""Retires old rounds and removes them from the gate, which a repeating sale would otherwise fill in time.

1. When a round has been over for a day and all its orders are final, in the gate as in the ledger, the ledger retires
   it: from now on nothing is written to it and nothing comes back to it. Claims are answered with `ended`.
2. When every node has heard of that, the gate forgets it, and the ledger notes that it has.

A round that the gate does not have only counts as lost if it is not retired. Each step may be repeated.
"""

import structlog

from seckill.domain.sale import Round
from seckill.engine.rounds.unit_custody import as_the_gate_counts
from seckill.failpoints import reached
from seckill.ports.gate import RetirementGate
from seckill.ports.ledger import RetirementLedger
from seckill.ports.transport import BacklogTransport

log = structlog.get_logger()

RETIRE_AFTER_MS = 24 * 3600 * 1000
# Nodes read the catalogue twice a second. A node that has not read it for this long sends no more requests to any
# server.
HEARD_AFTER_MS = 60_000
BATCH_MAX = 100


class Retirement:
    def __init__(self, gate: RetirementGate, transport: BacklogTransport, ledger: RetirementLedger) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger

    async def step(self, now_ms: int) -> int:
        """Returns how many rounds the gate has forgotten."""
        for round_ in await self._ledger.rounds_over(now_ms - RETIRE_AFTER_MS, BATCH_MAX):
            if await self._is_at_rest(round_) and await self._ledger.retire(round_.id, now_ms):
                log.info("round retired", round=round_.id)
        reached("keeper.retire.after")
        forgotten = 0
        for round_ in await self._ledger.rounds_to_forget(now_ms - HEARD_AFTER_MS, BATCH_MAX):
            await self._gate.forget(round_.ref)
            await self._ledger.mark_forgotten(round_.id)
            forgotten += 1
        return forgotten

    async def _is_at_rest(self, round_: Round) -> bool:
        """Whether every order that the gate admitted is in the ledger, and every unit of an ended order is back in the
        gate."""
        view = await self._gate.inspect(round_.ref)
        # the round is lost and no release waits for it, so it only matters that no order is on its way
        if view is None:
            return not await self._transport.backlog(round_.every_lane)
        tally = await self._ledger.tally(round_.id)
        if tally is None or view.ends_ms != round_.ends_ms:
            return False
        counted = await as_the_gate_counts(tally, round_, self._gate, self._ledger)
        if counted is None:
            return False
        return view.admitted == counted.recorded + counted.dead and view.released == counted.ended
