"""How buyers come to the units of a sale, as an operator says it."""

from seckill.domain.line import NO_LINE, LineOrder, LineRules
from seckill.web.problems import invalid
from seckill.web.schemas import NewSale


def line_rules_of(new: NewSale) -> LineRules:
    """`NO_LINE` or rules that differ from it. Raises HttpProblem."""
    rules = LineRules(
        order=LineOrder(new.order),
        waiting_list=new.waiting_list,
        serve_per_s=new.serve_per_s,
        beacon=new.beacon,
    )
    if rules.waiting_list and rules.draws:
        raise invalid("waiting_list", f"is for order press: with {rules.order}, there is a line anyway")
    if rules.serve_per_s is not None and not rules.has_line:
        raise invalid("serve_per_s", "is the pace of a line: this sale has none")
    if rules.beacon and not rules.draws:
        raise invalid("beacon", "is for a draw: this sale has none")
    return NO_LINE if rules == NO_LINE else rules


def check_time_of_draw(rules: LineRules, begins_ms: int, now_ms: int) -> None:
    """Who could enter before it is made, if it is in the past?"""
    if rules.order is LineOrder.DRAW and begins_ms <= now_ms:
        raise invalid("begins_at", "must be in the future: that is when the list is closed and the draw is made")
