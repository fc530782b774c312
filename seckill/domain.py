"""What a sale, a round and an order are, and who is admitted. Pure: data and `now` come in, a decision goes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TypeAlias

import msgspec

from seckill.numbers import COUNTER_MAX, OrderNumber
from seckill.outcomes import Outcome
from seckill.recurrence import Recurrence
from seckill.shares import place_of

# One claim cannot ask for more, whatever the sale allows; also the largest limit a sale may set.
QUANTITY_MAX = 1000
UNITS_MAX = 1_000_000_000


class RoundStatus(StrEnum):
    """What the operator wants; the window is separate, and the gate's clock decides it."""

    OPEN = "open"
    PAUSED = "paused"
    CLOSED = "closed"


class SaleState(StrEnum):
    """What buyers are shown."""

    SCHEDULED = "scheduled"
    OPEN = "open"
    PAUSED = "paused"
    SOLD_OUT = "sold_out"
    ENDED = "ended"


class OrderState(StrEnum):
    QUEUED = "queued"  # admitted, waiting in the stream; not a success yet
    UNPAID = "unpaid"  # committed in the ledger
    PAID = "paid"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    FAILED = "failed"
    REFUNDED = "refunded"  # paid for after it was over


TRANSITIONS: Mapping[OrderState, frozenset[OrderState]] = {
    # A free order has nothing to pay, so it goes from `queued` straight to `paid`.
    OrderState.QUEUED: frozenset({OrderState.UNPAID, OrderState.PAID, OrderState.FAILED}),
    OrderState.UNPAID: frozenset({OrderState.PAID, OrderState.CANCELLED, OrderState.EXPIRED}),
    OrderState.PAID: frozenset(),
    OrderState.CANCELLED: frozenset({OrderState.REFUNDED}),
    OrderState.EXPIRED: frozenset({OrderState.REFUNDED}),
    OrderState.FAILED: frozenset({OrderState.REFUNDED}),
    OrderState.REFUNDED: frozenset(),
}


# Over without having been paid: what may still come is money that has to go back.
OVER = frozenset({OrderState.CANCELLED, OrderState.EXPIRED, OrderState.FAILED})


def may_become(state: OrderState, following: OrderState) -> bool:
    return following in TRANSITIONS[state]


@cache
def states_after(state: OrderState) -> frozenset[OrderState]:
    """Everything that an order may still become, over one step or several."""
    found: set[OrderState] = set()
    left = {state}
    while left:
        left = set().union(*(TRANSITIONS[each] for each in left)) - found
        found |= left
    return frozenset(found)


