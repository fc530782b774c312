"""What the handlers of one API process share."""

import time
from dataclasses import dataclass
from typing import cast

from starlette.requests import HTTPConnection, Request

from seckill.audit import Auditor
from seckill.domain.operator import ROOT, Operator, Role
from seckill.domain.outcome import Outcome
from seckill.domain.public_id import PublicIds
from seckill.engine.access.access_book import AccessBook, NoOperator
from seckill.engine.access.access_desk import AccessDesk
from seckill.engine.access.record_desk import RecordDesk
from seckill.engine.buyer_data import BuyerData
from seckill.engine.claims.admission_desk import AdmissionDesk
from seckill.engine.claims.live_figures import LiveFigures
from seckill.engine.door.address_rate import AddressRate
from seckill.engine.door.audience_desk import AudienceDesk
from seckill.engine.door.audience_lists import AudienceLists
from seckill.engine.door.pass_desk import PassDesk
from seckill.engine.event_feed import EventFeed
from seckill.engine.money.checkouts import Checkouts
from seckill.engine.money.payments import Payments
from seckill.engine.money.refunds import RefundDesk
from seckill.engine.orders.buyer_actions import BuyerActions
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.operator_actions import OperatorActions
from seckill.engine.orders.order_search import OrderSearch
from seckill.engine.orders.buyer_orders import BuyerOrders
from seckill.engine.pictures import PictureDesk
from seckill.engine.readiness import Readiness
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.engine.rounds.round_records import RoundRecords
from seckill.engine.sale_cache import SaleCache
from seckill.engine.vouchers import VoucherDesk
from seckill.engine.webhooks.desk import WebhookDesk, WebhookTests
from seckill.operations.repair import Repair
from seckill.ports.payment import PaymentProvider
from seckill.settings import Settings
from seckill.telemetry import Exposition
from seckill.web.admin_key import AdminKey
from seckill.web.buyer_tokens import Buyer, Buyers, Unauthenticated, bearer, looks_like_jwt
from seckill.web.client_address import ClientAddresses, Headers
from seckill.web.console_session import ConsoleSessions
from seckill.web.claim_door import ClaimDoor
from seckill.web.guess_backoff import GuessBackoff
from seckill.web.incidents import Incident, Incidents
from seckill.web.item_ids import ItemIds
from seckill.web.line_parts import LineParts
from seckill.web.looking_back_parts import LookingBackParts
from seckill.web.problems import HttpProblem, incident_in, suspicious
from seckill.web.sale_list import SaleLists
from seckill.web.token_keys import KeysNotKnown
from seckill.web.waiting_seats import Seats

