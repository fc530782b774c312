"""What the use cases need from the outside, with the promises that every backend keeps."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import msgspec

from seckill.domain import (
    Admission,
    Answer,
    Claim,
    Counted,
    Holding,
    Order,
    OrderState,
    Round,
    RoundRef,
    Sale,
    SaleChange,
    SaleDraft,
    States,
)
from seckill.letters import Letter, LetterState
from seckill.numbers import OrderNumber
from seckill.payment_ports import Capture, PaymentLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReply:
    """Answers in the order of the claims, and what the gate saw at that instant.

    `version` changes whenever units may have come back or the rules changed, so "sold out at version 7" can be
    withdrawn by anyone who knows of version 8. `available` is None when the gate does not have the round.
    """

    now_ms: int
    version: int
    available: int | None
    answers: Sequence[Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """One consistent reading of a round in the gate, or of one of its shares.

    Of a round: `total` is what the ledger has dealt, and `available` includes what is on its way between lanes. Of a
    share: `total` = `dealt` − all it has sent + all it has got.
    """

    now_ms: int
    total: int
    available: int
    admitted: int
    released: int
    limit_per_buyer: int
    begins_ms: int
    ends_ms: int
    status: str  # a RoundStatus, or "preparing" until the ledger has noted that the round is open
    epoch: int
    version: int
    revision: int
    buyers: int
    backlog: int
    dealt: int
    sent: Mapping[int, int] = field(default_factory=dict)  # lane → units ever sent there
    got: Mapping[int, int] = field(default_factory=dict)  # lane → units ever got from there


@dataclass(frozen=True, slots=True)
class Pulse:
    """The little that an API node asks the gate for several times a second."""

    version: int
    available: int
    admitted: int
    epoch: int
    revision: int


class Found(StrEnum):
    """What `open_round` found in the gate."""

    NOTHING = "nothing"  # so it was created
    ROUND = "round"
    OTHER_EPOCH = "other_epoch"
    REMNANT = "remnant"  # buyers without their round: part of the gate's data is gone


@dataclass(frozen=True, slots=True)
class Opening:
    """`opened_ms` is when the round that the gate now has was created there. It tells one opening from another."""

    found: Found
    opened_ms: int


class Update(StrEnum):
    APPLIED = "applied"
    CURRENT = "current"  # the gate has this revision or a newer one
    MISSING = "missing"
    OTHER_EPOCH = "other_epoch"
    OTHER_OPENING = "other_opening"  # created again after the one that the ledger knows was lost


@dataclass(frozen=True, slots=True)
class Release:
    """An order that the ledger has ended. `epoch` is the round's at that moment."""

    number: OrderNumber
    user: str
    epoch: int


class Released(StrEnum):
    RELEASED = "released"
    ALREADY = "already"
    UNKNOWN = "unknown"  # the gate has no such order: nothing to give back
    NOT_YET = "not_yet"  # the gate does not have the round now: try again later


@dataclass(frozen=True, slots=True)
class ReleaseReply:
    """Results in the order of the releases, and the round's version after them; 0 if the gate does not have it."""

    version: int
    results: Sequence[Released]


