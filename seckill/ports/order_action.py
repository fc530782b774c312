"""What operators do to orders, and what the ledger answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from seckill.domain.order import Order
from seckill.domain.order_number import OrderNumber


class ActionKind(StrEnum):
    CANCEL = "cancel"
    REFUND = "refund"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAction:
    """A wish. `request_id` is the same when it is repeated, and no other wish has it."""

    number: OrderNumber
    request_id: str
    kind: ActionKind
    reason: str
    amount_cents: int | None = None  # to refund; None: all that is left
    return_unit: bool = True  # its units go back on sale


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAction:
    """A wish that was carried out."""

    action: OrderAction
    at_ms: int


class ActionOutcome(StrEnum):
    DONE = "done"
    REPEATED = "repeated"  # done before, on the same request
    # Nothing was changed:
    KEY_REUSED = "key_reused"  # the request id stands for another wish
    WRONG_STATE = "wrong_state"  # only what is unpaid is cancelled, only what is paid is refunded
    TOO_MUCH = "too_much"  # less than that is left of the price
    OUT_OF_CODES = "out_of_codes"  # the unit cannot go back on sale: its code is void, and there is no other for it


@dataclass(frozen=True, slots=True)
class Acted:
    """`order`: as it is now."""

    outcome: ActionOutcome
    order: Order


class OrderActionLedger(Protocol):
    """For what operators do to orders."""

    async def act(self, action: OrderAction) -> Acted | None:
        """`unpaid` → `cancelled`, or money of a paid order is marked as owed back; when all of it is, the order is
        `refunded`. The units are released, once. All of it happens or nothing. Returns None if there is no such order.
        Harmless to repeat."""
