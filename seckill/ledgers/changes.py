"""What an operator may change about a sale, and when. Pure: the sale, the wish and the time come in."""

from dataclasses import dataclass, replace

from seckill.domain import UNITS_MAX, Round, RoundStatus, Sale, SaleChange
from seckill.errors import NotPossible

_CHANGEABLE = ("total", "limit_per_buyer", "begins_ms", "ends_ms", "status")


@dataclass(frozen=True, slots=True)
class Decision:
    """Only what will really be different, by column."""

    sale: dict[str, str]
    round: dict[str, int | str]


def decide(sale: Sale, change: SaleChange, now_ms: int) -> Decision:
    """Raises NotPossible with a sentence for the operator."""
    title = {} if change.title is None or change.title == sale.title else {"title": change.title}
    after = _wanted(sale.round, change)
    different = {
        name: getattr(after, name) for name in _CHANGEABLE if getattr(after, name) != getattr(sale.round, name)
    }
    if different:
        _check(sale.round, after, now_ms)
    return Decision(title, different)


def _wanted(round_: Round, change: SaleChange) -> Round:
    return replace(
        round_,
        total=round_.total + change.add_units,
        limit_per_buyer=round_.limit_per_buyer if change.limit_per_buyer is None else change.limit_per_buyer,
        begins_ms=round_.begins_ms if change.begins_ms is None else change.begins_ms,
        ends_ms=round_.ends_ms if change.ends_ms is None else change.ends_ms,
        status=round_.status if change.status is None else change.status,
    )


def _check(before: Round, after: Round, now_ms: int) -> None:
    if before.status is RoundStatus.CLOSED:
        raise NotPossible("The sale is closed for good, only its title can still change: create a new sale.")
    if after.total < before.total:
        raise NotPossible("Units can only be added, because those that are there may have been sold.")
    if after.total > UNITS_MAX:
        raise NotPossible(f"A sale cannot have more than {UNITS_MAX} units: add fewer.")
    if after.begins_ms != before.begins_ms and now_ms >= before.begins_ms:
        raise NotPossible("The sale has begun, so its beginning cannot change any more: pause or close it instead.")
    if after.ends_ms <= after.begins_ms:
        raise NotPossible("A sale must end after it begins: move its end as well.")
