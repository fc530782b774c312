"""What an operator may change about a sale, and when; and what follows for the rounds to come. Pure: the sale, the wish
and the time come in."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from seckill.domain.sale import UNITS_MAX, Round, RoundStatus, Sale, SaleChange
from seckill.errors import NotPossible

_CHANGEABLE = ("total", "limit_per_buyer", "cool_down_s", "begins_ms", "ends_ms", "status")
_ALSO_LATER = ("limit_per_buyer", "cool_down_s")


@dataclass(frozen=True, slots=True)
class Decision:
    """Only what will really be different, by column: of the sale, of the round, and of the rounds after it that have
    been made already."""

    sale: dict[str, int | str]
    round: dict[str, int | str | None]
    later: dict[str, int | str]

    @property
    def is_nothing(self) -> bool:
        return not (self.sale or self.round or self.later)


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
    if change.status is RoundStatus.PAUSED and sale.round.audit_epoch is not None:
        different["audit_epoch"] = None  # from now on the pause is the operator's
    later: dict[str, int | str] = {}
    if sale.recurrence is not None:
        later |= {name: getattr(after, name) for name in _ALSO_LATER if name in different}
        of_sale |= later
    if "status" in different and after.status is RoundStatus.CLOSED:
        later["status"] = RoundStatus.CLOSED
    return Decision(of_sale, different, later if following is not None else {})


def may_go_on(newest: Sale, begins_ms: int) -> bool:
    """Whether a round may follow the newest one and begin then: not when an operator has closed the sale, or moved the
    end of its newest round past that time."""
    over = newest.recurrence is None or newest.round.status is RoundStatus.CLOSED
    return not over and begins_ms >= newest.round.ends_ms


def _by_audit(round_: Round, status: RoundStatus | None) -> dict[str, int | str | None]:
    """Operators have the last word: what they have paused or closed meanwhile stays so."""
    if status is RoundStatus.PAUSED and round_.status is RoundStatus.OPEN and round_.retired_ms is None:
        return {"status": RoundStatus.PAUSED, "audit_epoch": round_.epoch}
    if status is RoundStatus.OPEN and round_.concerns_audit and round_.status is not RoundStatus.CLOSED:
        opened = {"status": RoundStatus.OPEN} if round_.status is RoundStatus.PAUSED else {}
        return {"audit_epoch": None, **opened}
    return {}


def _wanted(round_: Round, change: SaleChange) -> Round:
    return replace(
        round_,
        total=round_.total + change.add_units,
        limit_per_buyer=round_.limit_per_buyer if change.limit_per_buyer is None else change.limit_per_buyer,
        cool_down_s=round_.cool_down_s if change.cool_down_s is None else change.cool_down_s,
        begins_ms=round_.begins_ms if change.begins_ms is None else change.begins_ms,
        ends_ms=round_.ends_ms if change.ends_ms is None else change.ends_ms,
        status=round_.status if change.status is None else change.status,
    )


def _check(before: Round, after: Round, now_ms: int) -> None:
    if before.status is RoundStatus.CLOSED:
        raise NotPossible("The sale is closed for good, only its title can still change: create a new sale.")
    if before.retired_ms is not None:
        raise NotPossible("This has been over for long, only the title can still change: create a new sale.")
    if after.total < before.total:
        raise NotPossible("Units can only be added, because those that are there may have been sold.")
    if after.total > UNITS_MAX:
        raise NotPossible(f"A sale cannot have more than {UNITS_MAX} units: add fewer.")
    if after.begins_ms != before.begins_ms and now_ms >= before.begins_ms:
        raise NotPossible("The sale has begun, so its beginning cannot change any more: pause or close it instead.")
    if after.ends_ms <= after.begins_ms:
        raise NotPossible("A sale must end after it begins: move its end as well.")


def _check_neighbours(after: Round, before: Round | None, following: Round | None) -> None:
    if before is not None and after.begins_ms < before.ends_ms:
        raise NotPossible(f"The round before ends at {_written(before.ends_ms)}: let this one begin then or later.")
    if following is not None and after.ends_ms > following.begins_ms:
        raise NotPossible(
            f"The next round begins at {_written(following.begins_ms)}: let this one end then or earlier."
        )


def _written(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"
