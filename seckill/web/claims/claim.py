"""`POST /v1/sales/{id}/orders`: the one route that a hundred thousand people call in the same second.

It stands before the framework, and a claim comes here in one of three ways. As an ASGI application, `ClaimRoute`
handles every claim. `begin` handles the many claims with nothing unusual about them, straight from the bytes that
arrived (`claim_protocol.py`), and `begin_plain` most of these, which the kernel has read in one go. From the desk on,
all take the same steps (`engine/claims/admission_desk.py`).
"""

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import structlog

from seckill.domain.admission import Answer, Claim, Holding
from seckill.domain.door import OPEN_DOOR
from seckill.domain.idempotency_key import request_id
from seckill.domain.order import OrderState
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Confirm, Sale
from seckill.engine.claims.admission_desk import AdmissionDesk, ClaimInProgress
from seckill.engine.claims.claim_batches import Batcher
from seckill.engine.door.address_rate import AddressRate
from seckill.engine.orders.buyer_orders import BuyerOrders, OrderView
from seckill.engine.sale_cache import SaleCache
from seckill.errors import GateError, LedgerError
from seckill.web.buyers.buyer_check import authenticate
from seckill.web.buyers.buyer_tokens import Buyer, Buyers
from seckill.web.buyers.token_person import person_of
from seckill.web.claims.buyer_rate import Rates
from seckill.web.claims.claim_wait import ClaimWait, Gone, gone_or_closed, waits_for_ledger
from seckill.web.claims.plain_claim import PlainClaim
from seckill.web.claims.sold_out_reply import SoldOutReplies
from seckill.web.door.claim_door import HEADER as PASS
from seckill.web.door.claim_door import ClaimDoor
from seckill.web.orders.order_ids import OrderIds
from seckill.web.problems import ANSWERS, MEDIA_TYPE, HttpProblem, address_limited
from seckill.web.requests.canonical_path import is_canonical
from seckill.web.requests.client_address import ClientAddresses, Headers
from seckill.web.requests.metadata import canonical_metadata
from seckill.web.requests.parameters import idempotency_key
from seckill.web.requests.prefer_header import applied, preferred_wait_s
from seckill.web.requests.request_body import decode, read_body
from seckill.web.sales.item_ids import ItemIds
from seckill.web.sales.items import item_meant
from seckill.web.schemas import NewOrder, Order, OrderAccepted, rfc3339

log = structlog.get_logger()

_PREFIX = "/v1/sales/"
_SUFFIX = "/orders"
# How many forms of answers are kept: no more rounds are on sale at once.
FORMS_MAX = 1_000
_BLANK = "-" * 13
# The key, in the scope of a claim or join that was begun from its bytes, of the decision that it waits for.
BEGUN = "seckill.begun"
_new_order = msgspec.json.Decoder(NewOrder)
# The bodies that nearly all buyers send, byte for byte.
_COMMON_ORDERS: Mapping[bytes, NewOrder] = {b"": NewOrder(), b"{}": NewOrder()} | {
    form % quantity: NewOrder(quantity)
    for form in (b'{"quantity":%d}', b'{"quantity": %d}')
    for quantity in range(1, 11)
}
_BODIES = [b'{"quantity":%d}' % quantity for quantity in range(11)]
_KEY = b"idempotency-key"
_ADMITTED, _REPEATED = Outcome.ADMITTED, Outcome.REPEATED  # looking up a member of an enum is slow
_GATE = Confirm.GATE


class ClaimReply(msgspec.Struct, frozen=True, gc=False):
    status: int
    headers: bytes  # as they are sent, each with its line end
    body: bytes

    def with_header(self, line: bytes) -> "ClaimReply":
        return ClaimReply(self.status, self.headers + line, self.body)

    def listed(self) -> list[tuple[bytes, bytes]]:
        """Returns the headers in ASGI's form."""
        pairs = (line.partition(b": ") for line in self.headers.split(b"\r\n")[:-1])
        return [(name, value) for name, _, value in pairs]


