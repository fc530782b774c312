"""Decides what an operator may change about a sale, and when, and what follows for later rounds. Pure: the sale, the
wish and the time go in."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from seckill.domain.door import Door
from seckill.domain.goods import GoodsValue
from seckill.domain.line import LineOrder
from seckill.domain.money import WORTH_CENTS_MAX
from seckill.domain.sale import UNITS_MAX, Round, RoundStatus, Sale, SaleChange
from seckill.errors import NotPossible

_CHANGEABLE = ("total", "limit_per_buyer", "cool_down_s", "begins_ms", "ends_ms", "status", "early_s")
_ALSO_LATER = ("limit_per_buyer", "cool_down_s", "early_s")
_OF_ITEM = ("title", "external_id", "image")
# "Draw now" may be a moment ago when it arrives, and by another clock. A time before that is a slip.
_DRAW_NOW_MS = 60_000


@dataclass(frozen=True, slots=True)
class Decision:
    """Only the values that will really differ, by column: of the sale, of the round, and of later rounds that exist
    already."""

    sale: dict[str, int | str]
    round: dict[str, int | str | None]
    later: dict[str, int | str]
    goods: dict[str, GoodsValue] = field(default_factory=dict)
    items: dict[int, dict[str, str | None]] = field(default_factory=dict)  # by item
    item_totals: dict[int, int] = field(default_factory=dict)  # of the round, by item
    door: Door | None = None

    @property
    def is_nothing(self) -> bool:
        return not (self.sale or self.round or self.later or self.goods or self.items or self.door)

    def external_id(self, sale: Sale) -> str | None:
        """Returns the id that the sale has afterwards."""
        wanted = self.goods.get("external_id", sale.goods.external_id)
        return wanted if isinstance(wanted, str) else None


def decide(
    sale: Sale, change: SaleChange, now_ms: int, before: Round | None = None, following: Round | None = None
) -> Decision:
    """`before` and `following` are the rounds beside the one that is to change. Raises NotPossible with a sentence for
    the operator."""
    if change.by_audit:
        return Decision({}, _by_audit(sale.round, change.status), {})
    of_sale: dict[str, int | str] = {}
    if change.title is not None and change.title != sale.title:
        of_sale["title"] = change.title
    after = _wanted(sale.round, change)
    different: dict[str, int | str | None] = {
        name: getattr(after, name) for name in _CHANGEABLE if getattr(after, name) != getattr(sale.round, name)
    }
    if different:
        _check(sale.round, after, now_ms)
        _check_neighbours(after, before, following)
        _check_draw(sale, after, now_ms)
    if "total" in different:
        _check_worth(sale, after)
    if change.status is RoundStatus.PAUSED and sale.round.audit_epoch is not None:
        different["audit_epoch"] = None  # from now on the pause is the operator's
    later: dict[str, int | str] = {}
    if sale.recurrence is not None:
        later |= {name: getattr(after, name) for name in _ALSO_LATER if name in different}
        # for the sale, it is in its door
        of_sale |= {name: value for name, value in later.items() if name != "early_s"}
    if "status" in different and after.status is RoundStatus.CLOSED:
        later["status"] = RoundStatus.CLOSED
    if change.published is not None and change.published != sale.published:
        of_sale["published"] = later["published"] = int(change.published)
        if sale.round.retired_ms is None:  # otherwise the gate no longer has it
            different["published"] = int(change.published)
    goods = sale.goods.difference(change.goods)
    door = change.door if change.door != sale.door else None
    totals = dict(set(after.items) - set(sale.round.items))
    later = later if following is not None else {}
    return Decision(of_sale, different, later, goods, _of_items(sale, change), totals, door)


def may_go_on(newest: Sale, begins_ms: int) -> bool:
    """Whether a round may follow the newest one and begin then: not when an operator has closed the sale, or moved the
    end of its newest round past that time."""
    over = newest.recurrence is None or newest.round.status is RoundStatus.CLOSED
    return not over and begins_ms - 1000 * newest.door.audience.early_s_max >= newest.round.ends_ms


def _by_audit(round_: Round, status: RoundStatus | None) -> dict[str, int | str | None]:
    """Operators have the last word: a round that they have paused or closed meanwhile stays so."""
    if status is RoundStatus.PAUSED and round_.status is RoundStatus.OPEN and round_.retired_ms is None:
        return {"status": RoundStatus.PAUSED, "audit_epoch": round_.epoch}
    if status is RoundStatus.OPEN and round_.concerns_audit and round_.status is not RoundStatus.CLOSED:
        opened = {"status": RoundStatus.OPEN} if round_.status is RoundStatus.PAUSED else {}
        return {"audit_epoch": None, **opened}
    return {}


def _of_items(sale: Sale, change: SaleChange) -> dict[int, dict[str, str | None]]:
    """Returns what is really different for each item."""
    found: dict[int, dict[str, str | None]] = {}
    external_ids = {item.id: item.external_id for item in sale.items}
    for wanted in change.items:
        item = sale.item(wanted.id)
        if item is None:
            raise NotPossible("This sale has no such item.")
        asked = {name: getattr(wanted, name) for name in _OF_ITEM if getattr(wanted, name) is not None}
        new = {name: value or None for name, value in asked.items() if (value or None) != getattr(item, name)}
        external_ids[item.id] = new.get("external_id", item.external_id)
        if new:
            found[item.id] = new
    given = [external_id for external_id in external_ids.values() if external_id is not None]
    if len(set(given)) < len(given):
        raise NotPossible("Two items of a sale cannot have the same external_id.")
    return found


def _wanted(round_: Round, change: SaleChange) -> Round:
    if round_.items and change.add_units:
        raise NotPossible("This sale has items: add units to one of them.")
    more = Counter({item.id: item.add_units for item in change.items})
    return replace(
        round_,
        items=tuple(item._replace(total=item.total + more[item.id]) for item in round_.items),
        total=round_.total + change.add_units + more.total(),
        limit_per_buyer=round_.limit_per_buyer if change.limit_per_buyer is None else change.limit_per_buyer,
        cool_down_s=round_.cool_down_s if change.cool_down_s is None else change.cool_down_s,
        begins_ms=round_.begins_ms if change.begins_ms is None else change.begins_ms,
        ends_ms=round_.ends_ms if change.ends_ms is None else change.ends_ms,
        status=round_.status if change.status is None else change.status,
        early_s=round_.early_s if change.door is None else change.door.audience.early_s_max,
    )


def _check(before: Round, after: Round, now_ms: int) -> None:
    if before.status is RoundStatus.CLOSED:
        raise NotPossible("The sale is closed for good: only what it shows can still change. Create a new sale.")
    if before.retired_ms is not None:
        raise NotPossible("This sale has been over for long: only what it shows can still change. Create a new sale.")
    added = [now.total - then.total for then, now in zip(before.items, after.items, strict=True)]
    if after.total < before.total or min(added, default=0) < 0:
        raise NotPossible("Units can only be added, because those that are there may have been sold.")
    if after.total > UNITS_MAX:
        raise NotPossible(f"A sale cannot have more than {UNITS_MAX} units: add fewer.")
    if after.opens_ms != before.opens_ms and now_ms >= before.opens_ms:
        raise NotPossible("The sale has begun, so its beginning cannot change any more: pause or close it instead.")
    if after.ends_ms <= after.begins_ms:
        raise NotPossible("A sale must end after it begins: move its end as well.")


def _check_draw(sale: Sale, after: Round, now_ms: int) -> None:
    moved = sale.door.line.order is LineOrder.DRAW and after.begins_ms != sale.round.begins_ms
    if moved and after.begins_ms < now_ms - _DRAW_NOW_MS:
        raise NotPossible("A draw cannot be made in the past: its list would be closed at once.")


def may_be_published(sale: Sale, entries: int, now_ms: int) -> bool:
    """Whether people can still come to its units as it says. A draw that was due while the sale was hidden, with no one
    in it, is over. `entries`: all that were ever in the round's line."""
    is_draw = sale.door.line.order is LineOrder.DRAW and sale.recurrence is None
    return entries > 0 or not is_draw or now_ms < sale.round.begins_ms


def _check_worth(sale: Sale, after: Round) -> None:
    items = [sale.price_of(item.id) * item.total for item in after.items]
    if sum(items or [sale.price_cents * after.total]) > WORTH_CENTS_MAX:
        raise NotPossible(f"All units of a sale must cost at most {WORTH_CENTS_MAX} together: add fewer.")


def _check_neighbours(after: Round, before: Round | None, following: Round | None) -> None:
    if before is not None and after.opens_ms < before.ends_ms:
        raise NotPossible(f"The round before ends at {_written(before.ends_ms)}: let this one begin then or later.")
    if following is not None and after.ends_ms > following.opens_ms:
        raise NotPossible(f"The next round begins at {_written(following.opens_ms)}: let this one end then or earlier.")


def _written(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"
