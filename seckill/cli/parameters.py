"""Parameters that several commands share."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from cyclopts import Parameter, Token


def whole(_: Any, tokens: Sequence[Token]) -> int:
    """Cyclopts itself would round, and a price of 99.99 cents must not become 100."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ValueError(f'"{text}" is not a whole number.')
    return int(text)


def moment(_: Any, tokens: Sequence[Token]) -> datetime:
    text = tokens[0].value
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a time; write it like 2026-11-20T10:00:00+08:00.') from None


_LONG = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment_to_come(kind: Any, tokens: Sequence[Token]) -> datetime:
    """Also reads how long from now, such as +2m, for people who try things out."""
    if later := re.fullmatch(rf"\+(\d{{1,5}})([{''.join(_LONG)}])", tokens[0].value):
        return datetime.now(UTC) + timedelta(**{_LONG[later[2]]: int(later[1])})
    return moment(kind, tokens)


Whole = Annotated[int, Parameter(converter=whole)]
OptionalWhole = Annotated[int | None, Parameter(converter=whole)]
AsJson = Annotated[bool, Parameter(name="--json", help="Print one JSON document.", negative=(), show_default=False)]
Url = Annotated[str | None, Parameter(help="Address of the API, if not the one on this machine.")]
SaleId = Annotated[str, Parameter(help="The sale's id, as `seckill sale list` shows it.")]
Why = Annotated[str | None, Parameter(name="--reason", help="Why; it stays on the record.")]
LetterId = Annotated[str, Parameter(help="The dead letter's id, as `seckill dead list` shows it.")]