class Gate(Protocol):
    """Atomic admission. Time is the gate's own."""

    async def admit(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        """Decides all claims, which must be of buyers of one lane, in order, in one atomic step. Deduction, buyer's
        record and queue entry come together or not at all. Raises GateUnavailable if nothing was changed, GateUnclear
        if that is not known. Never repeats the call by itself."""

    async def open_round(self, round_: Round) -> Opening:
        """Creates the round with its full stock if it was never created. Nobody is admitted before `update_round`."""

    async def update_round(self, round_: Round) -> Update:
        """Brings status, window, limit and total to the given revision; an older revision changes nothing."""

    async def release(self, ref: RoundRef, releases: Sequence[Release]) -> ReleaseReply:
        """Puts the units of these orders on sale again, once for each order, however often it is called."""

    async def fence(self, round_: Round) -> None:
        """Nobody is admitted any more, until the round has been rebuilt under another epoch."""

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        """Empties the round for its new epoch; nobody is admitted. Makes every rebuild with another token void. False
        if the gate has the round in this epoch already."""

    async def fill(self, ref: RoundRef, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool: ...

    async def finish_rebuild(self, ref: RoundRef, token: str, admitted: int, released: int) -> int | None:
        """When the round was created anew, for `mark_opened`. None if the rebuild is void."""

    async def forget(self, ref: RoundRef) -> None:
        """For a round that is retired: nothing of it stays."""

    async def inspect(self, ref: RoundRef) -> GateView | None: ...

    async def pulses(self, refs: Sequence[RoundRef]) -> tuple[int, list[Pulse | None]]:
        """The gate's time in ms and the pulse of each round; None where the gate does not have it."""

    async def holdings(self, refs: Sequence[RoundRef], user: str) -> list[tuple[Holding, ...]]: ...

    async def records(self, ref: RoundRef, users: Sequence[str]) -> list[tuple[Holding, ...]]:
        """What each of these buyers has in the round, in their order."""

    def buyers(self, ref: RoundRef) -> AsyncIterator[Sequence[str]]:
        """Everyone who ever got an order in the round, in portions. Complete for all who were there at the start."""

    async def bind(self, ledger: str) -> None:
        """This gate serves that ledger from now on. Raises StartError if it serves another: round 1 of one would be
        taken for round 1 of the other."""

    async def check(self, durability: str) -> list[str]:
        """Raises StartError with one sentence if the server cannot keep the promises. Returns advice."""

    async def moved_lanes(self, lanes: Collection[int]) -> dict[int, str]:
        """Lanes that are on another server than the one that was vouched for, with that server's name. Nobody is
        admitted there: it may have taken over without the newest orders. Lanes that cannot be reached are left out."""

    async def vouch(self, lane: int, server: str) -> None:
        """What this server has of the lane has been compared with the ledger."""

    async def ping(self) -> None: ...

    async def close(self) -> None: ...


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """One queue entry. `admission` is None if the entry cannot be understood; `problem` then says why."""

    lane: int
    entry_id: str
    payload: bytes
    admission: Admission | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    acknowledged: int
    deleted: int


class Transport(Protocol):
    """Brings admissions to workers: each at least once, until it is settled."""

    async def prepare(self, lanes: Sequence[int]) -> None:
        """Makes sure that nothing that waits in these lanes can be missed; harmless to repeat."""

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        """New deliveries, at most `count` of each lane, waiting up to `wait_s` for the first."""

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]:
        """Deliveries that some consumer took and did not settle within `idle_s`; they are ours from now on."""

    async def settle(self, deliveries: Sequence[Delivery]) -> Settled:
        """Call only after the ledger has committed: these will never be delivered again."""

    async def backlog(self, lanes: Collection[int]) -> int:
        """Entries not settled yet in these lanes."""

    async def retire_consumers(self, idle_s: float) -> int:
        """Forgets consumers that hold nothing and have been silent for so long."""

    async def publish_states(self, states: States) -> None:
        """Tells all nodes, best effort: whoever misses it reads the ledger."""

    def state_changes(self) -> AsyncIterator[States]: ...

    async def publish_version(self, round_id: int, version: int) -> None:
        """Tells all nodes that units of the round came back, best effort: whoever misses it asks the gate."""

    def version_changes(self) -> AsyncIterator[tuple[int, int]]:
        """Round and version, as they are announced. They may come late, repeated and in any order."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of a wish to change an order: the order as it is now, and whether this wish did it."""

    order: Order
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxItem:
    """Something that the ledger has decided and the rest of the world does not know yet."""

    id: int
    release: Release | None  # None: nothing comes back, somebody must only be told
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
    ended: int  # units whose release was decided
    dead: int  # units of dead letters that have no row: admitted, and given back by nobody
    next_expiry_ms: int | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """`states`: every order of the batch with its state, new and repeated alike."""

    new: int
    repeated: int
    states: States


class Ledger(Protocol):
    """The record. Every method is one transaction. Raises LedgerUnavailable when it makes sense to try again."""

    @property
    def payments(self) -> PaymentLedger: ...

    async def create_sale(self, draft: SaleDraft, lane: int) -> Sale: ...

    async def sale(self, sale_id: int, round_id: int | None = None) -> Sale | None:
        """With that round, or with its newest. None if there is no such sale, or if the round is another's."""

    async def sales(self, changed_after: int = 0, rounds_max: int = 1) -> list[Sale]:
        """All sales that changed after this version of the catalogue, each as often as it has rounds, the newest ones
        up to `rounds_max`, in their order. No committed change is ever passed over."""

    async def change_sale(self, sale_id: int, change: SaleChange, round_id: int | None = None) -> Sale | None:
        """Changes that round, or the newest. Raises NotPossible if the sale's state does not allow it."""

    async def add_round(self, after: Round, begins_ms: int, ends_ms: int, lane: int) -> Sale | None:
        """The next round of a repeating sale, with the stock and limit that the sale was announced with. None if there
        is one after `after` already, if the sale is closed, or if `after` ends later: then nothing is added."""

    async def rounds_to_sync(self) -> list[Round]:
        """Rounds that are not open yet, or whose newest revision the gate is not known to have, unless retired."""

    async def mark_opened(self, round_id: int, epoch: int, opened_ms: int) -> int | None:
        """Notes the opening unless one is noted already. Returns the one that counts; None for another epoch."""

    async def mark_synced(self, round_id: int, epoch: int, revision: int) -> None: ...

    async def counted(self, round_ids: Sequence[int]) -> dict[int, Counted]: ...

    async def recount(self, round_id: int) -> bool:
        """Sets the round's counters to what its rows add up to. False if they are right already. Raises LedgerRefused
        if more is sold than there is."""

    async def next_epoch(self, round_id: int, epoch: int) -> Round | None:
        """Makes entries of this epoch void and the round ready to be rebuilt. None if somebody else was quicker."""

    async def rounds_waiting(self, count: int) -> list[Round]:
        """Rounds that the oldest `count` items of the outbox are for, except retired ones."""

    async def rounds_over(self, before_ms: int, count: int) -> list[Round]:
        """Rounds that ended before and are not retired, oldest first, except those with an order that is unpaid, an
        entry that is tried again, or something in the outbox."""

    async def retire(self, round_id: int, now_ms: int) -> bool:
        """Nothing is written to it any more. False if something is still to come, or if it is so already."""

    async def rounds_to_forget(self, retired_before_ms: int, count: int) -> list[Round]: ...

    async def mark_forgotten(self, round_id: int) -> None:
        """The gate does not have it any more, as it should be."""

    async def holdings(self, round_id: int, after: str, count: int) -> dict[str, list[Holding]]:
        """All orders of the next buyers after this one, in the database's order of names: about so many orders."""

    async def lanes_in_use(self) -> set[int]:
        """Where there are rounds that are not retired."""

    async def record(self, admissions: Sequence[Admission]) -> Recorded:
        """Writes all of them in one transaction or none. An order that is already there with the same content is
        success. Raises LedgerRefused if a constraint, an epoch or a different content stands against it."""

    async def pay(self, number: OrderNumber, user: str, capture: Capture) -> Changed | None:
        """`unpaid` → `paid`, with the capture; otherwise no money moves. None if the buyer has no such order."""

    async def cancel(self, number: OrderNumber, user: str) -> Changed | None:
        """`unpaid` → `cancelled`, with the release in the outbox. None if the buyer has no such order."""

    async def expire_due(self, count: int) -> list[OrderNumber]:
        """Ends up to `count` orders whose time to pay is over by the database's clock, oldest first. Several callers
        share the work."""

    async def set_aside(self, delivery: Delivery, reason: str, retry_after_s: float) -> None:
        """Keeps an entry that was refused, to be tried again. The stream can forget it then. Harmless to repeat."""

    async def letters_due(self, count: int) -> list[Letter]: ...

    async def letters(self, state: LetterState, count: int) -> list[Letter]:
        """Newest first."""

    async def letter(self, letter_id: int) -> Letter | None: ...

    async def put_off(self, letter: Letter, reason: str, retry_after_s: float) -> bool:
        """One try more has failed. False if somebody else has dealt with the letter meanwhile."""

    async def close_letter(self, letter: Letter, state: LetterState) -> bool: ...

    async def bury(self, letter: Letter, admission: Admission | None, reason: str) -> OrderState | None:
        """Gives up. If the order is not in the ledger, it gets a row that says `failed`, which wins against any later
        commit, and its release is decided; all in one transaction. Returns the state of the order, None if there can
        be none."""

    async def outbox(self, count: int, without_rounds: Sequence[int] = ()) -> list[OutboxItem]:
        """What is to be relayed, oldest first."""

    async def outbox_done(self, ids: Sequence[int]) -> None: ...

    async def tally(self, round_id: int) -> Tally | None: ...

    async def order(self, number: OrderNumber) -> Order | None: ...

    async def orders(self, numbers: Sequence[OrderNumber]) -> list[Order]: ...

    async def orders_of(self, user: str, before: OrderNumber | None, count: int) -> list[Order]: ...

    async def id_key(self) -> bytes:
        """The key of the public ids: made once, the same for every node that shares this ledger."""

    async def ping(self) -> None: ...

    async def close(self) -> None: ...
