"""`POST /v1/sales/{id}/orders`: the one route that a hundred thousand people call in the same second.

It stands before the framework. `ClaimRoute` as an ASGI application knows everything; `begin` is the short way that the
protocol takes for the many claims with nothing unusual about them (`claiming.py`), made of the same parts.
"""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import structlog

from seckill.admission import AdmissionDesk
from seckill.batching import Waiting
from seckill.buyer_orders import BuyerOrders
from seckill.catalogue import Catalogue
from seckill.domain import Answer, Claim, Holding, Sale
from seckill.errors import GateError, LedgerError
from seckill.numbers import OrderNumber, request_id
from seckill.outcomes import Outcome
from seckill.public_ids import PublicIds
from seckill.web.auth import Buyers
from seckill.web.body import decode, read_body
from seckill.web.context import authenticate
from seckill.web.problems import MEDIA_TYPE, REFUSALS, Problem, invalid
from seckill.web.rates import Rates
from seckill.web.schemas import NewOrder, OrderAccepted, rfc3339

log = structlog.get_logger()

_PREFIX = "/v1/sales/"
_SUFFIX = "/orders"
_KEY_LENGTH_MAX = 255
_KEY = re.compile(rb"[ -~]{0,%d}" % _KEY_LENGTH_MAX)
# Forms of answers that are kept: more rounds are not on sale at once.
FORMS_MAX = 1_000
_BLANK = "-" * 13
# In the scope of a claim that has come from the short way, where it was counted already.
COUNTED = "seckill.counted"
_new_order = msgspec.json.Decoder(NewOrder)


class Reply(msgspec.Struct, frozen=True, gc=False):
    status: int
    headers: bytes  # as they are sent, each with the end of its line
    body: bytes

    def listed(self) -> list[tuple[bytes, bytes]]:
        """As ASGI wants them."""
        pairs = (line.partition(b": ") for line in self.headers.split(b"\r\n")[:-1])
        return [(name, value) for name, _, value in pairs]


class Press(Waiting, Protocol):
    """Somebody who pressed "buy" and waits for the gate's answer."""

    def waits_for(self, sale: Sale, /) -> None:
        """Before it is asked."""


