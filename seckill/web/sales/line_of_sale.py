"""Reads from an operator's request how buyers get the units of a sale."""

from seckill.domain.beacon import BeaconSource
from seckill.domain.line import NO_LINE, LineOrder, LineRules
from seckill.settings import Settings
from seckill.web.problems import invalid
from seckill.web.schemas import NewSale


def line_rules_of(new: NewSale, settings: Settings) -> LineRules:
    """`NO_LINE` or rules that differ from it. Raises HttpProblem."""
    rules = LineRules(
        order=LineOrder(new.order),
        waiting_list=new.waiting_list,
        serve_per_s=new.serve_per_s,
        beacon=new.beacon,
        beacon_from=_source(settings) if new.beacon else None,
    )
    if rules.waiting_list and rules.draws:
        raise invalid("waiting_list", f"is for order press: with {rules.order}, there is a line anyway")
    if rules.serve_per_s is not None and not rules.has_line:
        raise invalid("serve_per_s", "is the pace of a line: this sale has none")
    if rules.beacon and not rules.draws:
        raise invalid("beacon", "is for a draw: this sale has none")
    return NO_LINE if rules == NO_LINE else rules


def _source(settings: Settings) -> BeaconSource | None:
    """Returns the beacon's source as it is announced: later settings count for later sales."""
    if not settings.beacon_url:
        return None
    return BeaconSource(
        url=settings.beacon_url,
        genesis_s=settings.beacon_genesis_s,
        period_s=settings.beacon_period_s,
        within_s=settings.beacon_within_s,
    )


def check_time_of_draw(rules: LineRules, begins_ms: int, now_ms: int) -> None:
    """Refuses a draw in the past: no one could enter before it is made."""
    if rules.order is LineOrder.DRAW and begins_ms <= now_ms:
        raise invalid("begins_at", "must be in the future: that is when the list is closed and the draw is made")
