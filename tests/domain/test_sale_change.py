"""An operator's changes: which are allowed, and when. That the ledger applies them is for the ledger's own tests."""

from dataclasses import replace
from typing import Any

import pytest

from seckill.domain.door import OPEN_DOOR, Door
from seckill.domain.line import LineOrder, LineRules
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import UNITS_MAX, RoundStatus, Sale, SaleChange
from seckill.domain.sale_change import decide, may_go_on
from seckill.errors import NotPossible
from tests.making import make_round

DAILY = Recurrence(repeat="daily", timezone="UTC", begins_ms=100, window_ms=100)


def sale(recurrence: Recurrence | None = None, **round_: Any) -> Sale:
    made = make_round(**({"begins_ms": 100, "ends_ms": 200} | round_))
    return Sale(
        id=1,
        title="Socks",
        price_cents=1,
        currency="CNY",
        pay_within_s=1,
        created_ms=0,
        changed=1,
        round=made,
        recurrence=recurrence,
    )


def test_only_what_is_different_is_changed() -> None:
    same = SaleChange(title="Socks", limit_per_buyer=1, begins_ms=100, ends_ms=200, status=RoundStatus.OPEN)
    assert decide(sale(), same, now_ms=50).is_nothing
    decision = decide(sale(), SaleChange(title="Shoes", add_units=2, ends_ms=200), now_ms=50)
    assert (decision.sale, decision.round, decision.later) == ({"title": "Shoes"}, {"total": 12}, {})


@pytest.mark.parametrize(
    ("round_", "change", "now_ms", "because"),
    [
        ({"status": RoundStatus.CLOSED}, SaleChange(status=RoundStatus.OPEN), 50, "closed for good"),
        ({"retired_ms": 300}, SaleChange(add_units=1), 50, "over for long"),
        ({}, SaleChange(add_units=-1), 50, "only be added"),
        ({}, SaleChange(add_units=UNITS_MAX), 50, "cannot have more"),
        ({}, SaleChange(begins_ms=90), 100, "has begun"),
        ({}, SaleChange(ends_ms=100), 50, "must end after"),
    ],
)
def test_what_is_not_possible(round_: dict[str, Any], change: SaleChange, now_ms: int, because: str) -> None:
    with pytest.raises(NotPossible, match=because):
        decide(sale(**round_), change, now_ms)


def test_a_draw_is_not_moved_into_the_past() -> None:
    """Its list would be closed at once, for those who would have joined by the time that was announced."""
    minute = 60_000
    draw = replace(sale(begins_ms=9 * minute, ends_ms=20 * minute), door=Door(line=LineRules(order=LineOrder.DRAW)))
    with pytest.raises(NotPossible, match="cannot be made in the past"):
        decide(draw, SaleChange(begins_ms=3 * minute - 1), now_ms=4 * minute)
    now = decide(draw, SaleChange(begins_ms=3 * minute), now_ms=4 * minute)
    assert now.round == {"begins_ms": 3 * minute}, "now, as it arrives"
    pressed = decide(replace(draw, door=OPEN_DOOR), SaleChange(begins_ms=0), now_ms=4 * minute)
    assert pressed.round == {"begins_ms": 0}, "who presses misses nothing"


def test_all_units_cost_no_more_together_than_can_be_added_up() -> None:
    dear = replace(sale(total=9), price_cents=10**15)
    with pytest.raises(NotPossible, match="cost at most 9007199254740991 together"):
        decide(dear, SaleChange(add_units=1), now_ms=50)
    assert decide(replace(sale(total=8), price_cents=10**15), SaleChange(add_units=1), now_ms=50).round == {"total": 9}
    assert decide(replace(dear, round=sale(total=10).round), SaleChange(title="x"), now_ms=50).sale == {"title": "x"}


def test_the_title_can_always_change() -> None:
    decision = decide(sale(status=RoundStatus.CLOSED), SaleChange(title="Shoes"), now_ms=500)
    assert (decision.sale, decision.round) == ({"title": "Shoes"}, {})


def test_rounds_do_not_overlap() -> None:
    before, following = make_round(begins_ms=10, ends_ms=90), make_round(begins_ms=210, ends_ms=300)
    wanted = SaleChange(begins_ms=90, ends_ms=210)
    assert decide(sale(), wanted, 50, before, following).round == {"begins_ms": 90, "ends_ms": 210}
    with pytest.raises(NotPossible, match="round before ends"):
        decide(sale(), replace(wanted, begins_ms=89), 50, before, following)
    with pytest.raises(NotPossible, match="next round begins"):
        decide(sale(), replace(wanted, ends_ms=211), 50, before, following)


def test_limit_and_closing_of_a_sale_that_repeats_are_for_later_rounds_as_well() -> None:
    following = make_round(begins_ms=300, ends_ms=400)
    change = SaleChange(limit_per_buyer=5, add_units=1, status=RoundStatus.CLOSED)
    decision = decide(sale(DAILY), change, 50, following=following)
    assert decision.round == {"total": 11, "limit_per_buyer": 5, "status": RoundStatus.CLOSED}
    assert decision.sale == {"limit_per_buyer": 5}
    assert decision.later == {"limit_per_buyer": 5, "status": RoundStatus.CLOSED}
    assert decide(sale(DAILY), change, 50).later == {}, "none has been made yet"


def test_the_audit_pauses_what_is_open_and_opens_what_it_has_paused() -> None:
    pause = SaleChange(status=RoundStatus.PAUSED, by_audit=True)
    lift = SaleChange(status=RoundStatus.OPEN, by_audit=True)
    assert decide(sale(), pause, 150).round == {"status": RoundStatus.PAUSED, "audit_epoch": 1}
    assert decide(sale(status=RoundStatus.PAUSED), lift, 150).is_nothing, "an operator's pause"
    of_audit = sale(status=RoundStatus.PAUSED, audit_epoch=1)
    assert decide(of_audit, lift, 150).round == {"status": RoundStatus.OPEN, "audit_epoch": None}
    taken_over = SaleChange(status=RoundStatus.PAUSED)
    assert decide(of_audit, taken_over, 150).round == {"audit_epoch": None}, "from now on it is the operator's"


@pytest.mark.parametrize(
    ("recurrence", "status", "begins_ms", "may"),
    [
        (DAILY, RoundStatus.OPEN, 200, True),
        (DAILY, RoundStatus.PAUSED, 200, True),
        (DAILY, RoundStatus.OPEN, 199, False),
        (DAILY, RoundStatus.CLOSED, 200, False),
        (None, RoundStatus.OPEN, 200, False),
    ],
)
def test_whether_a_sale_goes_on(recurrence: Recurrence | None, status: RoundStatus, begins_ms: int, may: bool) -> None:
    assert may_go_on(sale(recurrence, status=status), begins_ms) is may
