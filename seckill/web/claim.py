"""`POST /v1/sales/{id}/orders`: the one route that a hundred thousand people call in the same second.

It stands before the framework, as a plain ASGI handler.
"""

from typing import Any

import msgspec
import structlog

from seckill.admission import AdmissionDesk
from seckill.buyer_orders import BuyerOrders
from seckill.catalogue import Catalogue
from seckill.domain import Answer, Claim, Sale
from seckill.errors import GateError, LedgerError
from seckill.numbers import PublicIds, request_id
from seckill.outcomes import Outcome
from seckill.web.auth import Buyers
from seckill.web.body import decode, read_body
from seckill.web.context import authenticate
from seckill.web.problems import MEDIA_TYPE, Problem, invalid
from seckill.web.schemas import NewOrder, OrderAccepted, rfc3339

log = structlog.get_logger()

_PREFIX = "/v1/sales/"
_SUFFIX = "/orders"
_KEY_LENGTH_MAX = 255
_new_order = msgspec.json.Decoder(NewOrder)


class ClaimRoute:
    def __init__(
        self,
        buyers: Buyers,
        catalogue: Catalogue,
        desk: AdmissionDesk,
        orders: BuyerOrders,
        order_ids: PublicIds,
    ) -> None:
        self._buyers = buyers
        self._catalogue = catalogue
        self._desk = desk
        self._orders = orders
        self._order_ids = order_ids

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
            status, headers, body = await self._answer(sale_id, dict(scope["headers"]), receive)
        except Exception as error:
            problem = error if isinstance(error, Problem) else _internal(error)
            status, body = problem.status, problem.body()
            headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers().items()]
            headers.append((b"content-type", MEDIA_TYPE.encode()))
        headers += [(b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, sale_id: str, headers: dict[bytes, bytes], receive: Any
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        user = authenticate(self._buyers, headers.get(b"authorization")).user
        try:
            sale = await self._catalogue.find(sale_id)
        except LedgerError:
            raise Problem.of(Outcome.NOT_READY) from None
        if sale is None:
            raise Problem.of(Outcome.UNKNOWN_SALE)
        order = decode(await read_body(receive), _new_order)
        claim = Claim(user, order.quantity, request_id(_idempotency_key(headers)))
        answer = await self._desk.claim(sale, claim)
        if answer.outcome not in (Outcome.ADMITTED, Outcome.REPEATED):
            raise self._refusal(answer, sale)
        accepted = await self._accepted(answer, sale, user)
        location = f"/v1/orders/{accepted.order_id}".encode()
        return (
            202,
            [(b"content-type", b"application/json"), (b"location", location)],
            msgspec.json.encode(accepted),
        )

    async def _accepted(self, answer: Answer, sale: Sale, user: str) -> OrderAccepted:
        (holding,) = answer.holdings
        state = "queued"
        if answer.outcome is Outcome.REPEATED:
            try:
                view = await self._orders.find(user, holding.number)
            except (LedgerError, GateError):
                raise Problem.of(Outcome.NOT_READY, "Your order is there, but its state cannot be read now.") from None
            state = view.state if view else state
        return OrderAccepted(
            order_id=self._order_ids.encode(int(holding.number)),
            state=state,
            sale_id=self._catalogue.public_id(sale),
            round=str(sale.round.id),
            quantity=holding.quantity,
        )

    def _refusal(self, answer: Answer, sale: Sale) -> Problem:
        if answer.outcome is Outcome.LIMIT_REACHED:
            ids = [self._order_ids.encode(int(holding.number)) for holding in answer.holdings]
            limit = sale.round.limit_per_buyer
            return Problem.of(
                answer.outcome, f"You may have {limit} of this sale in all; this would be more.", order_ids=ids
            )
        if answer.outcome is Outcome.NOT_STARTED:
            return Problem.of(answer.outcome, begins_at=rfc3339(sale.round.begins_ms))
        return Problem.of(answer.outcome)


def _internal(error: Exception) -> Problem:
    log.error("a claim failed", exc_info=error)
    return Problem(500, "internal", "Something went wrong on our side; it was logged.")


def _idempotency_key(headers: dict[bytes, bytes]) -> str:
    key = headers.get(b"idempotency-key", b"").strip()
    if len(key) > _KEY_LENGTH_MAX or not all(0x20 <= char < 0x7F for char in key):
        raise invalid("Idempotency-Key", f"use 1 to {_KEY_LENGTH_MAX} printable ASCII characters")
    return key.decode("ascii")
