"""Decides who is admitted: the one rule that every gate follows. Pure: data and `now` go in, a decision comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
from msgspec import structs

from seckill.domain.cool_down import cools_until_ms
from seckill.domain.item import NO_ITEM
from seckill.domain.line import OF_LINE
from seckill.domain.order_number import COUNTER_MAX, OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import QUANTITY_MAX, Round, RoundStatus


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A buyer presses "buy". An empty request id means that the buyer sent none, so a repeat cannot be recognised."""

    user: str
    quantity: int
    request_id: str = ""
    metadata: str = ""  # the shop's own, a JSON object as canonical text; no rule looks at it
    item: int = NO_ITEM
    early_ms: int = 0  # how much earlier than others its buyer may buy
    person: str = ""  # the person by whom the limit counts, if not only by user: all users who share it count as one
    trace: str = ""  # the trace for the order of a traced claim; no rule looks at it


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One order of a buyer as the gate remembers it. It stays for as long as the round, even when the order is over.

    `lapsed_ms`: when the buyer cancelled the order or failed to pay in time. This comes from the ledger; a gate only
    keeps the part that is in a `Record`.
    """

    number: OrderNumber
    quantity: int
    slot: int
    request_id: str
    live: bool
    lapsed_ms: int = 0
    item: int = NO_ITEM
    person: str = ""  # the claim's, from the ledger; a gate remembers which users belong to a person


class Record(msgspec.Struct, frozen=True, gc=False):
    """What a gate reads about a buyer at each claim: the live orders, and a note about those that are over. The latter
    are kept elsewhere and only looked up by their request ids, so a record stays short however often its buyer buys and
    cancels."""

    live: tuple[Holding, ...] = ()
    units_over: int = 0  # of all orders that are over
    lapses: int = 0  # orders that the buyer has cancelled or not paid in time
    lapsed_ms: int = 0  # when the last of them ended

    def without(self, ended: Holding, now_ms: int, *, lapsed: bool) -> "Record":
        return Record(
            live=tuple(holding for holding in self.live if holding != ended),
            units_over=self.units_over + ended.quantity,
            lapses=self.lapses + lapsed,
            lapsed_ms=now_ms if lapsed else self.lapsed_ms,
        )

    @classmethod
    def of(cls, holdings: Sequence[Holding], now_ms: int) -> "Record":
        """Makes a record from everything that the ledger has. A clock that is ahead of the gate's does not make a buyer
        wait longer."""
        lapsed_ms = [holding.lapsed_ms for holding in holdings if holding.lapsed_ms]
        return cls(
            live=tuple(holding for holding in holdings if holding.live),
            units_over=sum(holding.quantity for holding in holdings if not holding.live),
            lapses=len(lapsed_ms),
            lapsed_ms=min(max(lapsed_ms, default=0), now_ms),
        )


class Answer(msgspec.Struct, frozen=True, gc=False):
    """`holdings`: the order of an admitted or repeated claim, or the live orders of a buyer who is at the limit.
    `again_ms`: when a buyer who is cooling down may buy again. `item`: the item that is sold out."""

    outcome: Outcome
    holdings: tuple[Holding, ...] = ()
    again_ms: int = 0
    item: int = NO_ITEM


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
    metadata: str = ""
    item: int = NO_ITEM
    person: str = ""
    trace: str = ""  # a `traceparent`, see domain/trace.py; it travels beside the entry's text


def admission_of(round_: Round, user: str, held: Holding) -> Admission:
    """Makes an admission of an order that the gate remembers, for the round's present epoch. The gate does not remember
    metadata."""
    return Admission(
        number=held.number,
        round_id=round_.id,
        epoch=round_.epoch,
        user=user,
        quantity=held.quantity,
        slot=held.slot,
        request_id=held.request_id,
        admitted_ms=held.number.minted_ms,
        item=held.item,
        person=held.person,
    )


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
    cool_down_s: int = 0
    lined: bool = False
    backlog: int = 0
    counter: int = 0  # orders of this lane today
    buyers: Mapping[str, Record] = field(default_factory=dict)
    past: Mapping[tuple[str, str], tuple[Holding, ...]] = field(default_factory=dict)  # by user and request id
    items: Mapping[int, int] = field(default_factory=dict)  # item → available units; their sum is `available`

    def left_of(self, item: int) -> int:
        return self.items[item] if self.items else self.available


def admit(
    state: RoundState | None, claim: Claim, now_ms: int, backlog_max: int, beside: Sequence[Holding] | None = ()
) -> tuple[RoundState | None, Answer]:
    """The admission rule. `admit.lua` is the same rule inside the gate; random histories are run through both.

    `beside`: other live orders that count towards the limit: those of other users who are the same person, and those in
    rounds that share the limit. None: some of these are lost."""
    if not 1 <= claim.quantity <= QUANTITY_MAX:
        return state, Answer(Outcome.INVALID)
    if state is None:
        return state, Answer(Outcome.NOT_READY)
    if state.items and claim.item not in state.items:
        return state, Answer(Outcome.INVALID)
    if claim.item != NO_ITEM and not state.items:
        return state, Answer(Outcome.NOT_READY)  # the caller knows the sale, so the round has lost its items
    mine = state.buyers.get(claim.user, Record())
    known = _known(state, mine, claim)
    if known is not None:
        same = (known.quantity, known.item) == (claim.quantity, claim.item)
        return state, Answer(Outcome.REPEATED if same else Outcome.KEY_REUSED, (known,))
    again_ms = cools_until_ms(state.cool_down_s, mine.lapses, mine.lapsed_ms, claim.request_id)
    if now_ms < again_ms:
        return state, Answer(Outcome.COOLING_DOWN, again_ms=again_ms)
    over = now_ms >= state.ends_ms or state.status is RoundStatus.CLOSED
    if beside is None and not over:
        return state, Answer(Outcome.NOT_READY)
    counted = (*mine.live, *(() if over or beside is None else beside))
    refusal = _refusal(state, claim, counted, now_ms, backlog_max)
    if refusal is Outcome.SOLD_OUT:
        return state, Answer(refusal, item=claim.item)
    if refusal is not None:
        return state, Answer(refusal, mine.live if refusal is Outcome.LIMIT_REACHED else ())
    holding = Holding(
        number=OrderNumber.mint(now_ms, state.lane, state.counter + 1),
        quantity=claim.quantity,
        slot=_lowest_free_slot(mine.live),
        request_id=claim.request_id,
        live=True,
        item=claim.item,
    )
    after = replace(
        state,
        available=state.available - claim.quantity,
        admitted=state.admitted + claim.quantity,
        items={item: left - claim.quantity * (item == claim.item) for item, left in state.items.items()},
        backlog=state.backlog + 1,
        counter=state.counter + 1,
        buyers={**state.buyers, claim.user: structs.replace(mine, live=(*mine.live, holding))},
    )
    return after, Answer(Outcome.ADMITTED, (holding,))


def _known(state: RoundState, mine: Record, claim: Claim) -> Holding | None:
    if not claim.request_id:
        return None
    over = state.past.get((claim.user, claim.request_id), ()) if mine.units_over else ()
    return next((holding for holding in (*mine.live, *over) if holding.request_id == claim.request_id), None)


def _refusal(
    state: RoundState, claim: Claim, live: tuple[Holding, ...], now_ms: int, backlog_max: int
) -> Outcome | None:
    if sum(holding.quantity for holding in live) + claim.quantity > state.limit_per_buyer:
        return Outcome.LIMIT_REACHED
    open_to_line = state.lined and state.status is RoundStatus.OPEN and now_ms < state.ends_ms
    if open_to_line and not claim.request_id.startswith(OF_LINE):
        return Outcome.JOIN_THE_LINE
    if now_ms < state.begins_ms - claim.early_ms:
        return Outcome.NOT_STARTED
    if now_ms >= state.ends_ms or state.status is RoundStatus.CLOSED:
        return Outcome.ENDED
    if state.status is RoundStatus.PAUSED:
        return Outcome.PAUSED
    if state.backlog >= backlog_max or state.counter >= COUNTER_MAX:
        return Outcome.OVERLOADED
    if state.left_of(claim.item) < claim.quantity:
        return Outcome.SOLD_OUT
    return None


def _lowest_free_slot(live: tuple[Holding, ...]) -> int:
    taken = {holding.slot for holding in live}
    return next(slot for slot in range(1, len(taken) + 2) if slot not in taken)