# What is made anew for every claim is a Struct: it is as unchangeable as a frozen dataclass, is made in a tenth of the
# time, and the garbage collector need not look at it.
class RoundRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Enough to find a round's keys. It has a share in each of its lanes, which follow each other from the first."""

    id: int
    lane: int
    lanes: int = 1

    @property
    def every_lane(self) -> range:
        return range(self.lane, self.lane + self.lanes)

    def lane_of(self, user: str) -> int:
        """Where a buyer's claims are decided, always."""
        return self.lane if self.lanes == 1 else self.lane + place_of(user, self.lanes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One occurrence of a sale. Its id is never used again and its stock is never reset."""

    id: int
    sale_id: int
    ordinal: int
    lane: int
    total: int
    limit_per_buyer: int
    scheduled_ms: int  # when it was to begin; an operator may have moved its beginning since
    begins_ms: int
    ends_ms: int
    status: RoundStatus
    epoch: int  # grows when the gate has to be rebuilt from the ledger; entries of another epoch are void
    revision: int  # grows with every change an operator makes
    synced_revision: int  # the revision that the gate is known to have
    opened_ms: int | None  # when the gate got its stock; set once, before anybody can be admitted
    retired_ms: int | None = None  # since when the gate need not have it any more: all its orders have come to rest
    lanes: int = 1

    @property
    def ref(self) -> RoundRef:
        return RoundRef(id=self.id, lane=self.lane, lanes=self.lanes)

    @property
    def every_lane(self) -> range:
        return self.ref.every_lane


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleDraft:
    """What the merchant announces."""

    title: str
    units: int
    limit_per_buyer: int
    price_cents: int
    currency: str
    begins_ms: int
    ends_ms: int
    pay_within_s: int
    recurrence: Recurrence | None = None  # then `begins_ms` and `ends_ms` are of the first round
    lanes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleChange:
    """What an operator wants changed; None leaves it as it is.

    Of a sale that repeats, one round is changed: stock and window are of that round alone, a limit is also for those
    that follow, and closing it ends the repetition.
    """

    title: str | None = None
    add_units: int = 0
    limit_per_buyer: int | None = None
    begins_ms: int | None = None
    ends_ms: int | None = None
    status: RoundStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sale:
    """A sale and one of its rounds."""

    id: int
    title: str
    price_cents: int
    currency: str
    pay_within_s: int
    created_ms: int
    changed: int  # the catalogue's version when this sale last changed
    round: Round
    recurrence: Recurrence | None = None

    def state(self, now_ms: int, sold_out: bool) -> SaleState:
        if self.round.status is RoundStatus.CLOSED or now_ms >= self.round.ends_ms:
            return SaleState.ENDED
        if now_ms < self.round.begins_ms:
            return SaleState.SCHEDULED
        if self.round.status is RoundStatus.PAUSED:
            return SaleState.PAUSED
        return SaleState.SOLD_OUT if sold_out else SaleState.OPEN


# How long an ended round is still the one that a claim means, unless the next has begun: whoever got no answer at the
# last moment repeats, and must find the own order.
AFTERGLOW_MS = 30_000


def current(sales: Sequence[Sale], now_ms: int) -> Sale:
    """The one of a sale's rounds, given in their order, that buyers mean now: the one that is on or just over, else
    the next to come, else the last."""
    if len(sales) == 1:
        return sales[0]
    begun = [sale for sale in sales if sale.round.begins_ms <= now_ms]
    if begun and now_ms < begun[-1].round.ends_ms + AFTERGLOW_MS:
        return begun[-1]
    to_come = sales[len(begun) :]
    for sale in to_come:
        if sale.round.status is not RoundStatus.CLOSED:
            return sale
    return begun[-1] if begun else sales[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Units of a round: those that workers have ever written, and those that the gate has admitted and taken back, as
    far as the ledger knows; and the newest of the operators' rules that the gate has had. A gate that counts less or is
    of another epoch has gone back in time."""

    written: int
    admitted: int
    released: int
    synced_revision: int
    epoch: int


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


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A buyer presses "buy". An empty request id means that the buyer sent none: nothing to recognise a repeat by."""

    user: str
    quantity: int
    request_id: str = ""


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One order of a buyer as the gate remembers it. It stays for as long as the round, also when the order is over."""

    number: OrderNumber
    quantity: int
    slot: int
    request_id: str
    live: bool


class Answer(msgspec.Struct, frozen=True, gc=False):
    """`holdings`: the order of an admitted or repeated claim; the live orders of a buyer who is at the limit."""

    outcome: Outcome
    holdings: tuple[Holding, ...] = ()


class Admission(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One admitted claim on its way from the gate to the ledger: what a stream entry carries."""

    number: OrderNumber
    round_id: int
    epoch: int
    user: str
    quantity: int
    slot: int
    request_id: str
    admitted_ms: int


# State → the numbers of orders that have it. Plain integers: of the thousands that every node is told of in a second
# hardly any is waited for, so nothing is made of the others.
States: TypeAlias = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundState:
    """A round as the gate holds it."""

    lane: int
    total: int
    available: int
    admitted: int  # units ever admitted: only grows
    released: int  # units ever given back: only grows
    limit_per_buyer: int
    begins_ms: int
    ends_ms: int
    status: RoundStatus
    backlog: int = 0
    counter: int = 0  # orders of this lane today
    buyers: Mapping[str, tuple[Holding, ...]] = field(default_factory=dict)


def admit(state: RoundState | None, claim: Claim, now_ms: int, backlog_max: int) -> tuple[RoundState | None, Answer]:
    """The admission rule. `admit.lua` is the same rule inside the gate; random histories are run through both."""
    if not 1 <= claim.quantity <= QUANTITY_MAX:
        return state, Answer(Outcome.INVALID)
    if state is None:
        return state, Answer(Outcome.NOT_READY)
    mine = state.buyers.get(claim.user, ())
    if claim.request_id:
        for holding in mine:
            if holding.request_id == claim.request_id:
                same = holding.quantity == claim.quantity
                return state, Answer(Outcome.REPEATED if same else Outcome.KEY_REUSED, (holding,))
    live = tuple(holding for holding in mine if holding.live)
    refusal = _refusal(state, claim.quantity, live, now_ms, backlog_max)
    if refusal is not None:
        return state, Answer(refusal, live if refusal is Outcome.LIMIT_REACHED else ())
    holding = Holding(
        number=OrderNumber.mint(now_ms, state.lane, state.counter + 1),
        quantity=claim.quantity,
        slot=_lowest_free_slot(live),
        request_id=claim.request_id,
        live=True,
    )
    after = replace(
        state,
        available=state.available - claim.quantity,
        admitted=state.admitted + claim.quantity,
        backlog=state.backlog + 1,
        counter=state.counter + 1,
        buyers={**state.buyers, claim.user: (*mine, holding)},
    )
    return after, Answer(Outcome.ADMITTED, (holding,))


def _refusal(
    state: RoundState, quantity: int, live: tuple[Holding, ...], now_ms: int, backlog_max: int
) -> Outcome | None:
    if sum(holding.quantity for holding in live) + quantity > state.limit_per_buyer:
        return Outcome.LIMIT_REACHED
    if now_ms < state.begins_ms:
        return Outcome.NOT_STARTED
    if now_ms >= state.ends_ms or state.status is RoundStatus.CLOSED:
        return Outcome.ENDED
    if state.status is RoundStatus.PAUSED:
        return Outcome.PAUSED
    if state.backlog >= backlog_max or state.counter >= COUNTER_MAX:
        return Outcome.OVERLOADED
    if state.available < quantity:
        return Outcome.SOLD_OUT
    return None


def _lowest_free_slot(live: tuple[Holding, ...]) -> int:
    taken = {holding.slot for holding in live}
    return next(slot for slot in range(1, len(taken) + 2) if slot not in taken)
