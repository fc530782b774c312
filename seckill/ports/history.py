"""What operators look at beyond the record itself: the history of orders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from seckill.domain.dead_letter import Letter
from seckill.domain.order import Order, OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Sale
from seckill.ports.order_action import RecordedAction
from seckill.ports.payment import Capture, Refund


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change of an order's state, and why."""

    number: OrderNumber
    from_state: str | None
    to_state: str
    at_ms: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """Money that was taken for an order, and what became of it."""

    number: OrderNumber  # the order that it was meant for
    capture: Capture
    at_ms: int
    settles: OrderNumber | None  # the order that is paid with it: another one, if it came late
    waits: bool  # it came late, and what it pays for is not decided yet
    refunds: Sequence[Refund]  # in the order in which they were decided


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFilter:
    """Which orders are wanted; None: all."""

    sale_id: int | None = None
    round_id: int | None = None
    item: int | None = None  # of the wanted sale, which has to be named as well
    state: OrderState | None = None
    user: str | None = None
    since_ms: int | None = None  # admitted then or later
    until_ms: int | None = None  # admitted before


class OrderHistory(Protocol):
    """Reads the record of orders, changes nothing."""

    async def page(self, wanted: OrderFilter, after: OrderNumber | None, count: int) -> Sequence[Order]:
        """Returns the newest written orders that are wanted, or those after the given one, however many other orders
        there are. Orders of a repeating sale come round after round, newest first."""

    async def ordinals(self, round_ids: Sequence[int]) -> Mapping[int, int]:
        """Each round's place among the rounds of its sale, for sales that repeat."""

    async def events(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[Event]]:
        """Returns every event of these orders, in order."""

    async def letters(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[Letter]]:
        """Returns the entries of these orders that could not be written at first, or at all."""

    async def actions(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[RecordedAction]]:
        """What operators did to these orders."""

    async def payments(self, numbers: Sequence[OrderNumber]) -> Sequence[Payment]:
        """Money that was meant for these orders or has paid them, in the order in which it came."""

    async def payment_ids(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[str]]:
        """Returns only the provider's numbers of these payments, by order: fast enough for an export."""


class RoundHistory(Protocol):
    """Reads the record of rounds, changes nothing."""

    async def rounds(self, sale_id: int, before: int | None, count: int) -> Sequence[Sale]:
        """The sale with each of its newest rounds, the newest first; only those that were made before that round."""

    async def rounds_between(self, sale_id: int, since_ms: int, until_ms: int, count: int) -> Sequence[Sale]:
        """The sale with each of its newest rounds that begin or end in this time, the newest first."""


class History(OrderHistory, RoundHistory, Protocol):
    """All of the record."""
