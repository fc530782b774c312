"""The quick way to join a line: from the bytes that arrived to the next transaction and back, without a task.

When a draw is announced, as many people join as will press later, and two thirds of a join's cost was the framework.
Like the quick way of a claim (`claim_protocol.py`), this only takes requests that are plainly right. All others become
ordinary requests (`line_entries.py`), which decide and word the refusal.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from seckill.domain.door import OPEN_DOOR, PassKind
from seckill.domain.sale import RoundStatus, Sale
from seckill.engine.line.joining import Joined
from seckill.ports.line import Joining, Standing
from seckill.web.buyers.buyer_check import authenticate
from seckill.web.buyers.token_person import person_of
from seckill.web.claims.claim import ClaimReply, json_reply
from seckill.web.context import Context
from seckill.web.door.claim_door import HEADER as PASS
from seckill.web.line.line_entries import NEW_ENTRY, shown
from seckill.web.problems import HttpProblem
from seckill.web.requests.request_body import decode

_PREFIX = "/v1/sales/"
_SUFFIX = "/entries"


class JoinInProgress(ABC):
    """A join that waits for its entry, without a task."""

    __slots__ = ("_route", "sale")

    def begin(self, route: "JoinRoute", sale: Sale) -> None:
        self._route = route
        self.sale = sale

    def done(self) -> bool:
        return False  # a buyer who hangs up is in the line all the same, and finds the entry by joining again

    def set_result(self, joined: Joined) -> None:
        self._route.answer_soon(self, joined)

    @abstractmethod
    def joined(self, joined: Joined, reply: ClaimReply | None) -> None:
        """`reply` is None if the ordinary request has to answer."""


class JoinRoute:
    def __init__(self, context: Context, after_answers: Callable[[], None]) -> None:
        """`after_answers` is called when all joins of a transaction have been answered."""
        self._context = context
        self._after_answers = after_answers
        self._answered: list[tuple[JoinInProgress, Joined]] = []

    @staticmethod
    def is_join(scope: Any) -> bool:
        """Whether this request joins a line."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return False
        path: str = scope["path"]
        return path.startswith(_PREFIX) and path.endswith(_SUFFIX)

    def begin(
        self, sale_id: str, address: str, headers: Mapping[bytes, bytes], body: bytes, join: JoinInProgress
    ) -> bool:
        """Returns True if `join` will be told the result, and False if nothing was done. `address`: the address by
        which limits count; empty: none in particular."""
        ctx = self._context
        sale = ctx.sale_cache.known(sale_id)
        if sale is None or not self._is_simple(sale):
            return False
        try:
            buyer = authenticate(ctx.buyers, headers.get(b"authorization"))
            ctx.door.refuse_blocked(buyer.user)
            ctx.door.may_join(sale, buyer, headers.get(PASS))
            asked = decode(body, NEW_ENTRY)
            person = "" if sale.limit_by is None else person_of(buyer, sale.limit_by)
        except HttpProblem:
            return False
        if asked.item_id is not None or asked.metadata is not None or asked.quantity > sale.round.limit_per_buyer:
            return False
        if ctx.line.rate.wait_s(address, time.monotonic()):
            return False
        join.begin(self, sale)
        groups = ctx.door.groups_of(sale, buyer)
        joining = Joining(user=buyer.user, quantity=asked.quantity, groups=groups, person=person)
        ctx.line.desk.submit(sale, joining, join)
        return True

    def _is_simple(self, sale: Sale) -> bool:
        """Whether the line is open and no one else has to be asked."""
        ctx, round_ = self._context, sale.round
        return (
            sale.door is not OPEN_DOOR
            and sale.door.line.has_line
            and ctx.line.desk.is_open(sale)
            and not sale.items
            and round_.status is not RoundStatus.CLOSED
            and ctx.sale_cache.now_ms() < round_.ends_ms
            and (sale.door.pass_kind is not PassKind.NONE or not ctx.passes.judges)
        )

    def answer_soon(self, join: JoinInProgress, joined: Joined) -> None:
        if not self._answered:
            asyncio.get_running_loop().call_soon(self._answer)
        self._answered.append((join, joined))

    def _answer(self) -> None:
        """Answers all joins of a transaction together: an id then costs a sixth, and a receipt much less than that."""
        answered, self._answered = self._answered, []
        entries = [joined.entry for _, joined in answered if isinstance(joined, Standing)]
        ids = self._context.entry_ids.encode_all([entry.id for entry in entries])
        names = zip(ids, self._context.line.receipts.of(entries, ids), strict=True)
        for join, joined in answered:
            join.joined(joined, self._reply(join.sale, joined, *next(names)) if isinstance(joined, Standing) else None)
        self._after_answers()

    def _reply(self, sale: Sale, standing: Standing, entry_id: str, receipt: str) -> ClaimReply | None:
        progress = None
        if standing.ahead is not None:
            progress = self._context.line.figures.fresh(sale.round.id)
            if progress is None:  # the line's progress has to be read first
                return None
        entry = shown(self._context, standing, sale, entry_id, receipt, progress)
        location = b"location: /v1/entries/%b\r\n" % entry_id.encode()
        return json_reply(201 if standing.new else 200, msgspec.json.encode(entry), location)
