"""The ledger: the record of truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from seckill.domain.admission import Admission, Holding
from seckill.domain.dead_letter import Letter, LetterState
from seckill.domain.order import Order, OrderState, States
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Announced, AnnounceKey, Counted, Round, RoundRef, Sale, SaleChange, SaleDraft
from seckill.ports.access import AccessLedger
from seckill.ports.alarm_book import AlarmBook
from seckill.ports.audience import AudienceLedger
from seckill.ports.buyer_data import BuyerDataLedger
from seckill.ports.feed import Feed
from seckill.ports.figures import FiguresLedger
from seckill.ports.gate import Release
from seckill.ports.line import LineLedger
from seckill.ports.order_action import OrderActionLedger
from seckill.ports.payment import Capture, CheckoutLedger, PaymentLedger
from seckill.ports.pictures import PictureLedger
from seckill.ports.record import RecordBook
from seckill.ports.retention import RetentionLedger
from seckill.ports.space import SpaciousStore
from seckill.ports.story import StoryLedger
from seckill.ports.takings import TakingsLedger
from seckill.ports.transport import Delivery
from seckill.ports.vouchers import VoucherLedger
from seckill.ports.webhook import WebhookLedger


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of a wish to change an order: the order as it is now, and whether this wish changed it."""

    order: Order
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxItem:
    """Something that the ledger has decided and the rest of the world does not know yet."""

    id: int
    release: Release | None  # None: no units come back, the nodes only have to be told
    number: OrderNumber
    ref: RoundRef
    state: OrderState


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The units of a round by where the ledger has them, in one reading."""

    total: int
    sold: int
    recorded: int  # units of all orders there ever were
    unpaid: int
    paid: int
    kept: int  # of orders that are refunded and whose units do not go back on sale
    ended: int  # units whose release was decided
    dead: int  # units of dead letters that have no row: admitted, and never given back
    voided: int  # part of `ended`: units admitted before the round's epoch and never written
    next_expiry_ms: int | None
    orders: int  # all there ever were; orders, not units
    lapsed: int  # of these, cancelled or not paid in time
    taken_cents: int  # price of the paid orders, less what is refunded of it
    paid_orders: int  # that were ever paid, also those that are refunded
    items: Mapping[int, "Tally"] = field(default_factory=dict)  # together they are all of the above


@dataclass(frozen=True, slots=True)
class Recorded:
    """`states`: every order of the batch with its state, new and repeated alike."""

    new: int
    repeated: int
    states: States


class SaleLookup(Protocol):
    async def sale(self, sale_id: int, round_id: int | None = None) -> Sale | None:
        """The sale with that round, or with its newest. None if there is no such sale, or if the round is another's."""


class OrderLookup(Protocol):
    async def order(self, number: OrderNumber) -> Order | None: ...


class OrdersLookup(Protocol):
    async def orders(self, numbers: Sequence[OrderNumber]) -> list[Order]: ...


class CatalogueLedger(Protocol):
    """What a node needs to keep the sales in memory."""

    async def sales(self, changed_after: int = 0, rounds_max: int = 1) -> list[Sale]:
        """Returns all sales that changed after this version of the catalogue, each once for each of its newest rounds,
        up to `rounds_max`, in order. No committed change is ever missed."""


class OpeningNotes(Protocol):
    """Notes about the rounds that the gate has."""

    async def mark_opened(self, round_id: int, epoch: int, opened_ms: int) -> int | None:
        """Notes the opening unless one is noted already. Returns the valid one, or None for another epoch."""

    async def mark_synced(self, round_id: int, epoch: int, revision: int) -> None: ...


class OpeningLedger(SaleLookup, OpeningNotes, Protocol):
    """For bringing a round to the gate."""


class SyncLedger(OpeningLedger, Protocol):
    async def rounds_to_sync(self) -> list[Round]:
        """Returns rounds that are not open yet, or whose newest revision the gate may not have, unless they are
        retired."""


class OperatorLedger(SyncLedger, Protocol):
    """For what operators do to sales."""

    async def create_sale(self, draft: SaleDraft, lane: int) -> Sale:
        """Raises ExternalIdTaken."""

    async def announce(self, draft: SaleDraft, lane: int, key: AnnounceKey) -> Announced:
        """Creates the sale unless the key is known already, however many requests come at once. Raises
        ExternalIdTaken."""

    async def announced(self, key: AnnounceKey) -> Announced | None:
        """Returns None if the key is not known."""

    async def change_sale(self, sale_id: int, change: SaleChange, round_id: int | None = None) -> Sale | None:
        """Changes that round, or the newest. Raises NotPossible if the sale's state does not allow it."""


class RepetitionLedger(Protocol):
    async def add_round(self, after: Round, begins_ms: int, ends_ms: int, lane: int) -> Sale | None:
        """Adds the next round of a repeating sale, with the stock and limit with which the sale was announced. Adds
        nothing and returns None if there is a round after `after` already, if the sale is closed, or if `after` ends
        later."""