class ClaimRoute:
    def __init__(
        self,
        buyers: Buyers,
        catalogue: Catalogue,
        desk: AdmissionDesk,
        orders: BuyerOrders,
        order_ids: PublicIds,
        rates: Rates,
    ) -> None:
        self._buyers = buyers
        self._catalogue = catalogue
        self._desk = desk
        self._orders = orders
        self._order_ids = order_ids
        self._rates = rates
        desk.before_answers = self._make_ids
        self._ids: dict[OrderNumber, str] = {}  # of the orders of the batch that is being answered
        self._forms: dict[tuple[int, int], tuple[bytes, bytes]] = {}  # by round and quantity, see `_form`

    @staticmethod
    def sale_in(scope: Any) -> str | None:
        """The sale's id if this request is a claim."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        path: str = scope["path"]
        if not (path.startswith(_PREFIX) and path.endswith(_SUFFIX)):
            return None
        sale_id = path[len(_PREFIX) : -len(_SUFFIX)]
        return sale_id if "/" not in sale_id else None

    async def __call__(self, sale_id: str, scope: Any, receive: Any, send: Any) -> None:
        try:
            reply = await self._answer(sale_id, dict(scope["headers"]), receive, counted=COUNTED in scope)
        except Exception as error:
            reply = problem_reply(error)
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.listed()})
        await send({"type": "http.response.body", "body": reply.body})

    async def _answer(self, sale_id: str, headers: Mapping[bytes, bytes], receive: Any, *, counted: bool) -> Reply:
        user = authenticate(self._buyers, headers.get(b"authorization")).user
        try:
            sale = await self._catalogue.find(sale_id)
        except LedgerError:
            raise Problem.of(Outcome.NOT_READY) from None
        if sale is None:
            raise Problem.of(Outcome.UNKNOWN_SALE)
        claim = self._read_claim(user, headers, await read_body(receive), counted=counted)
        sale, answer = await self._desk.claim(sale, claim)
        if answer.outcome is not Outcome.REPEATED:
            return self._reply(sale, answer)
        try:
            view = await self._orders.find(user, answer.holdings[0].number)
        except (LedgerError, GateError):
            raise Problem.of(Outcome.NOT_READY, "Your order is there, but its state cannot be read now.") from None
        (holding,) = answer.holdings
        order_id = self._order_ids.encode(int(holding.number))
        return self._accepted(sale, order_id, holding.quantity, view.state if view else "queued")

    def begin(self, sale_id: str, headers: Mapping[bytes, bytes], body: bytes, press: Press) -> Reply | bool:
        """What can be said at once; or True, when `press` will get the gate's answer (for `finish`); or False: this
        claim has to wait for something else, and nothing was done about it."""
        user = authenticate(self._buyers, headers.get(b"authorization")).user
        sale = self._catalogue.known(sale_id)
        if sale is None or not self._desk.one_round_decides(sale):
            return False
        claim = self._read_claim(user, headers, body)
        refused = self._desk.refuse_here(sale, claim)
        if refused is not None:
            return self._reply(sale, refused)
        press.waits_for(sale)
        self._desk.submit_for(press, sale, claim)
        return True

    def finish(self, sale: Sale, answer: Answer, took_s: float) -> Reply | None:
        """None: a repeat, whose order has to be looked up, or a claim that is for the next round."""
        self._desk.count(sale.round.id, answer.outcome, took_s)
        return self._reply(sale, answer) if self._desk.is_final(sale, answer) else None

    def _read_claim(self, user: str, headers: Mapping[bytes, bytes], body: bytes, *, counted: bool = False) -> Claim:
        order = decode(body, _new_order)
        claim = Claim(user, order.quantity, request_id(_idempotency_key(headers)))
        if not counted and not self._rates.allow(user, time.monotonic()):
            raise Problem.of(Outcome.RATE_LIMITED)
        return claim

    def _reply(self, sale: Sale, answer: Answer) -> Reply:
        if answer.outcome is Outcome.ADMITTED:
            return self._admitted(sale, answer.holdings[0])
        if answer.outcome is Outcome.LIMIT_REACHED:
            ids = [self._order_ids.encode(int(holding.number)) for holding in answer.holdings]
            limit = sale.round.limit_per_buyer
            detail = f"You may have {limit} of this sale in all; this would be more."
            return problem_reply(Problem.of(answer.outcome, detail, order_ids=ids))
        if answer.outcome is Outcome.NOT_STARTED:
            return problem_reply(Problem.of(answer.outcome, begins_at=rfc3339(sale.round.begins_ms)))
        return _PREPARED[answer.outcome]

    def _make_ids(self, answers: Sequence[Answer]) -> None:
        """All at once: a sixth of what they cost one by one."""
        numbers = [answer.holdings[0].number for answer in answers if answer.outcome is Outcome.ADMITTED]
        self._ids = dict(zip(numbers, self._order_ids.encode_all(list(map(int, numbers))), strict=True))

    def _admitted(self, sale: Sale, holding: Holding) -> Reply:
        headers, body = self._forms.get((sale.round.id, holding.quantity)) or self._form(sale, holding.quantity)
        order_id = (self._ids.get(holding.number) or self._order_ids.encode(int(holding.number))).encode()
        return Reply(202, headers % order_id, body % order_id)

    def _form(self, sale: Sale, quantity: int) -> tuple[bytes, bytes]:
        """What `_accepted` says, with a gap for the order's id: filling it in is half of what writing it anew costs."""
        blank = self._accepted(sale, _BLANK, quantity, "queued")
        headers, body = (text.replace(_BLANK.encode(), b"%b") for text in (blank.headers, blank.body))
        if len(self._forms) >= FORMS_MAX:
            self._forms.clear()
        self._forms[sale.round.id, quantity] = headers, body
        return headers, body

    def _accepted(self, sale: Sale, order_id: str, quantity: int, state: str) -> Reply:
        accepted = OrderAccepted(
            order_id=order_id,
            state=state,
            sale_id=self._catalogue.public_id(sale),
            round=str(sale.round.id),
            quantity=quantity,
        )
        location = b"location: /v1/orders/%b\r\n" % order_id.encode()
        return _reply(202, b"application/json", msgspec.json.encode(accepted), location)


def _idempotency_key(headers: Mapping[bytes, bytes]) -> str:
    key = headers.get(b"idempotency-key")
    if key is None:
        return ""
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise invalid("Idempotency-Key", f"use 1 to {_KEY_LENGTH_MAX} printable ASCII characters")
    return key.decode("ascii")


_HEADERS = b"%bcontent-type: %b\r\ncontent-length: %d\r\ncache-control: no-store\r\n"


def _reply(status: int, media_type: bytes, body: bytes, more: bytes = b"") -> Reply:
    return Reply(status, _HEADERS % (more, media_type, len(body)), body)


def problem_reply(error: Exception) -> Reply:
    problem = error if isinstance(error, Problem) else _internal(error)
    more = "".join(f"{name.lower()}: {value}\r\n" for name, value in problem.headers().items())
    return _reply(problem.status, MEDIA_TYPE.encode(), problem.body(), more.encode())


def _internal(error: Exception) -> Problem:
    log.error("a claim failed", exc_info=error)
    return Problem(500, "internal", "Something went wrong on our side; it was logged.")


# The refusals that are the same for everybody, made once: after the sell-out they are nearly all there is to say.
_PREPARED: Mapping[Outcome, Reply] = {outcome: problem_reply(Problem.of(outcome)) for outcome in REFUSALS}
