"""A sale and its rounds. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from seckill.domain.door import OPEN_DOOR, Door
from seckill.domain.goods import NO_GOODS, Goods, GoodsChange
from seckill.domain.item import Item, ItemChange, ItemDraft, ItemUnits
from seckill.domain.lane_shares import place_of
from seckill.domain.recurrence import Recurrence

# One claim cannot ask for more, whatever the sale allows; also the largest limit a sale may set.
QUANTITY_MAX = 1000
UNITS_MAX = 1_000_000_000


class RoundStatus(StrEnum):
    """What the operator wants; the window is separate, and the gate's clock decides it."""

    OPEN = "open"
    PAUSED = "paused"
    CLOSED = "closed"


# The gate's word for a round that is only open to the buyers in its line.
OPEN_TO_LINE = "line"


class SaleState(StrEnum):
    """What buyers are shown."""

    SCHEDULED = "scheduled"
    OPEN = "open"
    PAUSED = "paused"
    SOLD_OUT = "sold_out"
    ENDED = "ended"


class Confirm(StrEnum):
    """The part that must have an order before its buyer is told yes."""

    GATE = "gate"  # told in milliseconds; a gate that loses its memory loses what no worker has written yet
    LEDGER = "ledger"  # told when the order's row is committed, so that no yes can be lost