_BEARER = b"Bearer "
_ROOT = Operator(name=ROOT, role=Role.ADMIN)
_NO_LONGER = {
    NoOperator.EXPIRED: ("key_expired", "This key has expired: ask for a new one."),
    NoOperator.REVOKED: ("key_revoked", "This key was revoked."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    settings: Settings
    provider: PaymentProvider
    sale_ids: PublicIds
    order_ids: PublicIds
    entry_ids: PublicIds
    item_ids: ItemIds
    auditor: Auditor | None  # None: with memory:// there is nothing that it could read
    sale_cache: SaleCache
    sale_lists: SaleLists
    desk: AdmissionDesk
    operator_desk: OperatorDesk
    failures: DeadLetterDesk
    orders: BuyerOrders
    actions: BuyerActions
    operator_actions: OperatorActions
    search: OrderSearch
    rounds: RoundRecords
    events: EventFeed
    vouchers: VoucherDesk
    pictures: PictureDesk
    live: LiveFigures
    readiness: Readiness
    repair: Repair
    payments: Payments
    checkouts: Checkouts
    refunds: RefundDesk
    webhooks: WebhookDesk
    webhook_tests: WebhookTests
    buyers: Buyers
    admin_key: AdminKey
    access_book: AccessBook
    access: AccessDesk
    record: RecordDesk
    seats: Seats
    addresses: ClientAddresses
    incidents: Incidents
    guesses: GuessBackoff
    sign_in_rate: AddressRate
    pass_rate: AddressRate
    passes: PassDesk
    door: ClaimDoor
    lists: AudienceLists
    audience_desk: AudienceDesk
    buyer_data: BuyerData
    line: LineParts
    back: LookingBackParts
    exposition: Exposition
    sessions: ConsoleSessions | None = None  # None: operators have keys only

    def answer_waiting(self) -> None:
        """Whoever waits for something is answered now; otherwise they would hold up the end of the process."""
        self.orders.close()
        self.events.close()
        self.line.watches.close()

    def require_buyer(self, request: Request) -> str:
        return self.require_token(request).user

    def require_token(self, request: Request) -> Buyer:
        return authenticate(self.buyers, request.headers.get("authorization", "").encode("latin-1"))

    async def operator_of(self, request: Request) -> Operator:
        """By a key, or by the session of somebody who has signed in."""
        cookie = None if self.sessions is None else self.sessions.cookie_of(request)
        if self.sessions is None or cookie is None:
            return self.require_operator(request)
        return await self.sessions.operator(request, cookie)

    def require_operator(self, request: Request) -> Operator:
        token = bearer(request.headers.get("authorization", "").encode("latin-1"))
        if token is None:
            raise HttpProblem.of(
                Outcome.UNAUTHENTICATED, "This needs the admin key: Authorization: Bearer <admin key>."
            )
        client = self.client_of(request)
        if wait_s := self.guesses.wait_s(client):
            detail = f"Too many wrong keys came from your address; try again in {wait_s} s."
            raise suspicious(HttpProblem(429, "too_many_guesses", detail, retry_after_s=wait_s), Incident.ADMIN_GUESS)
        found = self._operator(token)
        if isinstance(found, Operator):
            return found
        if found is NoOperator.NOT_KNOWN:
            raise HttpProblem.of(Outcome.NOT_READY, "Your key cannot be checked now; please try again.")
        if found is NoOperator.WRONG:
            self.guesses.wrong(client, token)
            raise suspicious(HttpProblem(403, "forbidden", "This needs the admin key."), Incident.ADMIN_GUESS)
        raise HttpProblem(403, *_NO_LONGER[found])

    def _operator(self, token: str) -> Operator | NoOperator:
        return _ROOT if self.admin_key.matches(token) else self.access_book.operator(token)

    async def is_operator(self, request: Request) -> bool:
        """For what an operator sees more of. Without the key, with a wrong one or with a buyer's token it is seen as
        anybody sees it."""
        if self.sessions is not None and (cookie := self.sessions.cookie_of(request)) is not None:
            return await self.sessions.is_operator(request, cookie)
        token = bearer(request.headers.get("authorization", "").encode("latin-1"))
        if token is None or looks_like_jwt(token):
            return False
        client = self.client_of(request)
        if self.guesses.wait_s(client):
            return False
        found = self._operator(token)
        if found is NoOperator.WRONG:
            self.guesses.wrong(client, token)
        return isinstance(found, Operator)

    def client_of(self, connection: HTTPConnection) -> str:
        """The client's address; empty where there is none."""
        peer = connection.client.host if connection.client else ""
        return self.addresses.of(peer, connection.scope["headers"])

    def counted_address(self, connection: HTTPConnection) -> str:
        """What the limits of one address count by; empty: nobody in particular."""
        peer = connection.client.host if connection.client else ""
        return self.addresses.counted(peer, connection.scope["headers"])

    def note(self, problem: HttpProblem, connection: HTTPConnection) -> None:
        """If it may be a sign of an attack, it leaves a trace."""
        incident = incident_in(problem)
        if incident is not None:
            peer = connection.client.host if connection.client else ""
            self.note_incident(incident, peer, connection.scope["headers"])

    def note_incident(self, incident: Incident, peer: str, headers: Headers) -> None:
        self.incidents.note(incident, self.addresses.of(peer, headers))
        if incident is Incident.RATE_LIMITED:
            self.addresses.suspect(peer, headers)


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
    except KeysNotKnown:
        raise HttpProblem.of(Outcome.NOT_READY, "Your sign-in cannot be checked now; please try again.") from None
    except Unauthenticated as error:
        problem = HttpProblem.of(Outcome.UNAUTHENTICATED, error.reason)
        raise (suspicious(problem, Incident.BAD_SIGNATURE) if error.forged else problem) from None
