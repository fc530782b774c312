"""When the gate has lost a round, or has gone back in time: rebuilt from the ledger under a new epoch.

1. Fence: nobody is admitted any more.
2. Workers write what is still in the stream, for a while.
3. The ledger gives the round a new epoch. Entries of the old one are void from here on; whoever writes one anyway is
   refused, and its buyer is told that it failed.
4. The buyers' records are copied from the ledger's rows. Each row is read once, and what it said at that moment is what
   counts: an order that ends afterwards has its release in the outbox, with the new epoch.
5. The gate gets its counters from the same rows, the ledger notes the opening, and the round opens with its rules.

It can be begun again at any point, by anybody: each beginning makes the earlier ones void.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import replace

import structlog

from seckill.domain import Round
from seckill.failpoints import reached
from seckill.ports import Gate, Ledger, Transport, Update
from seckill.rounds import FIRST_EPOCH

log = structlog.get_logger()

PORTION = 1000
# How long workers get to write what the stream still has, before its entries are void.
DRAIN_S_MAX = 10.0


class Rebuilder:
    def __init__(
        self, gate: Gate, transport: Transport, ledger: Ledger, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger
        self._monotonic = monotonic
        self._noticed_s: dict[int, float] = {}

    async def step(self, round_: Round) -> bool:
        """One step towards a round that sells again. True when it does."""
        if round_.opened_ms is None and round_.epoch > FIRST_EPOCH:
            return await self._rebuild(round_)
        await self._gate.fence(round_)
        if await self._must_wait(round_):
            return False
        raised = await self._ledger.next_epoch(round_.id, round_.epoch)
        reached("keeper.epoch.after")
        return raised is not None and await self._rebuild(raised)

    async def _must_wait(self, round_: Round) -> bool:
        noticed_s = self._noticed_s.setdefault(round_.id, self._monotonic())
        return bool(await self._transport.backlog(round_.every_lane)) and self._monotonic() - noticed_s < DRAIN_S_MAX

    async def _rebuild(self, round_: Round) -> bool:
        token = secrets.token_hex(8)
        if not await self._gate.begin_rebuild(round_, token):
            return False
        admitted = released = 0
        after = ""
        while portion := await self._ledger.holdings(round_.id, after, PORTION):
            reached("keeper.fill.before")
            if not await self._gate.fill(round_.ref, token, portion):
                return False
            held = [holding for mine in portion.values() for holding in mine]
            admitted += sum(holding.quantity for holding in held)
            released += sum(holding.quantity for holding in held if not holding.live)
            *_, after = portion  # in the database's order of names, which need not be Python's
        opened_ms = await self._gate.finish_rebuild(round_.ref, token, admitted, released)
        if opened_ms is None or await self._ledger.mark_opened(round_.id, round_.epoch, opened_ms) != opened_ms:
            return False
        update = await self._gate.update_round(replace(round_, opened_ms=opened_ms))
        if update is not Update.APPLIED:
            return False
        await self._ledger.mark_synced(round_.id, round_.epoch, round_.revision)
        self._noticed_s.pop(round_.id, None)
        log.warning("round rebuilt from the ledger", round=round_.id, epoch=round_.epoch, sold=admitted - released)
        return True