class TallyLedger(Protocol):
    async def tally(self, round_id: int) -> Tally | None: ...


class CustodyLedger(TallyLedger, Protocol):
    """For telling where every unit is."""

    async def voided(self, round_id: int) -> dict[str, list[Holding]]:
        """Returns orders that were admitted before the round's epoch and given up without ever having been written. A
        rebuild has told the gate about those given up before it, and about no others."""


class RoundRecordsLedger(SaleLookup, CustodyLedger, Protocol):
    """For looking up rounds."""


class CountLedger(Protocol):
    async def counted(self, round_ids: Sequence[int]) -> dict[int, Counted]: ...


class FigureLedger(CountLedger, TallyLedger, Protocol):
    """For keeping how rounds stand."""


class RetirementLedger(CustodyLedger, Protocol):
    """For letting old rounds leave the gate."""

    async def rounds_over(self, before_ms: int, count: int) -> list[Round]:
        """Returns rounds that ended before then and are not retired, oldest first, except those with an unpaid order,
        an entry that is tried again, or anything in the outbox."""

    async def retire(self, round_id: int, now_ms: int) -> bool:
        """Retires the round: nothing is written to it any more. Returns False if something is still to come, or if it
        is retired already."""

    async def rounds_to_forget(self, retired_before_ms: int, count: int) -> list[Round]: ...

    async def mark_forgotten(self, round_id: int) -> None:
        """Notes that the gate has forgotten the round, as it should."""


class LaneLedger(Protocol):
    async def lanes_in_use(self) -> set[int]:
        """Returns the lanes with rounds that are not retired."""


class MissingOrdersLedger(SaleLookup, CountLedger, Protocol):
    """For finding orders that were admitted but not written."""


class LossLedger(SaleLookup, CountLedger, Protocol):
    """For finding rounds that the gate has lost."""

    async def rounds_waiting(self, count: int) -> list[Round]:
        """Returns the rounds to which the oldest `count` items of the outbox belong, except retired ones."""


class HoldingsLedger(Protocol):
    async def holdings(self, round_id: int, after: str, count: int) -> dict[str, list[Holding]]:
        """Returns all orders of the next buyers after this one, in the database's order of names: about `count`
        orders."""


class FailoverLedger(SaleLookup, HoldingsLedger, Protocol):
    """For comparing a lane that has moved to another server with the ledger."""


class RebuildLedger(HoldingsLedger, OpeningNotes, Protocol):
    """For rebuilding a round of the gate."""

    async def next_epoch(self, known: Round, gate_epoch: int = 0) -> Round | None:
        """Makes entries of the round's epoch, and of the gate's, void, and the round ready to be rebuilt. Returns None
        if another process was first: the round has another epoch, or has been opened in this one."""


class RecordLedger(Protocol):
    async def record(self, admissions: Sequence[Admission]) -> Recorded:
        """Writes all of them in one transaction or none. An order that exists already with the same content counts as
        written. Raises LedgerRefused if a constraint, an epoch or different content forbids it."""


class WritingLedger(RecordLedger, Protocol):
    async def set_aside(self, delivery: Delivery, reason: str, retry_after_s: float) -> None:
        """Keeps a refused entry, to be tried again. The stream can then forget it. Harmless to repeat."""


class ExpiryHintLedger(SaleLookup, OrderLookup, Protocol):
    """For finding out how long buyers have to pay."""


class WorkerLedger(WritingLedger, ExpiryHintLedger, LaneLedger, Protocol):
    """For writing the entries that workers read."""


class UnwrittenLedger(WritingLedger, Protocol):
    """For writing accepted orders that no worker has written."""

    async def holdings_of(self, round_id: int, users: Sequence[str]) -> dict[str, list[Holding]]:
        """Returns all orders of these buyers; buyers without any are left out."""

    async def letters_in(self, round_id: int) -> list[Letter]:
        """Returns letters about orders of a round, as long as they are tried again."""

    async def end_forgotten(self, numbers: Sequence[OrderNumber]) -> int:
        """`unpaid` → `cancelled`, for orders that the gate has given back and whose end this ledger, an older copy,
        does not know."""

    async def bury_forgotten(self, admissions: Sequence[Admission]) -> int:
        """`failed`, for orders that the gate has given back and of which this ledger has no row."""


class TrackingLedger(SaleLookup, OrdersLookup, Protocol):
    """For showing buyers their orders."""

    async def orders_of(self, user: str, before: OrderNumber | None, count: int) -> list[Order]: ...

    async def letters_about(self, number: OrderNumber) -> list[Letter]:
        """Returns letters about one order, whatever has become of them."""

    async def letters_of(self, user: str) -> list[Letter]:
        """Returns letters about a buyer's orders, as long as they are tried again."""


