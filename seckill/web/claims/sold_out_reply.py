"""The refusal that nearly all buyers get after a sell-out. It is written once for each round, or item of a round, and
state of the sale, with a gap for the time: filling that in takes 0.5 µs, writing the refusal from scratch 7."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from seckill.domain.outcome import Outcome
from seckill.domain.sale import Sale
from seckill.engine.claims.sold_out import FlagKey, SoldOutFlag
from seckill.web.problems import HttpProblem
from seckill.web.sales.next_rounds import next_rounds
from seckill.web.schemas import rfc3339, rfc3339_or_none

_GAP = rfc3339(0)  # as long as any other time
# How many forms are kept: no more rounds are sold out at once.
FORMS_MAX = 1_000

Write = Callable[[HttpProblem], tuple[bytes, bytes]]  # as headers and body


class WhatNow(StrEnum):
    """What a buyer who came too late can still do."""

    JOIN_THE_LINE = "join_the_line"  # units that come back go to those in the line
    TRY_AGAIN = "try_again"  # units that come back go to those who press then
    NEXT_ROUND = "next_round"
    NOTHING = "nothing"


class _Form(NamedTuple):
    facts: tuple[int | None, int | None]  # the facts in the refusal
    sale: Sale
    headers: bytes
    body: bytes


class SoldOutReplies:
    def __init__(
        self,
        flags: Mapping[FlagKey, SoldOutFlag],
        unpaid: Mapping[int, int],
        now_ms: Callable[[], int],
        item_id: Callable[[int], str],
        write: Write,
    ) -> None:
        self._flags = flags
        self._unpaid = unpaid
        self._now_ms = now_ms
        self._item_id = item_id
        self._write = write
        self._forms: dict[FlagKey, _Form] = {}
        self._ms = 0
        self._now = b""

    def of(self, sale: Sale, item: int) -> tuple[bytes, bytes]:
        """Returns headers and body. It is not known when the last unit of an item was sold, nor how many are unpaid:
        those are counted for rounds only."""
        round_id = sale.round.id
        key: FlagKey = (round_id, item) if item else round_id
        flag = self._flags.get(key)
        facts = (None if flag is None else flag.sold_out_ms, None if item else self._unpaid.get(round_id))
        form = self._forms.get(key)
        if form is None or form.facts != facts or form.sale is not sale:
            form = self._form(key, sale, item, facts)
        now_ms = self._now_ms()
        if now_ms != self._ms:  # many buyers are refused in the same millisecond
            self._ms, self._now = now_ms, rfc3339(now_ms).encode()
        return form.headers, form.body % self._now

    def _form(self, key: FlagKey, sale: Sale, item: int, facts: tuple[int | None, int | None]) -> "_Form":
        sold_out_ms, unpaid = facts
        of_item = {"item_id": self._item_id(item)} if item else {}
        begins_ms = next(iter(next_rounds(sale)), None)
        problem = HttpProblem.of(
            Outcome.SOLD_OUT,
            "This item is sold out." if item else "",
            decided_at=_GAP,
            sold_out_at=rfc3339_or_none(sold_out_ms),
            may_return=unpaid,
            what_now=_what_now(sale, item, unpaid, begins_ms),
            next_round_at=rfc3339_or_none(begins_ms),
            **of_item,
        )
        headers, body = self._write(problem)
        if len(self._forms) >= FORMS_MAX:
            self._forms.clear()
        gap = body.replace(b"%", b"%%").replace(_GAP.encode(), b"%b", 1)
        form = self._forms[key] = _Form(facts, sale, headers, gap)
        return form


def _what_now(sale: Sale, item: int, unpaid: int | None, next_begins_ms: int | None) -> WhatNow:
    if unpaid == 0:  # no units come back by themselves
        return WhatNow.NOTHING if next_begins_ms is None else WhatNow.NEXT_ROUND
    # A waiting list begins when the whole round is sold out, which is not known here if the buyer asked for an item.
    return WhatNow.JOIN_THE_LINE if sale.door.line.waiting_list and not item else WhatNow.TRY_AGAIN
