"""Claims whose answer waits until the ledger has the order: because the sale confirms there, or the buyer prefers it.

The workers announce written orders, once for each batch, so no claim makes a query of its own. A buyer has as many
seats here as for long polls, and no claim waits for ever.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from seckill.domain.admission import Answer
from seckill.domain.order import OrderState
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Confirm, Sale
from seckill.engine.orders.buyer_orders import BuyerOrders, OrderView, queued
from seckill.errors import GateError, LedgerError
from seckill.web.connections.waiting_seats import NoSeat, Seats

# The answers of the gate that name orders, which the ledger may not have yet.
TELLING = frozenset((Outcome.ADMITTED, Outcome.REPEATED, Outcome.LIMIT_REACHED))
# The key that marks the scope of a claim whose client has closed its side: the client may be gone, or still take the
# answer.
CLOSED = "seckill.closed"
Gone: TypeAlias = Callable[[], Awaitable[None]]
_LEDGER = Confirm.LEDGER  # looking up a member of an enum is slow


def waits_for_ledger(sale: Sale, answer: Answer) -> bool:
    return sale.confirm is _LEDGER and answer.outcome in TELLING


class ClaimWait:
    def __init__(self, orders: BuyerOrders, seats: Seats, within_s: float) -> None:
        self._orders = orders
        self._seats = seats
        self._within_s = within_s  # how long sales that confirm in the ledger let their buyers wait

    def has_room(self, sale: Sale, user: str, address: str) -> bool:
        """Returns False if the claim would have to wait for its answer and could not, so that the gate must not decide
        it."""
        return sale.confirm is not _LEDGER or self._seats.has_free(user, address)

    def time_s(self, sale: Sale, answer: Answer, preferred_s: int | None) -> float | None:
        """Returns how long the claim waits at most, or None if it does not wait."""
        if waits_for_ledger(sale, answer):
            return self._within_s if preferred_s is None else preferred_s
        return preferred_s or None if answer.outcome in (Outcome.ADMITTED, Outcome.REPEATED) else None

    async def order(
        self, user: str, address: str, sale: Sale, answer: Answer, wait_s: float, gone: Gone
    ) -> OrderView | None:
        """Returns the order of an admitted claim as soon as the ledger has it, or None if that is not known in time."""
        holding = answer.holdings[0]
        known = queued(sale, holding) if answer.outcome is Outcome.ADMITTED else None
        try:
            with self._seats.taken_by(user, address):
                found = await self._orders.wait_for_change(user, holding.number, OrderState.QUEUED, wait_s, gone, known)
        except (NoSeat, GateError, LedgerError):
            return None
        return None if found is None or found.state is OrderState.QUEUED else found

    async def all_written(self, user: str, address: str, sale: Sale, answer: Answer, wait_s: float, gone: Gone) -> bool:
        """Returns whether the ledger has all orders that the answer names, after waiting for up to `wait_s`."""
        try:
            with self._seats.taken_by(user, address):
                return await self._orders.are_written(user, sale, answer.holdings, wait_s, gone)
        except (NoSeat, GateError, LedgerError):
            return False


async def gone_or_closed(scope: Any, receive: Any) -> None:
    """Returns when the client no longer waits for the answer. A client that has closed its side is told what is known
    by then."""
    while CLOSED not in scope and (await receive())["type"] != "http.disconnect":
        pass
