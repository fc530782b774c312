"""The gate: who gets a unit, decided in one place."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from seckill.domain.admission import Answer, Claim, Holding
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import OPEN_TO_LINE, Round, RoundRef, RoundStatus
from seckill.ports.space import SpaciousStore


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReply:
    """Answers in the order of the claims, and what the gate saw at that instant.

    `version` changes whenever units may have come back or the rules changed, so "sold out at version 7" can be
    withdrawn by anyone who knows of version 8. `available` is None when the gate does not have the round. `gone`: items
    that were claimed, and of which nothing is left.
    """

    now_ms: int
    version: int
    available: int | None
    answers: Sequence[Answer]
    gone: frozenset[int] = frozenset()


class GateStatus(StrEnum):
    """The status that the operator wants, as far as the gate knows; or that the gate admits no one yet, because the
    ledger has not noted the opening or the round is being rebuilt."""

    PREPARING = "preparing"
    OPEN = RoundStatus.OPEN
    LINE = OPEN_TO_LINE  # open, and its units belong to those in its line
    PAUSED = RoundStatus.PAUSED
    CLOSED = RoundStatus.CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """What a `GateView` says of one item; see there."""

    total: int
    dealt: int
    available: int
    admitted: int = 0
    released: int = 0
    sent: Mapping[int, int] = field(default_factory=dict)
    got: Mapping[int, int] = field(default_factory=dict)

    @property
    def supplied(self) -> int:
        """Units that were ever put on sale: only grows, and with every unit that comes back."""
        return self.dealt + self.released

    @property
    def adds_up(self) -> bool:
        """Otherwise it has forgotten what it sent or got, and would send or get it again."""
        return self.total == self.dealt - sum(self.sent.values()) + sum(self.got.values())


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
    status: GateStatus
    epoch: int
    version: int
    revision: int
    buyers: int
    backlog: int
    dealt: int
    sold_out_ms: int | None = None  # when the last unit went that there was; None: not known, or none has yet
    whole: bool = True  # False: buyers' records or the counts of units sent and got are gone, so it has to be rebuilt
    sent: Mapping[int, int] = field(default_factory=dict)  # lane → units ever sent there
    got: Mapping[int, int] = field(default_factory=dict)  # lane → units ever got from there
    items: Mapping[int, ItemView] = field(default_factory=dict)  # together they are all of the above


@dataclass(frozen=True, slots=True)
class Pulse:
    """The few values that an API node reads from the gate several times a second."""

    version: int
    available: int
    admitted: int
    epoch: int
    revision: int
    items: Mapping[int, int] = field(default_factory=dict)  # item → available units


@dataclass(frozen=True, slots=True)
class Sold:
    """Units that were ever admitted, and those of them that were ever given back."""

    admitted: int = 0
    released: int = 0

    def and_of(self, holding: Holding) -> "Sold":
        return Sold(self.admitted + holding.quantity, self.released + (0 if holding.live else holding.quantity))


NO_ITEMS: Mapping[int, Sold] = MappingProxyType({})


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
    """An order that the ledger has ended. `epoch` is the round's at that moment; `lapsed`: the buyer has cancelled it
    or not paid in time."""

    number: OrderNumber
    user: str
    epoch: int
    request_id: str = ""
    lapsed: bool = False


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


@dataclass(frozen=True, slots=True)
class MovedLane:
    """`compared`: once, so it admits. A worker may still write what it had read from the server before."""

    server: str  # what to vouch for
    compared: bool


class ViewGate(Protocol):
    async def inspect(self, ref: RoundRef) -> GateView | None:
        """Returns None if the gate does not have the round, or cannot read it."""


class PulseGate(Protocol):
    async def pulses(self, refs: Sequence[RoundRef]) -> tuple[int, list[Pulse | None]]:
        """The gate's time in ms and the pulse of each round; None where the gate does not have it, or not all of it."""


