"""The line of a round: the buyers who wait for a unit, and the order in which they are served. Pure.

Places come from the order in which people came, or from a draw (`draw.py`).
"""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from seckill.domain.beacon import BeaconSource
from seckill.domain.draw import commitment
from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import OrderNumber

SERVE_PER_S_MAX = 100_000
BEACON_LENGTH_MAX = 200
# The prefix of the request ids of entries. Buyers' own request ids consist of hexadecimal digits only.
OF_LINE = "line-"


class LineOrder(StrEnum):
    """How buyers get units."""

    PRESS = "press"  # those who press first
    ARRIVAL = "arrival"  # by place; those who came before the beginning are shuffled, the others follow as they come
    DRAW = "draw"  # by place; those who came before the beginning take part in the draw, the others queue behind


class EntryState(StrEnum):
    WAITING = "waiting"
    CALLED = "called"  # the gate is being asked for a unit; to its buyer it still waits
    SERVED = "served"
    LEFT = "left"  # by the buyer, or removed by an operator
    PASSED_OVER = "passed_over"

    @property
    def shown(self) -> "EntryState":
        return EntryState.WAITING if self is EntryState.CALLED else self


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRules:
    """The rules with which a sale is announced. They never change, but the pace of a round can."""

    order: LineOrder = LineOrder.PRESS
    waiting_list: bool = False  # only with `press`: after the sell-out, waiting buyers get the units that come back
    serve_per_s: int | None = None  # None: as fast as possible
    beacon: bool = False  # the draw waits for a value that is not known before the list is closed
    beacon_from: BeaconSource | None = None  # None: an operator gives it

    @property
    def draws(self) -> bool:
        return self.order is not LineOrder.PRESS

    @property
    def has_line(self) -> bool:
        return self.draws or self.waiting_list


NO_LINE = LineRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLine:
    """The line of one round, and how far it has come."""

    round_id: int
    sale_id: int
    order: LineOrder
    seed: str | None  # hexadecimal; None: nothing is drawn. A secret until `drawn_ms`
    wants_beacon: bool
    beacon: str | None
    beacon_from: BeaconSource | None = None
    beacon_round: int | None = None  # the number of the source's value
    beacon_missed_ms: int | None = None  # when it was given up: the draw is made from the seed alone
    listed_ms: int | None = None  # when the list's hash was published
    closed_ms: int | None  # when the list of the draw was closed
    entries: int  # in the draw, once it is closed
    list_hash: str | None
    drawn_ms: int | None
    places: int  # the last that was given
    waiting: int  # entries that wait or are called
    served: int
    paused: bool  # an operator has stopped serving for now
    serve_per_s: int | None

    @property
    def commitment(self) -> str | None:
        return None if self.seed is None else commitment(self.seed)

    @property
    def revealed_seed(self) -> str | None:
        return None if self.drawn_ms is None else self.seed

    @property
    def waits_for_beacon(self) -> bool:
        return self.wants_beacon and self.beacon is None and self.beacon_missed_ms is None

    @property
    def decided(self) -> bool:
        """Whether it is known which entry comes next."""
        return self.seed is None or self.drawn_ms is not None


class LineEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    id: int
    round_id: int
    user: str
    quantity: int
    item: int = NO_ITEM
    state: EntryState = EntryState.WAITING
    place: int | None = None  # None: not drawn yet, or it left before
    joined_ms: int = 0
    changed_ms: int | None = None  # when it was last called, served, left or passed over
    order_number: OrderNumber | None = None  # once it is served
    reason: str | None = None  # why it was removed or passed over
    metadata: str = ""
    groups: tuple[str, ...] | None = None  # groups in the token when its buyer joined; None: not known
    person: str = ""  # the person by whom the limit counts, if not only by user

    def request_id(self, attempt: int = 0) -> str:
        """Is the same whenever the gate is asked for the entry. If an order was admitted but could not be written,
        another attempt gets another id: the gate answers a known request id with the order that it gave for it, even if
        that failed."""
        return f"{OF_LINE}{self.id:x}-{attempt}" if attempt else f"{OF_LINE}{self.id:x}"


def may_come_again(state: EntryState, *, drawn: bool, removed: bool) -> bool:
    """Whether a buyer who was in the line may join again: not if the draw was closed with their entry in it (`drawn`),
    since its place is published, and not if an operator has removed them."""
    return state in (EntryState.LEFT, EntryState.PASSED_OVER) and not drawn and not removed
