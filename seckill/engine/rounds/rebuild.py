"""When the gate has lost a round, or has gone back in time: rebuilt from the ledger under a new epoch.

1. Fence: the gate admits no one any more.
2. Workers write what is still in the stream, for a while.
3. The ledger gives the round a new epoch. Entries of the old one are void from here on.
4. What was accepted and is not in the ledger is kept (`orders/order_recovery.py`), written under the new epoch. What
   there is no room for, or what only a worker that has it in hand knows of, is refused, and its buyer is told.
5. The buyers' records are copied from the ledger's rows. Each row is read once, and what it said at that moment is what
   counts: an order that ends afterwards has its release in the outbox, with the new epoch.
6. The gate gets its counters from the same rows, the ledger notes the opening, and the round opens with its rules.

Any keeper or repair can begin it again at any point: each beginning makes the earlier ones void. It has its own epoch,
so that a slow process writes nothing (4) to a round that another has filled and opened meanwhile (5, 6).
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from seckill.domain.admission import Holding
from seckill.domain.item import NO_ITEM
from seckill.domain.sale import Round
from seckill.engine.orders.order_recovery import Unwritten, Written, note
from seckill.engine.rounds.opening import FIRST_EPOCH
from seckill.failpoints import reached
from seckill.ports.gate import NO_ITEMS, RebuildGate, Sold, Update
from seckill.ports.ledger import RebuildLedger
from seckill.ports.transport import BacklogTransport

log = structlog.get_logger()

PORTION = 1000
# How long workers get to write what the stream still has, before its entries are void.
DRAIN_S_MAX = 10.0

# Tells of orders that no worker had written and that were kept.
Tell = Callable[[Round, Written], Awaitable[None]]


class Rebuilder:
    def __init__(
        self,
        gate: RebuildGate,
        transport: BacklogTransport,
        ledger: RebuildLedger,
        unwritten: Unwritten,
        monotonic: Callable[[], float] = time.monotonic,
        tell: Tell = note,
    ) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger
        self._monotonic = monotonic
        self._noticed_s: dict[int, float] = {}
        self._unwritten = unwritten
        self._tell = tell

    async def step(self, round_: Round) -> bool:
        """One step towards a round that sells again. True when it does."""
        view = await self._gate.inspect(round_.ref)
        # Later than the ledger's: the ledger is a copy from before.
        gate_epoch = 0 if view is None else view.epoch
        is_begun = round_.opened_ms is None and FIRST_EPOCH < round_.epoch >= gate_epoch
        if not is_begun:
            await self._gate.fence(replace(round_, epoch=max(round_.epoch, gate_epoch)))
            if await self._must_wait(round_):
                return False
        raised = await self._ledger.next_epoch(round_, gate_epoch)
        reached("keeper.epoch.after")
        return raised is not None and await self._rebuild(raised)

    async def _must_wait(self, round_: Round) -> bool:
        noticed_s = self._noticed_s.setdefault(round_.id, self._monotonic())
        return bool(await self._transport.backlog(round_.every_lane)) and self._monotonic() - noticed_s < DRAIN_S_MAX

    async def _rebuild(self, round_: Round) -> bool:
        kept = await self._unwritten.keep(round_)  # while the gate still has its records
        if kept:
            await self._tell(round_, kept)
        token = secrets.token_hex(8)
        if not await self._gate.begin_rebuild(round_, token):
            return False
        sold = dict.fromkeys([item.id for item in round_.items] or [NO_ITEM], Sold())
        after = ""
        while portion := await self._ledger.holdings(round_.id, after, PORTION):
            *_, after = portion  # in the database's order of names, which need not be Python's
            reached("keeper.fill.before")
            if round_.items:
                portion = _that_name_items(round_, portion)
            if portion and not await self._gate.fill(round_.ref, token, portion):
                return False
            for holding in (holding for mine in portion.values() for holding in mine):
                sold[holding.item] = sold[holding.item].and_of(holding)
        admitted, released = sum(each.admitted for each in sold.values()), sum(each.released for each in sold.values())
        of_items = sold if round_.items else NO_ITEMS
        opened_ms = await self._gate.finish_rebuild(round_.ref, token, admitted, released, of_items)
        if opened_ms is None or await self._ledger.mark_opened(round_.id, round_.epoch, opened_ms) != opened_ms:
            return False
        update = await self._gate.update_round(replace(round_, opened_ms=opened_ms))
        if update is not Update.APPLIED:
            return False
        await self._ledger.mark_synced(round_.id, round_.epoch, round_.revision)
        self._noticed_s.pop(round_.id, None)
        log.warning("round rebuilt from the ledger", round=round_.id, epoch=round_.epoch, sold=admitted - released)
        return True


def _that_name_items(round_: Round, portion: Mapping[str, Sequence[Holding]]) -> dict[str, list[Holding]]:
    """Rows that somebody has changed by hand must not hold up the rest: the audit names them."""
    known = {item.id for item in round_.items}
    found = {user: [holding for holding in held if holding.item in known] for user, held in portion.items()}
    astray = sum(map(len, portion.values())) - sum(map(len, found.values()))
    if astray:
        log.error("orders name none of the round's items, and are left out", round=round_.id, orders=astray)
    return {user: held for user, held in found.items() if held}
