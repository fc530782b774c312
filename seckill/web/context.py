"""What the handlers of one API process share."""

from dataclasses import dataclass
from typing import cast

from starlette.requests import HTTPConnection, Request

from seckill.audit import Auditor
from seckill.domain.public_id import PublicIds
from seckill.engine.access.access_book import AccessBook
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
from seckill.engine.orders.buyer_orders import BuyerOrders
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.operator_actions import OperatorActions
from seckill.engine.orders.order_search import OrderSearch
from seckill.engine.orders.orders_on_the_way import OrdersOnTheWay
from seckill.engine.pictures import PictureDesk
from seckill.engine.readiness import Readiness
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.engine.rounds.round_records import RoundRecords
from seckill.engine.sale_cache import SaleCache
from seckill.engine.vouchers import VoucherDesk
from seckill.engine.webhooks.desk import WebhookDesk, WebhookTests
from seckill.operations.repair import Repair
from seckill.operations.server_look import ServerLooks
from seckill.ports.payment import PaymentProvider
from seckill.settings import Settings
from seckill.telemetry import Exposition
from seckill.web.buyers.buyer_check import authenticate
from seckill.web.buyers.buyer_tokens import Buyer, Buyers
from seckill.web.connections.waiting_seats import Seats
from seckill.web.console.looking_back_parts import LookingBackParts
from seckill.web.door.claim_door import ClaimDoor
from seckill.web.incidents import Incident, Incidents
from seckill.web.line.line_parts import LineParts
from seckill.web.operators.operator_check import OperatorCheck
from seckill.web.problems import HttpProblem, incident_in
from seckill.web.requests.client_address import ClientAddresses, Headers
from seckill.web.sales.item_ids import ItemIds
from seckill.web.sales.sale_list import SaleLists


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    settings: Settings
    provider: PaymentProvider
    sale_ids: PublicIds
    order_ids: PublicIds
    entry_ids: PublicIds
    item_ids: ItemIds
    auditor: Auditor | None  # None: with memory:// there is nothing it could read
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
    servers: ServerLooks
    repair: Repair
    payments: Payments
    on_the_way: OrdersOnTheWay
    checkouts: Checkouts
    refunds: RefundDesk
    webhooks: WebhookDesk
    webhook_tests: WebhookTests
    buyers: Buyers
    access_book: AccessBook
    access: AccessDesk
    record: RecordDesk
    seats: Seats
    addresses: ClientAddresses
    incidents: Incidents
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
    operators: OperatorCheck

    def answer_waiting(self) -> None:
        """Answers all waiting requests now; otherwise they would hold up the end of the process."""
        self.orders.close()
        self.events.close()
        self.line.watches.close()

    def require_buyer(self, request: Request) -> str:
        return self.require_token(request).user

    def require_token(self, request: Request) -> Buyer:
        return authenticate(self.buyers, request.headers.get("authorization", "").encode("latin-1"))

    def client_of(self, connection: HTTPConnection) -> str:
        """The client's address; empty where there is none."""
        peer = connection.client.host if connection.client else ""
        return self.addresses.of(peer, connection.scope["headers"])

    def counted_address(self, connection: HTTPConnection) -> str:
        """Returns the address by which limits count; empty: none in particular."""
        peer = connection.client.host if connection.client else ""
        return self.addresses.counted(peer, connection.scope["headers"])

    def note(self, problem: HttpProblem, connection: HTTPConnection) -> None:
        """Notes a problem that may be a sign of an attack."""
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
