"""Decides whether a buyer whose payment came too late may have another order in its place. The rule is the audience's,
but without the token that named the buyer's groups.

The buyer was invited when the order was made. Where a list alone decides, it is checked again, because the operator may
have taken the buyer off it since. A buyer who could buy earlier than others still can.
"""

from typing import Protocol

from seckill.domain.audience_list import digest_of
from seckill.domain.order import Order
from seckill.domain.outcome import Outcome
from seckill.ports.access import AccessLedger
from seckill.ports.audience import AudienceLedger
from seckill.ports.ledger import SaleLookup


class GuestLedger(SaleLookup, Protocol):
    @property
    def audience(self) -> AudienceLedger: ...

    @property
    def access(self) -> AccessLedger: ...


class LateGuests:
    def __init__(self, ledger: GuestLedger) -> None:
        self._ledger = ledger

    async def early_ms(self, order: Order) -> int | Outcome:
        """Returns how much earlier than others this buyer may buy, or why they may not buy at all."""
        sale = await self._ledger.sale(order.sale_id, order.round_id)
        if sale is None:
            return Outcome.NOT_INVITED
        if (await self._ledger.access.standing(order.user)).blocked_ms is not None:
            return Outcome.BLOCKED
        audience = sale.door.audience
        list_decides = audience.listed and not audience.still_admits(None)
        if list_decides and not await self._ledger.audience.is_listed(sale.id, digest_of(order.user)):
            return Outcome.NOT_INVITED
        return max(0, sale.round.begins_ms - order.created_ms) if audience.early else 0