class _StraightWay(msgspec.Struct, frozen=True, gc=False):
    """Where plain claims for a sale go, as long as the node learns nothing new about it."""

    sale: Sale
    round_id: int
    batcher: Batcher
    news: int  # the sale cache's `news` when this was found out


class ClaimRoute:
    def __init__(
        self,
        buyers: Buyers,
        sale_cache: SaleCache,
        desk: AdmissionDesk,
        orders: BuyerOrders,
        waiting: ClaimWait,
        show: Callable[[OrderView], Order],
        order_ids: OrderIds,
        item_ids: ItemIds,
        rates: Rates,
        door: ClaimDoor,
        addresses: ClientAddresses,
        address_rate: AddressRate,
        unpaid_units: Mapping[int, int],
        note: Callable[[Exception, str, Headers], None],
    ) -> None:
        self._buyers = buyers
        self._sale_cache = sale_cache
        self._desk = desk
        self._orders = orders
        self._waiting = waiting
        self._show = show
        self._order_ids = order_ids
        self._item_ids = item_ids
        self._rates = rates
        self._door = door
        self._barred = door.barred
        self._address_rate = address_rate
        # Public so that the caller looks for a claim's address only where it matters.
        self.limits_addresses = address_rate.limited
        self.addresses = addresses
        self.note = note  # called with the reason of a refusal, and the claim's peer and headers
        self._sold_out = SoldOutReplies(desk.sold_out.standing, unpaid_units, sale_cache.now_ms, item_ids.of, _written)
        self._flags = desk.sold_out.standing
        self._ways: dict[str, _StraightWay] = {}  # by the sale's id
        # By round, quantity and item, see `_form`.
        self._forms: dict[tuple[int, int, int], tuple[bytes, bytes]] = {}
        # The same, with the first lines with which they were made.
        self._whole_forms: dict[tuple[int, int, int], tuple[bytes, bytes]] = {}

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
            self.note(error, _peer(scope), scope["headers"])
            reply = problem_reply(error)
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.listed()})
        await send({"type": "http.response.body", "body": reply.body})

    async def _answer(self, sale_id: str, scope: Any, receive: Any) -> ClaimReply:
        if BEGUN in scope:
            claim, sale, answer = await scope[BEGUN]
        else:
            claim, sale, answer = await self._claim(sale_id, scope, receive)
        preferred_s = preferred_wait_s(scope["headers"])
        wait_s = self._waiting.time_s(sale, answer, preferred_s)
        if wait_s is not None:
            address = self.addresses.counted(_peer(scope), scope["headers"])
            gone = partial(gone_or_closed, scope, receive)
            waited = await self._wait(claim, address, sale, answer, wait_s, gone)
            return waited if preferred_s is None else waited.with_header(applied(preferred_s))
        return self.reply(claim, sale, answer) or await self._find_repeated(claim.user, sale, answer.holdings[0])

    async def _wait(
        self, claim: Claim, address: str, sale: Sale, answer: Answer, wait_s: float, gone: Gone
    ) -> ClaimReply:
        """Returns the reply when the ledger has the order, or when the time is over."""
        if answer.outcome is Outcome.LIMIT_REACHED:
            written = await self._waiting.all_written(claim.user, address, sale, answer, wait_s, gone)
            return self._say(claim, sale, answer) if written else _PREPARED[Outcome.UNKNOWN]
        order = await self._waiting.order(claim.user, address, sale, answer, wait_s, gone)
        if order is not None:
            return self._written(order)
        if sale.confirm is Confirm.LEDGER:
            return _PREPARED[Outcome.UNKNOWN]
        return self.reply(claim, sale, answer) or await self._find_repeated(claim.user, sale, answer.holdings[0])

    async def _claim(self, sale_id: str, scope: Any, receive: Any) -> tuple[Claim, Sale, Answer]:
        headers = dict(scope["headers"])
        buyer = authenticate(self._buyers, headers.get(b"authorization"))
        try:
            sale = await self._sale_cache.find(sale_id)
        except LedgerError:
            raise HttpProblem.of(Outcome.NOT_READY) from None
        if sale is None:
            raise HttpProblem.of(Outcome.UNKNOWN_SALE)
        address = self.addresses.counted(_peer(scope), scope["headers"]) if self.limits_addresses else ""
        early_ms = self._pass_door(sale, buyer, headers)
        person = "" if sale.limit_by is None else person_of(buyer, sale.limit_by)
        body = await read_body(receive)
        claim = self._read_claim(sale, buyer.user, early_ms, person, address, headers, body)
        return claim, *await self._desk.claim(sale, claim)

    async def _find_repeated(self, user: str, sale: Sale, holding: Holding) -> ClaimReply:
        try:
            view = await self._orders.find(user, holding.number)
        except (LedgerError, GateError):
            raise HttpProblem.of(Outcome.NOT_READY, "Your order is there, but its state cannot be read now.") from None
        order_id = self._order_ids.of(holding.number)
        return self._accepted(sale, order_id, holding.quantity, holding.item, view.state if view else "queued")

    def begin(
        self, sale_id: str, address: str, headers: Mapping[bytes, bytes], body: bytes, press: ClaimInProgress
    ) -> ClaimReply | bool:
        """Returns the reply if it is certain at once; True if `press` will be told what the gate says (for `reply`); or
        False if the sale has to be looked for first, and nothing was done about this claim. `address`: the address that
        its limit counts; empty: none."""
        buyer = authenticate(self._buyers, headers.get(b"authorization"))
        sale = self._sale_cache.known(sale_id)
        return False if sale is None else self._begin(sale, buyer, address, headers, body, press)

    def begin_plain(self, said: PlainClaim, address: str, press: ClaimInProgress) -> ClaimReply | bool | None:
        """The same for a plain claim. Returns None if its token has to be checked in another way."""
        if not self._buyers.vouch(said, time.time()):
            return None
        sale_id, quantity, _, _, _, user, expires_s, issued_s, _, token_says, sent_key, _, _ = said
        way = self._ways.get(sale_id)
        if way is None or way.news != self._sale_cache.news or way.round_id in self._flags or self._barred.active:
            sale = self._sale_cache.known(sale_id)
            if sale is None:
                return False
            way = self._find_way(sale_id, sale)
            if way is None:
                buyer = Buyer(user, expires_s, token_says, issued_s)
                headers = {} if sent_key is None else {_KEY: sent_key}
                return self._begin(sale, buyer, address, headers, _BODIES[quantity], press)
        claim = Claim(user, quantity, "" if sent_key is None else request_id(idempotency_key(sent_key)))
        self._limit(user, address)
        press.ask_straight(self._desk, way.sale, way.batcher, claim)
        return True

    def _find_way(self, sale_id: str, sale: Sale) -> "_StraightWay | None":
        common = sale.door is OPEN_DOOR and sale.limit_by is None and not sale.items and sale.confirm is _GATE
        batcher = self._desk.straight_way(sale) if common and not self._barred.active else None
        if batcher is None:
            self._ways.pop(sale_id, None)
            return None
        if len(self._ways) >= FORMS_MAX:
            self._ways.clear()
        way = self._ways[sale_id] = _StraightWay(sale, sale.round.id, batcher, self._sale_cache.news)
        return way

    def _begin(
        self,
        sale: Sale,
        buyer: Buyer,
        address: str,
        headers: Mapping[bytes, bytes],
        body: bytes,
        press: ClaimInProgress,
    ) -> ClaimReply | bool:
        early_ms = self._pass_door(sale, buyer, headers)
        person = "" if sale.limit_by is None else person_of(buyer, sale.limit_by)
        claim = self._read_claim(sale, buyer.user, early_ms, person, address, headers, body)
        answer = self._desk.begin(sale, claim, press)
        return True if answer is None else self._say(claim, sale, answer)

    def _pass_door(self, sale: Sale, buyer: Buyer, headers: Mapping[bytes, bytes]) -> int:
        """Returns how many ms before others this buyer may buy."""
        if self._barred.active:
            self._door.refuse_blocked(buyer.user)
        return 0 if sale.door is OPEN_DOOR else self._door.pass_through(sale, buyer, headers.get(PASS))

    def reply(self, claim: Claim, sale: Sale, answer: Answer) -> ClaimReply | None:
        """Returns None if the claim's order has to be looked up or waited for."""
        if answer.outcome is _REPEATED or waits_for_ledger(sale, answer):
            return None
        return self._say(claim, sale, answer)

    def _read_claim(
        self,
        sale: Sale,
        user: str,
        early_ms: int,
        person: str,
        address: str,
        headers: Mapping[bytes, bytes],
        body: bytes,
    ) -> Claim:
        order = _COMMON_ORDERS.get(body) or decode(body, _new_order)
        sent_key = headers.get(_KEY)
        key = "" if sent_key is None else request_id(idempotency_key(sent_key))
        if order.metadata is None and order.item_id is None and not sale.items and not early_ms and not person:
            claim = Claim(user, order.quantity, key)
        else:
            metadata = "" if order.metadata is None else canonical_metadata(order.metadata)
            item = item_meant(self._item_ids, sale, order.item_id)
            claim = Claim(user, order.quantity, key, metadata, item, early_ms, person)
        self._limit(user, address)
        if not self._waiting.has_room(sale, user, address):
            raise HttpProblem.of(Outcome.OVERLOADED)
        return claim

    def _limit(self, user: str, address: str) -> None:
        now = time.monotonic()
        if not self._rates.allow(user, now):
            raise HttpProblem.of(Outcome.RATE_LIMITED)
        if address and (wait_s := self._address_rate.wait_s(address, now)):
            raise address_limited(wait_s)

    def _say(self, claim: Claim, sale: Sale, answer: Answer) -> ClaimReply:
        if answer.outcome is _ADMITTED:
            return self._admitted(sale, answer.holdings[0])
        if answer.outcome is Outcome.LIMIT_REACHED:
            ids = [self._order_ids.of(holding.number) for holding in answer.holdings]
            limit, shared = sale.round.limit_per_buyer, sale.limit_by or sale.round.limit_group
            together = " together with what counts towards the same limit," if shared else ""
            detail = f"The limit of this sale is {limit} per buyer;{together} with this order you would have more."
            return problem_reply(HttpProblem.of(answer.outcome, detail, order_ids=ids))
        if answer.outcome is Outcome.COOLING_DOWN:
            left_s = max(1, math.ceil((answer.again_ms - self._sale_cache.now_ms()) / 1000))
            again_at = rfc3339(answer.again_ms)
            return problem_reply(HttpProblem.of(answer.outcome, retry_after_s=left_s, again_at=again_at))
        if answer.outcome is Outcome.NOT_STARTED:
            begins_ms = sale.round.begins_ms - claim.early_ms  # for this buyer
            return problem_reply(HttpProblem.of(answer.outcome, begins_at=rfc3339(begins_ms)))
        if answer.outcome is Outcome.SOLD_OUT:
            return ClaimReply(_SOLD_OUT_STATUS, *self._sold_out.of(sale, answer.item))
        return _PREPARED[answer.outcome]

    def _admitted(self, sale: Sale, holding: Holding) -> ClaimReply:
        key = sale.round.id, holding.quantity, holding.item
        headers, body = self._forms.get(key) or self._form(sale, holding.quantity, holding.item)
        order_id = self._order_ids.of(holding.number).encode()
        return ClaimReply(202, headers % order_id, body % order_id)

    def admitted(self, begin: Callable[[int], bytes], sale: Sale, answer: Answer, lines: bytes) -> bytes | None:
        """Returns the whole answer to an admitted claim, with the first lines from `begin` and with `lines` at the end
        of its head. Returns None if another answer is due, or if the claim has to wait."""
        if answer.outcome is not _ADMITTED or sale.confirm is not _GATE:
            return None
        head = begin(202)
        holding = answer.holdings[0]
        key = sale.round.id, holding.quantity, holding.item
        form = self._whole_forms.get(key)
        if form is None or form[0] is not head:  # another second, with another date
            headers, body = self._forms.get(key) or self._form(sale, holding.quantity, holding.item)
            if len(self._whole_forms) >= FORMS_MAX:
                self._whole_forms.clear()
            whole = b"%b%b%%b\r\n\r\n%b" % (head.replace(b"%", b"%%"), headers, body)
            form = self._whole_forms[key] = head, whole
        order_id = self._order_ids.of(holding.number).encode()
        return form[1] % (order_id, lines, order_id)

    def _form(self, sale: Sale, quantity: int, item: int) -> tuple[bytes, bytes]:
        """Returns the answer of `_accepted` with a gap for the order's id: filling it in costs half of writing the
        answer from scratch."""
        blank = self._accepted(sale, _BLANK, quantity, item, "queued")
        headers, body = (text.replace(_BLANK.encode(), b"%b") for text in (blank.headers, blank.body))
        if len(self._forms) >= FORMS_MAX:
            self._forms.clear()
        self._forms[sale.round.id, quantity, item] = headers, body
        return headers, body

    def _accepted(self, sale: Sale, order_id: str, quantity: int, item: int, state: str) -> ClaimReply:
        accepted = OrderAccepted(
            order_id=order_id,
            state=state,
            sale_id=self._sale_cache.public_id(sale),
            round=str(sale.round.id),
            quantity=quantity,
            item_id=self._item_ids.of(item) if item else msgspec.UNSET,
        )
        location = b"location: /v1/orders/%b\r\n" % order_id.encode()
        return json_reply(202, msgspec.json.encode(accepted), location)

    def _written(self, order: OrderView) -> ClaimReply:
        shown = self._show(order)
        if order.state is OrderState.FAILED:
            detail = "The order could not be written. Nothing was bought, and nothing is to be paid."
            return problem_reply(HttpProblem(409, "order_over", detail, state=shown.state, order=shown))
        location = b"location: /v1/orders/%b\r\n" % shown.order_id.encode()
        return json_reply(201, msgspec.json.encode(shown), location)


