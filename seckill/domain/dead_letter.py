"""Entries that the ledger refused: kept there, tried again, and finally left to people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from seckill.domain.order_number import OrderNumber


class LetterState(StrEnum):
    RETRYING = "retrying"
    RECORDED = "recorded"  # a later try has worked
    DEAD = "dead"  # given up: a person has to look at it
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """An entry that could not be written, with everything needed to try again and to explain it."""

    id: int
    lane: int
    entry_id: str
    number: OrderNumber | None
    payload: str
    reason: str
    history: Sequence[Mapping[str, object]]  # `at_ms` and `reason` of every try
    state: LetterState
    attempts: int
    created_ms: int
    next_ms: int | None
