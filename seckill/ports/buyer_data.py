"""What the ledger holds about one buyer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from seckill.domain.sale import Round

# A row by its columns.
DataRow = Mapping[str, Any]


class HindranceKind(StrEnum):
    """Why a buyer cannot be erased yet."""

    ROUND = "round"  # a round of an order is still in the gate
    QUEUED = "queued"  # an order is not written yet
    SET_ASIDE = "set_aside"  # an order could not be written, and no one has decided about it
    LINE = "line"  # an entry is waiting, or is being served
    MONEY = "money"  # a payment is not decided, or a refund is not made


@dataclass(frozen=True, slots=True)
class Hindrance:
    kind: HindranceKind
    sale_id: int | None = None
    order: int | None = None  # its number


@dataclass(frozen=True, slots=True)
class Erasure:
    """How many rows now have the pseudonym, and how many lists no longer have the buyer."""

    orders: int = 0
    entries: int = 0
    letters: int = 0
    events: int = 0
    lists: int = 0


@dataclass(slots=True)
class BuyerRows:
    orders: Sequence[DataRow] = ()
    order_events: Sequence[DataRow] = ()
    payments: Sequence[DataRow] = ()
    refunds: Sequence[DataRow] = ()
    order_actions: Sequence[DataRow] = ()
    vouchers: Sequence[DataRow] = ()  # a code only if the buyer has seen it
    entries: Sequence[DataRow] = ()
    letters: Sequence[DataRow] = ()
    lists: Sequence[int] = field(default_factory=list)  # the sales whose list has the buyer


class BuyerDataLedger(Protocol):
    async def rounds_in_gate(self) -> list[Round]:
        """Returns the rounds of which the gate may have records."""

    async def rows_of(self, user: str) -> BuyerRows: ...

    async def erase(self, user: str, pseudonym: str) -> Erasure | list[Hindrance]:
        """Replaces the buyer's name with the pseudonym, deletes what the shop said about the buyer's orders, and
        strikes the buyer off every list. Does nothing if anything of the buyer's may still move."""