def _peer(scope: Any) -> str:
    return scope["client"][0] if scope["client"] else ""


_HEADERS = b"%bcontent-type: %b\r\ncontent-length: %d\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n"


def json_reply(status: int, body: bytes, location: bytes) -> ClaimReply:
    return _reply(status, b"application/json", body, location)


def _reply(status: int, media_type: bytes, body: bytes, more: bytes = b"") -> ClaimReply:
    return ClaimReply(status, _HEADERS % (more, media_type, len(body)), body)


def _written(problem: HttpProblem) -> tuple[bytes, bytes]:
    reply = problem_reply(problem)
    return reply.headers, reply.body


def problem_reply(error: Exception, request_id: bytes | None = None) -> ClaimReply:
    """`request_id`: given if the log does not know it already."""
    problem = error if isinstance(error, HttpProblem) else _internal(error, request_id)
    more = "".join(f"{name.lower()}: {value}\r\n" for name, value in problem.headers().items())
    return _reply(problem.status, MEDIA_TYPE.encode(), problem.body(), more.encode())


def _internal(error: Exception, request_id: bytes | None) -> HttpProblem:
    log.error("a claim failed", exc_info=error, **({"request_id": request_id.decode()} if request_id else {}))
    return HttpProblem(500, "internal", "Something went wrong on our side; it was logged.")


_SOLD_OUT_STATUS, _ = ANSWERS[Outcome.SOLD_OUT]
# The refusals that are identical for all buyers, made once.
_PREPARED: Mapping[Outcome, ClaimReply] = {outcome: problem_reply(HttpProblem.of(outcome)) for outcome in ANSWERS}
