"""What an order is, and what may become of it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TypeAlias

from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import OrderNumber


class OrderState(StrEnum):
    QUEUED = "queued"  # admitted, waiting in the stream; not a success yet
    UNPAID = "unpaid"  # committed in the ledger
    PAID = "paid"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    FAILED = "failed"
    REFUNDED = "refunded"  # all its money goes back: it came after the order was over, or an operator decided so


TRANSITIONS: Mapping[OrderState, frozenset[OrderState]] = {
    # A free order has nothing to pay, so it goes from `queued` straight to `paid`.
    OrderState.QUEUED: frozenset({OrderState.UNPAID, OrderState.PAID, OrderState.FAILED}),
    OrderState.UNPAID: frozenset({OrderState.PAID, OrderState.CANCELLED, OrderState.EXPIRED}),
    OrderState.PAID: frozenset({OrderState.REFUNDED}),
    OrderState.CANCELLED: frozenset({OrderState.REFUNDED}),
    OrderState.EXPIRED: frozenset({OrderState.REFUNDED}),
    OrderState.FAILED: frozenset({OrderState.REFUNDED}),
    OrderState.REFUNDED: frozenset(),
}
# Over without having been paid. Money that still comes has to go back.
OVER = frozenset({OrderState.CANCELLED, OrderState.EXPIRED, OrderState.FAILED})
# Over because the buyer let it lapse, unless an operator has ended it. A failure is not the buyer's doing.
LAPSED = frozenset({OrderState.CANCELLED, OrderState.EXPIRED})


# Who has ended an order.
OPERATOR = "operator"


def states_before(state: OrderState) -> frozenset[OrderState]:
    """The states from which an order may become this in one step."""
    return frozenset(each for each in OrderState if state in TRANSITIONS[each])


@cache
def states_after(state: OrderState) -> frozenset[OrderState]:
    """Everything that an order may still become, over one step or several."""
    found: set[OrderState] = set()
    left = {state}
    while left:
        left = set().union(*(TRANSITIONS[each] for each in left)) - found
        found |= left
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order as the ledger has it."""

    number: OrderNumber
    sale_id: int
    round_id: int
    user: str
    quantity: int
    state: OrderState
    price_cents: int  # for the whole order
    currency: str
    created_ms: int
    expires_ms: int | None
    paid_ms: int | None
    closed_ms: int | None
    replaced_by: OrderNumber | None = None  # paid for when it was over: the order that the money pays instead
    refunded_cents: int = 0  # of its price; money that came for it and never paid it is not counted
    closed_by: str | None = None  # OPERATOR, or None: the buyer, the clock or the engine

    @property
    def lapsed(self) -> bool:
        return self.state in LAPSED and self.closed_by is None

    metadata: str = ""  # the shop's own, a JSON object as text
    item: int = NO_ITEM
    person: str = ""  # the person by whom the limit counted, if not only by user
    trace: str = ""  # its trace


# State → the numbers of orders in it. They are plain integers, because every node receives thousands a second and
# hardly any buyer waits for one of them.
States: TypeAlias = Mapping[str, Sequence[int]]
