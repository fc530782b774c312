"""Turns what the gate says about orders into objects of the engine: the answers of `admit.lua`, and a buyer's
record."""

from collections.abc import Sequence
from typing import Any

from seckill.backends.redis.buyer_records import read_orders
from seckill.backends.redis.round_hash import is_whole
from seckill.domain.admission import Answer, Claim, Holding
from seckill.domain.order_number import COUNTER_MAX, OrderNumber
from seckill.domain.outcome import Outcome

_COOLING_DOWN, _SOLD_OUT = Outcome.COOLING_DOWN.value.encode(), Outcome.SOLD_OUT.value.encode()
NO_ORDERS = (_COOLING_DOWN, _SOLD_OUT)  # what comes with these outcomes is not an order
_ADMITTED = Outcome.ADMITTED  # looking up a member of an enum is slow
_OUTCOMES = {outcome.value.encode(): outcome for outcome in Outcome}


def item_gone(claims: Sequence[Claim], outcomes: Sequence[bytes], told: Sequence[bytes]) -> frozenset[int]:
    answered = zip(claims, outcomes, told, strict=True)
    return frozenset(claim.item for claim, outcome, left in answered if outcome == _SOLD_OUT and left == b"0")


def read_admitted(claim: Claim, seconds: int, lane: int, minted: int) -> Answer:
    """Reads only counter and slot, which are all that the caller does not know about a new order."""
    number = OrderNumber(seconds, lane, minted & COUNTER_MAX)
    # Passed by position: names would cost a third more.
    return Answer(_ADMITTED, (Holding(number, claim.quantity, minted >> 24, claim.request_id, True, 0, claim.item),))


def read_answer(claim: Claim, lane: int, outcome: bytes, told: bytes) -> Answer:
    if outcome == _COOLING_DOWN:
        return Answer(Outcome.COOLING_DOWN, again_ms=int(told))
    if outcome == _SOLD_OUT:
        return Answer(Outcome.SOLD_OUT, item=claim.item)
    return Answer(_OUTCOMES[outcome], read_orders(lane, told) if told else ())


def live_orders(lane: int, reply: Any) -> tuple[Holding, ...] | None:
    """Reads a reply of `held.lua`. An existing record tells everything, even while others are missing. Returns None if
    the buyer's record is lost or may be."""
    if not isinstance(reply, bytes):
        buyers, past, fields = reply
        return () if fields is not None and is_whole(tuple(fields), buyers, past) else None
    try:
        return tuple(holding for holding in read_orders(lane, reply) if holding.live)
    except ValueError:
        return None