class BuyerActionLedger(Protocol):
    """For what buyers do to their orders."""

    async def pay(self, number: OrderNumber, user: str, capture: Capture) -> Changed | None:
        """`unpaid` → `paid`, with the capture; otherwise no money moves. None if the buyer has no such order."""

    async def cancel(self, number: OrderNumber, user: str) -> Changed | None:
        """`unpaid` → `cancelled`, with the release in the outbox. None if the buyer has no such order."""


class ReleaseLedger(Protocol):
    """For ending unpaid orders, and for passing on that they have ended."""

    async def expire_due(self, count: int) -> list[OrderNumber]:
        """Ends up to `count` orders whose time to pay is over by the database's clock, oldest first. Several callers
        share the work."""

    async def outbox(self, count: int, without_rounds: Sequence[int] = ()) -> list[OutboxItem]:
        """Returns the items to be passed on, oldest first."""

    async def outbox_done(self, ids: Sequence[int]) -> None: ...


class DeadLetterLedger(RecordLedger, OrderLookup, Protocol):
    """For entries that could not be written: they are tried again, given up, and shown to people."""

    async def letters_due(self, count: int) -> list[Letter]: ...

    async def letters(self, state: LetterState, count: int) -> list[Letter]:
        """Newest first."""

    async def letter(self, letter_id: int) -> Letter | None: ...

    async def put_off(self, letter: Letter, reason: str, retry_after_s: float) -> bool:
        """Notes that one more try has failed. Returns False if the letter has been dealt with meanwhile."""

    async def close_letter(self, letter: Letter, state: LetterState, admission: Admission | None = None) -> bool:
        """Returns False if the letter has been dealt with meanwhile. `admission`: the order that it is about, which is
        written in the same transaction, as `record` does. If that raises LedgerRefused, nothing is done."""

    async def bury(self, letter: Letter, admission: Admission | None, reason: str) -> OrderState | None:
        """Gives up. If the order is not in the ledger, it gets a row that says `failed`, which wins against any later
        commit, and its release is decided; all in one transaction. Returns the state of the order, None if there can
        be none."""


class WatchdogLedger(SaleLookup, Protocol):
    """For the audit's pauses."""

    async def rounds_of_audit(self) -> list[Round]:
        """Returns rounds that concern the audit, see there, unless they are retired."""


class RepairLedger(WritingLedger, SaleLookup, OrderLookup, Protocol):
    """For mending what the audit has found."""

    async def recount(self, round_id: int) -> bool:
        """Sets the round's counters to the sums of its rows. Returns False if they are right already. Raises
        LedgerRefused if more units are sold than there are."""


class EntryFormLedger(LaneLedger, Protocol):
    async def entry_form(self) -> int:
        """Which form of queue entries all processes of this ledger are known to read; see `ports/queue_entry.py`."""

    async def set_entry_form(self, form: int) -> None: ...


class PingLedger(Protocol):
    async def ping(self) -> None: ...


class ProbeLedger(Protocol):
    """For finding out whether orders could be written."""

    async def try_writing(self) -> None:
        """Changes nothing. Raises LedgerError if nothing can be written now because the ledger is away, locked or
        read-only."""


class Ledger(
    CatalogueLedger,
    OperatorLedger,
    RepetitionLedger,
    RetirementLedger,
    LossLedger,
    FailoverLedger,
    RebuildLedger,
    WorkerLedger,
    UnwrittenLedger,
    TrackingLedger,
    BuyerActionLedger,
    ReleaseLedger,
    DeadLetterLedger,
    WatchdogLedger,
    RepairLedger,
    PingLedger,
    ProbeLedger,
    EntryFormLedger,
    StoryLedger,
    SpaciousStore,
    Protocol,
):
    """The record: everything that a backend implements. Each use case asks for the part that it needs. Every method is
    one transaction, and raises LedgerUnavailable when it makes sense to try again."""

    @property
    def payments(self) -> PaymentLedger: ...

    @property
    def checkouts(self) -> CheckoutLedger: ...

    @property
    def actions(self) -> OrderActionLedger: ...

    @property
    def audience(self) -> AudienceLedger: ...

    @property
    def buyer_data(self) -> BuyerDataLedger: ...

    @property
    def retention(self) -> RetentionLedger: ...

    @property
    def figures(self) -> FiguresLedger: ...

    @property
    def alarm_book(self) -> AlarmBook: ...

    @property
    def takings(self) -> TakingsLedger: ...

    @property
    def lines(self) -> LineLedger: ...

    @property
    def feed(self) -> Feed: ...

    @property
    def access(self) -> AccessLedger: ...

    @property
    def book(self) -> RecordBook: ...

    @property
    def webhooks(self) -> WebhookLedger: ...

    @property
    def vouchers(self) -> VoucherLedger: ...

    @property
    def pictures(self) -> PictureLedger: ...

    async def id_key(self) -> bytes:
        """The key of the public ids: made once, the same for every node that shares this ledger."""

    async def close(self) -> None: ...
