"""What a run has seen: everything that is judged at the end, and nothing else."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """An order that was accepted with 202, or with 201 (`confirmed`), when the ledger already has it. `promised`: its
    sale always confirms in this way."""

    order_id: str
    sale: str
    round_id: int
    user: str
    key: str  # empty: sent without a key
    quantity: int
    at_s: float
    promised: bool = False
    confirmed: bool = False
    item_id: str | None = None  # the item that was asked for; None: the sale has no items


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two orders were returned for one key."""

    first: str
    second: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryTold:
    """An entry that was answered with 201 or 200, so the ledger has it. `order_id` is set once it was served."""

    entry_id: str
    round_id: int
    user: str
    quantity: int
    order_id: str | None = None


@dataclass(slots=True)
class Told:
    """What buyers were told."""

    acks: dict[str, Ack] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    paid: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    codes: Counter[str] = field(default_factory=Counter)
    entries: dict[str, EntryTold] = field(default_factory=dict)  # the last that buyers were told of them
    accepted_s: list[float] = field(default_factory=list)
    _by_key: dict[tuple[str, int, str, str], str] = field(default_factory=dict, repr=False)

    def acknowledge(self, ack: Ack) -> None:
        if ack.order_id not in self.acks:
            self.accepted_s.append(ack.at_s)
        self.acks.setdefault(ack.order_id, ack)
        if ack.key:
            first = self._by_key.setdefault((ack.sale, ack.round_id, ack.user, ack.key), ack.order_id)
            if first != ack.order_id:
                self.changes.append(Change(first=first, second=ack.order_id, user=ack.user))
                self._by_key[ack.sale, ack.round_id, ack.user, ack.key] = ack.order_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A fault that was injected. `bit`: the sign that it had an effect; empty if there is none."""

    at_s: float
    ended_s: float
    kind: str
    target: str
    bit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amnesia:
    """The gate lost everything at that moment, including the entries of these orders in its streams."""

    at_s: float
    queued: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How long a recovery took. It is judged only if nothing else was going on (`calm`)."""

    what: str  # `takeover` or `comeback`
    at_s: float
    took_s: float
    within_s: float
    calm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One audit during the run. `broken`: invariant → what was found."""

    at_s: float
    verdict: str
    broken: dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRow:
    """An order in the ledger."""

    number: int
    order_id: str
    round_id: int
    user: str
    quantity: int
    state: str
    request_id: str
    item_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """An entry of a line in the ledger."""

    entry_id: str
    round_id: int
    user: str
    quantity: int
    item_id: int
    state: str
    place: int
    order: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemEnd:
    """An item of a round when everything had settled."""

    title: str
    total: int
    sold: int  # according to the ledger
    live: int  # units of the live orders


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundEnd:
    """A round when everything had settled. `available` comes from the gate; None if the gate no longer has the round.
    `wanted`: there were buyers for every unit until the end."""

    round_id: int
    title: str
    total: int
    sold: int
    live: int  # units of the live orders
    available: int | None
    limit: int
    wanted: bool
    gives_codes: bool = False
    items: tuple[ItemEnd, ...] = ()
    group: str | None = None  # rounds of one group share one limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    taken: int
    earned: int  # price of all paid orders
    refunds: int
    undecided: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSeen:
    """An event of the feed. `about`: the order, payment or refund whose events must match what the ledger demands;
    empty for other events. `subject`: the entry, else the order, else the sale; webhooks of one subject arrive in
    order. `digest`: of the whole content."""

    cursor: int
    id: str
    type: str
    about: str
    subject: str
    order_id: str
    digest: str


@dataclass(slots=True)
class FeedSeen:
    """`followed`: read while faults happened. `again`: read from the beginning at the end; None if that failed."""

    followed: list[EventSeen] = field(default_factory=list)
    again: list[EventSeen] | None = None
    resumed: int = 0  # how often reading went on at another process for lack of an answer
    refused: list[str] = field(default_factory=list)  # answers that deny a cursor which the feed had given out


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A webhook that our receiver has read. `taken`: the receiver acknowledged it."""

    event_id: str
    digest: str
    genuine: bool
    taken: bool


@dataclass(slots=True)
class Books:
    """The ledger and the gate at the end."""

    rows: dict[int, OrderRow] = field(default_factory=dict)
    rounds: list[RoundEnd] = field(default_factory=list)
    entries: dict[str, EntryRow] = field(default_factory=dict)
    # order number → how many voucher codes it has that are not void
    codes: Counter[int] = field(default_factory=Counter)
    # Order, payment or refund → the types of its events, in their order.
    demanded: dict[str, tuple[str, ...]] = field(default_factory=dict)
    money: Money = field(default_factory=lambda: Money(taken=0, earned=0, refunds=0, undecided=0))


@dataclass(slots=True)
class Evidence:
    told: Told = field(default_factory=Told)
    done: list[Done] = field(default_factory=list)
    amnesias: list[Amnesia] = field(default_factory=list)
    recoveries: list[Recovery] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    # invariant → verdict, and findings or reasons
    final: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    books: Books = field(default_factory=Books)
    feed: FeedSeen = field(default_factory=FeedSeen)
    arrivals: list[Arrival] = field(default_factory=list)  # webhooks in order of arrival
    numbers: dict[str, int] = field(default_factory=dict)  # of every acknowledged order: id → number
    # start and end of the time in which the faults were undone and every process killed
    healing: tuple[float, float] | None = None
    unclear: dict[str, str] = field(default_factory=dict)  # wanted sale that is not sold out → why that proves nothing
    rested_s: float | None = None  # from the end of the faults until everything had settled; None if it never did
    fired: Counter[str] = field(default_factory=Counter)  # failpoints
    required: list[str] = field(default_factory=list)
    backlog: list[tuple[float, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what could not be done on this machine
