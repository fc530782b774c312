"""What the handlers of one API process share."""

import time
from dataclasses import dataclass
from typing import cast

from starlette.requests import HTTPConnection, Request

from seckill.admission import AdmissionDesk
from seckill.buyer_orders import BuyerOrders
from seckill.catalogue import Catalogue
from seckill.failures import Failures
from seckill.operator_desk import OperatorDesk
from seckill.outcomes import Outcome
from seckill.payments import Payments
from seckill.settings import Settings
from seckill.web.auth import AdminKey, Buyer, Buyers, Unauthenticated, bearer
from seckill.web.problems import Problem
from seckill.web.seats import Seats
from seckill.wiring import Engine

_BEARER = b"Bearer "


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    settings: Settings
    engine: Engine
    catalogue: Catalogue
    desk: AdmissionDesk
    operator_desk: OperatorDesk
    failures: Failures
    orders: BuyerOrders
    payments: Payments
    buyers: Buyers
    admin_key: AdminKey
    seats: Seats

    def require_buyer(self, request: Request) -> str:
        return self.require_token(request).user

    def require_token(self, request: Request) -> Buyer:
        return authenticate(self.buyers, request.headers.get("authorization", "").encode("latin-1"))

    def require_operator(self, request: Request) -> None:
        token = bearer(request.headers.get("authorization", "").encode("latin-1"))
        if token is None:
            raise Problem.of(Outcome.UNAUTHENTICATED, "This needs the admin key: Authorization: Bearer <admin key>.")
        if not self.admin_key.matches(token):
            raise Problem(403, "forbidden", "This needs the admin key.")


def context(request: HTTPConnection) -> Context:
    return cast(Context, request.app.state.context)


def authenticate(buyers: Buyers, header: bytes | None) -> Buyer:
    """Nothing of what was sent comes back in the refusal."""
    now = time.time()
    if header is not None and header.startswith(_BEARER):
        buyer = buyers.believe(header[len(_BEARER) :], now)
        if buyer is not None:
            return buyer
    token = bearer(header)
    if token is None:
        raise Problem.of(Outcome.UNAUTHENTICATED, "Sign in first: Authorization: Bearer <token>.")
    try:
        return buyers.verify(token, now)
    except Unauthenticated as error:
        raise Problem.of(Outcome.UNAUTHENTICATED, error.reason) from None