class AdmittingGate(Protocol):
    async def admit(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        """Decides all claims, in order and in one atomic step. The buyers must all be of one lane. Deduction, buyer's
        record and queue entry are made together or not at all. Raises GateUnavailable if nothing was changed, and
        GateUnclear if that is not known. Never repeats the call by itself."""


class WinnersGate(ViewGate, Protocol):
    """For knowing who has won when everything is sold."""

    def buyers(self, ref: RoundRef) -> AsyncIterator[Sequence[str]]:
        """Yields everyone who ever got an order in the round, in portions. Includes at least those who were there at
        the start."""


class ReleaseGate(Protocol):
    async def release(self, ref: RoundRef, releases: Sequence[Release]) -> ReleaseReply:
        """Puts the units of these orders on sale again, once for each order, however often this is called."""


class LatePaymentGate(AdmittingGate, ReleaseGate, Protocol):
    """For replacing an order that was paid too late."""


class RulesGate(Protocol):
    async def update_round(self, round_: Round) -> Update:
        """Brings status, window, limit and total to the given revision; an older revision changes nothing."""


class ForgettingGate(ViewGate, Protocol):
    """For rounds that leave the gate."""

    async def forget(self, ref: RoundRef) -> None:
        """Deletes everything of a retired round."""


class RememberingGate(Protocol):
    async def remembered(
        self, ref: RoundRef, holdings: Mapping[str, Sequence[Holding]]
    ) -> dict[str, dict[OrderNumber, Holding]]:
        """Returns those of these orders that the gate has, live or over, by buyer. They are matched by number and
        request id."""


class CustodyGate(ViewGate, RememberingGate, Protocol):
    """For telling where every unit is."""


class RetirementGate(ForgettingGate, CustodyGate, Protocol):
    """For letting old rounds leave, once all their units are where they should be."""


class OpeningGate(RulesGate, ForgettingGate, Protocol):
    """For bringing a round to the gate."""

    async def open_round(self, round_: Round) -> Opening:
        """Creates the round with its full stock if it was never created. The round admits no one before
        `update_round`."""


class LossGate(ViewGate, PulseGate, Protocol):
    """For telling which rounds are lost."""

    async def damage(self, ref: RoundRef) -> Sequence[str]:
        """Returns a sentence about each foreign value under the round's keys. Such data counts as lost."""


class LaneGate(Protocol):
    """For the data of a lane that belongs to no round."""

    async def discard_damage(self, lanes: Collection[int]) -> Sequence[str]:
        """Deletes foreign values under the lanes' keys. Returns the keys."""


class FencingGate(Protocol):
    async def fence(self, round_: Round) -> None:
        """Stops admission, in this epoch or an earlier one, until the round has been rebuilt under another: a server
        that takes over may have the round as it was before its last rebuild."""


class RebuildGate(FencingGate, RulesGate, ViewGate, Protocol):
    """For rebuilding a round from the ledger."""

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        """Empties the round for its new epoch; the gate admits no one. Makes every rebuild with another token void.
        False if the gate has the round in this epoch already."""

    async def fill(self, ref: RoundRef, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool:
        """Adds all orders of these buyers, live or over. Returns False if the rebuild is void."""

    async def finish_rebuild(
        self, ref: RoundRef, token: str, admitted: int, released: int, items: Mapping[int, Sold] = NO_ITEMS
    ) -> int | None:
        """Returns when the round was created anew, for `mark_opened`, or None if the rebuild is void. `items`: the same
        units by item."""


class FailoverGate(FencingGate, RulesGate, ReleaseGate, PulseGate, RememberingGate, Protocol):
    """For comparing a lane that is on another server than before."""

    async def moved_lanes(self, lanes: Collection[int]) -> dict[int, MovedLane]:
        """Returns the lanes that are on another server than the one vouched for, or on one that was restarted or
        replaced in between. Such a server may have taken over without the newest orders, so the gate admits no one
        there until the keeper has compared the lane once. Lanes that cannot be reached are left out."""

    async def vouch(self, lane: int, server: str, *, for_good: bool) -> None:
        """Notes that this server's data of the lane has been compared with the ledger, for the first time or
        `for_good`."""


class LastingGate(Protocol):
    async def standing(self, lanes: Collection[int]) -> Mapping[int, str]:
        """Returns which servers have these lanes. Call it before reading what `assure` should answer for."""

    async def assure(self, lanes: Collection[int], standing: Mapping[int, str]) -> None:
        """Returns when no server that takes over can lack what was read from these lanes since then; it is then as
        durable as an admitted order. Raises GateUnclear if that cannot be achieved, or if another server has taken over
        meanwhile. For callers that pass on what they have only read."""


class TrackingGate(LastingGate, ViewGate, Protocol):
    """For showing buyers orders that are not written yet."""

    async def holdings(self, refs: Sequence[RoundRef], user: str) -> list[tuple[Holding, ...] | None]:
        """Returns the buyer's live orders in each of these rounds, or None where the gate may have lost the buyer's
        record. Orders that are over are in the ledger."""


class UnwrittenGate(LastingGate, ViewGate, Protocol):
    """For orders that the gate remembers and no worker has written."""

    def orders(self, ref: RoundRef) -> AsyncIterator[Mapping[str, Sequence[Holding]]]:
        """Yields all orders of the round, live and over, by buyer, in portions; a buyer may be in several. Includes at
        least the orders that were there at the start. Unreadable ones are left out."""


class ServerGate(Protocol):
    """For telling whether its servers are fit to admit."""

    async def watch_servers(self) -> Mapping[str, str]:
        """Checks whether the servers, and those that may replace them, can still keep the promises that `check` has
        verified. Returns, by the name of each server, a sentence about what is wrong, or nothing. Every process that
        admits must call it at least once a second."""

    def full_servers(self) -> Collection[str]:
        """Returns the servers that had no room left at the last check, so that they refuse claims."""

    async def ping(self) -> None: ...


class RepairGate(TrackingGate, FencingGate, ReleaseGate, ViewGate, Protocol):
    """For mending what the audit has found."""


class Gate(
    WinnersGate,
    LatePaymentGate,
    OpeningGate,
    LossGate,
    LaneGate,
    RebuildGate,
    FailoverGate,
    RepairGate,
    UnwrittenGate,
    ServerGate,
    SpaciousStore,
    Protocol,
):
    """Atomic admission: everything that a backend implements. Each use case asks for the part that it needs. Time is
    the gate's own."""

    async def bind(self, ledger: str) -> None:
        """Makes this gate serve that ledger from now on. Raises StartError if it serves another one: round 1 of one
        would be mistaken for round 1 of the other."""

    async def check(self, durability: str) -> list[str]:
        """Raises StartError with one sentence if the server cannot keep the promises. Returns advice. From then on
        every server is checked in the same way before claims go to it, and one that fails admits no one."""

    async def close(self) -> None: ...
