"""What the handlers of one API process share."""

import time
from dataclasses import dataclass
from typing import cast

from starlette.requests import HTTPConnection, Request

from seckill.audit import Auditor
from seckill.domain.outcome import Outcome
from seckill.domain.public_id import PublicIds
from seckill.engine.claims.admission import AdmissionDesk
from seckill.engine.claims.live_figures import LiveFigures
from seckill.engine.money.payments import Payments
from seckill.engine.money.refunds import RefundDesk
from seckill.engine.orders.buyer_actions import BuyerActions
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.order_search import OrderSearch
from seckill.engine.orders.tracking import BuyerOrders
from seckill.engine.readiness import Readiness
from seckill.engine.rounds.operator import OperatorDesk
from seckill.engine.rounds.round_records import RoundRecords
from seckill.engine.sale_cache import SaleCache
from seckill.operations.repair import Repair
from seckill.ports.payment import PaymentProvider
from seckill.settings import Settings
from seckill.telemetry import Exposition
from seckill.web.auth import AdminKey, Buyer, Buyers, Unauthenticated, bearer
from seckill.web.client_address import ClientAddresses
from seckill.web.guess_backoff import GuessBackoff
from seckill.web.incidents import Incident, Incidents
from seckill.web.open_streams import Seats
from seckill.web.problems import HttpProblem, incident_in, suspicious

_BEARER = b"Bearer "


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    settings: Settings
    provider: PaymentProvider
    sale_ids: PublicIds
    order_ids: PublicIds
    auditor: Auditor | None  # None: with memory:// there is nothing that it could read
    sale_cache: SaleCache
    desk: AdmissionDesk
    operator_desk: OperatorDesk
    failures: DeadLetterDesk
    orders: BuyerOrders
    actions: BuyerActions
    search: OrderSearch
    rounds: RoundRecords
    live: LiveFigures
    readiness: Readiness
    repair: Repair
    payments: Payments
    refunds: RefundDesk
    buyers: Buyers
    admin_key: AdminKey
    seats: Seats
    addresses: ClientAddresses
    incidents: Incidents
    guesses: GuessBackoff
    exposition: Exposition

    def require_buyer(self, request: Request) -> str:
        return self.require_token(request).user

    def require_token(self, request: Request) -> Buyer:
        return authenticate(self.buyers, request.headers.get("authorization", "").encode("latin-1"))

    def require_operator(self, request: Request) -> None:
        token = bearer(request.headers.get("authorization", "").encode("latin-1"))
        if token is None:
            raise HttpProblem.of(
                Outcome.UNAUTHENTICATED, "This needs the admin key: Authorization: Bearer <admin key>."
            )
        client = self.client_of(request)
        if wait_s := self.guesses.wait_s(client):
            detail = f"Too many wrong keys came from your address; try again in {wait_s} s."
            raise suspicious(HttpProblem(429, "too_many_guesses", detail, retry_after_s=wait_s), Incident.ADMIN_GUESS)
        if not self.admin_key.matches(token):
            self.guesses.wrong(client, token)
            raise suspicious(HttpProblem(403, "forbidden", "This needs the admin key."), Incident.ADMIN_GUESS)

    def client_of(self, connection: HTTPConnection) -> str:
        """The client's address; empty where there is none."""
        peer = connection.client.host if connection.client else ""
        return self.addresses.of(peer, connection.scope["headers"])

    def note(self, problem: HttpProblem, connection: HTTPConnection) -> None:
        """If it may be a sign of an attack, it leaves a trace."""
        incident = incident_in(problem)
        if incident is not None:
            self.incidents.note(incident, self.client_of(connection))


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
        raise HttpProblem.of(Outcome.UNAUTHENTICATED, "Sign in first: Authorization: Bearer <token>.")
    try:
        return buyers.verify(token, now)
    except Unauthenticated as error:
        problem = HttpProblem.of(Outcome.UNAUTHENTICATED, error.reason)
        raise (suspicious(problem, Incident.BAD_SIGNATURE) if error.forged else problem) from None
