"""`POST /v1/sales/{id}/orders`: the one route that a hundred thousand people call in the same second.

It stands before the framework, and a claim comes here in one of two ways. `ClaimRoute` as an ASGI application knows
everything. `begin` is for the many claims with nothing unusual about them, straight from the bytes that arrived
(`claim_protocol.py`). From the desk on, both take the same steps (`engine/claims/admission.py`).
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

from seckill.domain.admission import Answer, Claim, Holding
from seckill.domain.order_number import request_id
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Sale
from seckill.engine.claims.admission import AdmissionDesk, ClaimInProgress
from seckill.engine.orders.tracking import BuyerOrders
from seckill.engine.sale_cache import SaleCache
from seckill.errors import GateError, LedgerError
from seckill.web.auth import Buyers
from seckill.web.buyer_rate import Rates
from seckill.web.canonical_path import is_canonical
from seckill.web.client_address import Headers
from seckill.web.context import authenticate
from seckill.web.order_ids import OrderIds
from seckill.web.problems import ANSWERS, MEDIA_TYPE, HttpProblem, invalid
from seckill.web.request_body import decode, read_body
from seckill.web.schemas import NewOrder, OrderAccepted, rfc3339

log = structlog.get_logger()

_PREFIX = "/v1/sales/"
_SUFFIX = "/orders"
_KEY_LENGTH_MAX = 255
_KEY = re.compile(rb"[ -~]{0,%d}" % _KEY_LENGTH_MAX)
# Forms of answers that are kept: more rounds are not on sale at once.
FORMS_MAX = 1_000
_BLANK = "-" * 13
# In the scope of a claim that was begun from its bytes: the decision that it waits for.
BEGUN = "seckill.begun"
_new_order = msgspec.json.Decoder(NewOrder)


class ClaimReply(msgspec.Struct, frozen=True, gc=False):
    status: int
    headers: bytes  # as they are sent, each with the end of its line
    body: bytes

    def listed(self) -> list[tuple[bytes, bytes]]:
        """As ASGI wants them."""
        pairs = (line.partition(b": ") for line in self.headers.split(b"\r\n")[:-1])
        return [(name, value) for name, _, value in pairs]


class ClaimRoute:
    def __init__(
        self,
        buyers: Buyers,
        sale_cache: SaleCache,
        desk: AdmissionDesk,
        orders: BuyerOrders,
        order_ids: OrderIds,
        rates: Rates,
        note: Callable[[Exception, str, Headers], None],
    ) -> None:
        self._buyers = buyers
        self._sale_cache = sale_cache
        self._desk = desk
        self._orders = orders
        self._order_ids = order_ids
        self._rates = rates
        self.note = note  # told why a claim was refused, by which peer it was sent, and with which headers
        self._forms: dict[tuple[int, int], tuple[bytes, bytes]] = {}  # by round and quantity, see `_form`

    @staticmethod
    def sale_in(scope: Any) -> str | None:
        """The sale's id if this request is a claim."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        path: str = scope["path"]
        if not (path.startswith(_PREFIX) and path.endswith(_SUFFIX) and is_canonical(scope["raw_path"])):
            return None
        sale_id = path[len(_PREFIX) : -len(_SUFFIX)]
        return sale_id if "/" not in sale_id else None

    async def __call__(self, sale_id: str, scope: Any, receive: Any, send: Any) -> None:
        try:
            reply = await self._answer(sale_id, scope, receive)
        except Exception as error:
            self.note(error, scope["client"][0] if scope["client"] else "", scope["headers"])
            reply = problem_reply(error)
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.listed()})
        await send({"type": "http.response.body", "body": reply.body})

    async def _answer(self, sale_id: str, scope: Any, receive: Any) -> ClaimReply:
        if BEGUN in scope:
            claim, sale, answer = await scope[BEGUN]
        else:
            claim, sale, answer = await self._claim(sale_id, dict(scope["headers"]), receive)
        return self.reply(sale, answer) or await self._find_repeated(claim.user, sale, answer.holdings[0])

    async def _claim(self, sale_id: str, headers: Mapping[bytes, bytes], receive: Any) -> tuple[Claim, Sale, Answer]:
        user = authenticate(self._buyers, headers.get(b"authorization")).user
        try:
            sale = await self._sale_cache.find(sale_id)
        except LedgerError:
            raise HttpProblem.of(Outcome.NOT_READY) from None
        if sale is None:
            raise HttpProblem.of(Outcome.UNKNOWN_SALE)
        claim = self._read_claim(user, headers, await read_body(receive))
        return claim, *await self._desk.claim(sale, claim)

    async def _find_repeated(self, user: str, sale: Sale, holding: Holding) -> ClaimReply:
        try:
            view = await self._orders.find(user, holding.number)
        except (LedgerError, GateError):
            raise HttpProblem.of(Outcome.NOT_READY, "Your order is there, but its state cannot be read now.") from None
        order_id = self._order_ids.of(holding.number)
        return self._accepted(sale, order_id, holding.quantity, view.state if view else "queued")

    def begin(
        self, sale_id: str, headers: Mapping[bytes, bytes], body: bytes, press: ClaimInProgress
    ) -> ClaimReply | bool:
        """What can be said at once; or True: `press` will be told what the gate says (for `reply`); or False: the
        sale has to be looked for first, and nothing was done about this claim."""
        user = authenticate(self._buyers, headers.get(b"authorization")).user
        sale = self._sale_cache.known(sale_id)
        if sale is None:
            return False
        answer = self._desk.begin(sale, self._read_claim(user, headers, body), press)
        return True if answer is None else self._say(sale, answer)

    def reply(self, sale: Sale, answer: Answer) -> ClaimReply | None:
        """None: a repeat, whose order has to be looked up."""
        return None if answer.outcome is Outcome.REPEATED else self._say(sale, answer)

    def _read_claim(self, user: str, headers: Mapping[bytes, bytes], body: bytes) -> Claim:
        order = decode(body, _new_order)
        claim = Claim(user, order.quantity, request_id(_idempotency_key(headers)))
        if not self._rates.allow(user, time.monotonic()):
            raise HttpProblem.of(Outcome.RATE_LIMITED)
        return claim

    def _say(self, sale: Sale, answer: Answer) -> ClaimReply:
        if answer.outcome is Outcome.ADMITTED:
            return self._admitted(sale, answer.holdings[0])
        if answer.outcome is Outcome.LIMIT_REACHED:
            ids = [self._order_ids.of(holding.number) for holding in answer.holdings]
            limit = sale.round.limit_per_buyer
            detail = f"The limit of this sale is {limit} per buyer; with this order you would have more."
            return problem_reply(HttpProblem.of(answer.outcome, detail, order_ids=ids))
        if answer.outcome is Outcome.COOLING_DOWN:
            left_s = max(1, math.ceil((answer.again_ms - self._sale_cache.now_ms()) / 1000))
            again_at = rfc3339(answer.again_ms)
            return problem_reply(HttpProblem.of(answer.outcome, retry_after_s=left_s, again_at=again_at))
        if answer.outcome is Outcome.NOT_STARTED:
            return problem_reply(HttpProblem.of(answer.outcome, begins_at=rfc3339(sale.round.begins_ms)))
        return _PREPARED[answer.outcome]

    def _admitted(self, sale: Sale, holding: Holding) -> ClaimReply:
        headers, body = self._forms.get((sale.round.id, holding.quantity)) or self._form(sale, holding.quantity)
        order_id = self._order_ids.of(holding.number).encode()
        return ClaimReply(202, headers % order_id, body % order_id)

    def _form(self, sale: Sale, quantity: int) -> tuple[bytes, bytes]:
        """What `_accepted` says, with a gap for the order's id: filling it in costs half of writing it from scratch."""
        blank = self._accepted(sale, _BLANK, quantity, "queued")
        headers, body = (text.replace(_BLANK.encode(), b"%b") for text in (blank.headers, blank.body))
        if len(self._forms) >= FORMS_MAX:
            self._forms.clear()
        self._forms[sale.round.id, quantity] = headers, body
        return headers, body

    def _accepted(self, sale: Sale, order_id: str, quantity: int, state: str) -> ClaimReply:
        accepted = OrderAccepted(
            order_id=order_id,
            state=state,
            sale_id=self._sale_cache.public_id(sale),
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


_HEADERS = b"%bcontent-type: %b\r\ncontent-length: %d\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n"


def _reply(status: int, media_type: bytes, body: bytes, more: bytes = b"") -> ClaimReply:
    return ClaimReply(status, _HEADERS % (more, media_type, len(body)), body)


def problem_reply(error: Exception, request_id: bytes | None = None) -> ClaimReply:
    """`request_id`: where the log does not know it already."""
    problem = error if isinstance(error, HttpProblem) else _internal(error, request_id)
    more = "".join(f"{name.lower()}: {value}\r\n" for name, value in problem.headers().items())
    return _reply(problem.status, MEDIA_TYPE.encode(), problem.body(), more.encode())


def _internal(error: Exception, request_id: bytes | None) -> HttpProblem:
    log.error("a claim failed", exc_info=error, **({"request_id": request_id.decode()} if request_id else {}))
    return HttpProblem(500, "internal", "Something went wrong on our side; it was logged.")


# The refusals that are the same for every buyer, made once: after the sell-out they are nearly all answers.
_PREPARED: Mapping[Outcome, ClaimReply] = {outcome: problem_reply(HttpProblem.of(outcome)) for outcome in ANSWERS}