# Objects that are made for every claim are Structs: they are as immutable as frozen dataclasses, are made in a tenth of
# the time, and the garbage collector need not look at them.
class RoundRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is needed to find a round's keys. The round has a share in each of its lanes, which are consecutive."""

    id: int
    lane: int
    lanes: int = 1

    @property
    def every_lane(self) -> range:
        return range(self.lane, self.lane + self.lanes)

    def lane_of(self, user: str) -> int:
        """Returns the lane in which a buyer's claims are always decided."""
        return self.lane if self.lanes == 1 else self.lane + place_of(user, self.lanes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One occurrence of a sale. Its id is never used again and its stock is never reset."""

    id: int
    sale_id: int
    ordinal: int
    lane: int
    total: int
    limit_per_buyer: int
    scheduled_ms: int  # when it was to begin; an operator may have moved its beginning since
    begins_ms: int
    ends_ms: int
    status: RoundStatus
    epoch: int  # grows when the gate has to be rebuilt from the ledger; entries of another epoch are void
    revision: int  # grows with every change an operator makes
    synced_revision: int  # the revision that the gate is known to have
    opened_ms: int | None  # when the gate got its stock; set once, before any buyer can be admitted
    retired_ms: int | None = None  # since when the gate no longer needs it: all its orders are final
    lanes: int = 1
    cool_down_s: int = 0  # how long a buyer waits after letting an order lapse, doubled with each one; 0: not at all
    audit_epoch: int | None = None  # the epoch in which the audit has paused it, until it finds nothing wrong any more
    published: bool = True  # False: hidden from buyers
    covered: bool = True  # False: its sale gives codes, and has too few for it
    items: tuple[ItemUnits, ...] = ()  # together they are the total
    early_s: int = 0  # how long before its beginning the first of its audience may buy
    limit_group: str | None = None  # rounds of sales with the same share one limit, and are in the same lanes
    siblings: tuple[int, ...] = ()  # those of them that are in the gate, or will be
    lined: bool = False  # its units belong to the buyers in its line, and pressing brings none

    @property
    def opens_ms(self) -> int:
        """The time before which no one can buy."""
        return self.begins_ms - 1000 * self.early_s

    @property
    def gate_status(self) -> RoundStatus:
        """The status that the gate should have. A node that does not know yet that the sale is hidden asks the gate,
        and the gate then sells nothing."""
        shut = not (self.published and self.covered)
        return RoundStatus.PAUSED if self.status is RoundStatus.OPEN and shut else self.status

    @property
    def gate_word(self) -> str:
        """The same in the gate's words, which say for whom it is open."""
        return OPEN_TO_LINE if self.lined and self.gate_status is RoundStatus.OPEN else self.gate_status

    @property
    def concerns_audit(self) -> bool:
        """Whether the audit has paused the round. If it is open, an operator has resumed it since, and has the last
        word."""
        return self.audit_epoch == self.epoch

    @property
    def ref(self) -> RoundRef:
        return RoundRef(id=self.id, lane=self.lane, lanes=self.lanes)

    @property
    def every_lane(self) -> range:
        return self.ref.every_lane


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleDraft:
    """A sale as the merchant announces it."""

    title: str
    units: int
    limit_per_buyer: int
    price_cents: int
    currency: str
    begins_ms: int
    ends_ms: int
    pay_within_s: int
    recurrence: Recurrence | None = None  # then `begins_ms` and `ends_ms` are of the first round
    timezone: str = "UTC"  # by whose clocks buyers read when it is; that of the recurrence, if there is one
    lanes: int = 1
    cool_down_s: int = 0
    confirm: Confirm = Confirm.GATE
    published: bool = True
    goods: Goods = NO_GOODS
    door: Door = OPEN_DOOR
    vouchers: bool = False
    items: tuple[ItemDraft, ...] = ()  # then `units` is all of theirs together, and the price is the lowest of theirs
    limit_by: str | None = None
    limit_group: str | None = None


@dataclass(frozen=True, slots=True)
class AnnounceKey:
    """Shows whether an operator repeats an announcement: digests of its key and of its content."""

    key: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleChange:
    """A change by an operator; None leaves a value as it is.

    In a sale that repeats, one round is changed: stock and window apply to that round alone, limit and cool-down also
    to those that follow, and closing it ends the repetition.
    """

    title: str | None = None
    add_units: int = 0
    limit_per_buyer: int | None = None
    cool_down_s: int | None = None
    begins_ms: int | None = None
    ends_ms: int | None = None
    status: RoundStatus | None = None
    published: bool | None = None
    door: Door | None = None
    goods: GoodsChange = field(default_factory=dict)
    items: tuple[ItemChange, ...] = ()
    # the audit's change: it pauses open rounds, and only reopens those that it has paused itself
    by_audit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sale:
    """A sale and one of its rounds."""

    id: int
    title: str
    price_cents: int
    currency: str
    pay_within_s: int
    created_ms: int
    changed: int  # the catalogue's version when this sale last changed
    round: Round
    recurrence: Recurrence | None = None
    timezone: str = "UTC"
    confirm: Confirm = Confirm.GATE
    published: bool = True
    goods: Goods = NO_GOODS
    door: Door = OPEN_DOOR
    list_version: int = 0  # grows with every list of buyers that is uploaded; 0: there is none
    list_buyers: int = 0
    vouchers: bool = False  # it gives a code with each unit; never changes
    items: tuple[Item, ...] = ()
    limit_by: str | None = None  # the claim of a token that counts as one person for the limit; None: `sub` alone

    def item(self, item_id: int) -> Item | None:
        return next((item for item in self.items if item.id == item_id), None)

    def price_of(self, item_id: int) -> int:
        """Returns the price of one unit."""
        item = self.item(item_id)
        return self.price_cents if item is None else item.price_cents

    def state(self, now_ms: int, sold_out: bool) -> SaleState:
        if self.round.status is RoundStatus.CLOSED or now_ms >= self.round.ends_ms:
            return SaleState.ENDED
        if self.round.gate_status is RoundStatus.PAUSED:  # even before it begins, because it would not open on time
            return SaleState.PAUSED
        if now_ms < self.round.begins_ms:
            return SaleState.SCHEDULED
        return SaleState.SOLD_OUT if sold_out else SaleState.OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Units of a round as the ledger knows them: all that workers have ever written, and those that the gate has
    admitted and taken back; and the newest revision of the rules that the gate has had. A gate that counts less, or has
    another epoch, has gone back in time."""

    written: int
    admitted: int
    released: int
    decided: int  # units whose release the ledger has ever decided; a gate that counts more knows of later orders
    revision: int
    synced_revision: int
    epoch: int


NOTHING_COUNTED = Counted(written=0, admitted=0, released=0, decided=0, revision=0, synced_revision=0, epoch=0)


@dataclass(frozen=True, slots=True)
class Announced:
    """What an operator's key stands for. Without a sale, it was used to announce another one."""

    sale: Sale | None
    new: bool  # it was made just now
