"""Rebuilds a round from the ledger, under a new epoch, after the gate has lost it or has gone back in time.

1. Fence: the gate admits no one from now on.
2. For a while, workers write what is still in the stream.
3. The ledger gives the round a new epoch. Entries of the old one are void from now on. The gate is fenced once more:
   by now it may be another server that has not heard of the fence, and a keeper compares it by the ledger's epoch.
4. Orders that were accepted but are not in the ledger are written under the new epoch (`orders/order_recovery.py`). An
   order is refused, and its buyer told, if there is no room for it, or if only the worker that is handling it knows of
   it.
5. The buyers' records are copied from the ledger's rows. Each row is read once, and its state at that moment counts: an
   order that ends afterwards has its release in the outbox, with the new epoch.
6. The gate gets its counters from the same rows, the ledger notes the opening, and the round opens with its rules.

Any keeper, or a repair, can begin again at any point, and each beginning makes the earlier ones void. Each has an epoch
of its own, so that a slow process writes nothing (4) to a round that another one has filled and opened meanwhile (5,
6).
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
# How long workers get to write what is still in the stream before its entries are void.
DRAIN_S_MAX = 10.0

# Reports orders that no worker had written and that were kept.
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
        """Takes one step towards a round that sells again. Returns True when it does."""
        view = await self._gate.inspect(round_.ref)
        # If the gate's epoch is the later one, the ledger is an older copy.
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
        await self._gate.fence(round_)
        kept = await self._unwritten.keep(round_)  # while the gate still has its records
        if kept:
            await self._tell(round_, kept)
        token = secrets.token_hex(8)
        if not await self._gate.begin_rebuild(round_, token):
            return False
        sold = dict.fromkeys([item.id for item in round_.items] or [NO_ITEM], Sold())
        after = ""
        while portion := await self._ledger.holdings(round_.id, after, PORTION):
            *_, after = portion  # sorted by the database, whose order may differ from Python's
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
    """Leaves out rows with unknown items, which a person must have changed by hand. They must not hold up the rest, and
    the audit names them."""
    known = {item.id for item in round_.items}
    found = {user: [holding for holding in held if holding.item in known] for user, held in portion.items()}
    astray = sum(map(len, portion.values())) - sum(map(len, found.values()))
    if astray:
        log.error("orders name none of the round's items, and are left out", round=round_.id, orders=astray)
    return {user: held for user, held in found.items() if held}
