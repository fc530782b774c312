"""Operators' keys, and the buyers who may not buy or whose tokens were ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from seckill.domain.operator_key import OperatorKey
from seckill.ports.record import Facts

EVERYBODY = ""  # used instead of a buyer's id, which is never empty


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyerStanding:
    user: str  # or EVERYBODY
    blocked_ms: int | None = None
    tokens_before_s: int | None = None  # tokens issued before this time are no longer valid
    reason: str | None = None  # of the block
    blocked_by: str | None = None


@dataclass(frozen=True, slots=True)
class AccessChanges:
    version: int
    keys: Sequence[OperatorKey]  # all of them
    buyers: Sequence[BuyerStanding]  # those that have changed


class AccessReader(Protocol):
    async def changes(self, after: int) -> AccessChanges | None:
        """Returns what has changed after that version, or None if nothing has."""


class KeyLedger(Protocol):
    async def add_key(self, key: OperatorKey, lifetime_s: float | None) -> OperatorKey:
        """`created_ms` and `expires_ms` are by the database's clock."""

    async def add_session(self, key: OperatorKey, lifetime_s: float, facts: Facts) -> OperatorKey | None:
        """The same for an operator who has signed in; `facts` go on the record. Returns None if there was a session
        with this id. Forgets sessions that were over a day ago."""

    async def keys(self) -> list[OperatorKey]:
        """Newest first."""

    async def revoke_key(self, key_id: str) -> OperatorKey | None:
        """Harmless to repeat. Returns None if there is no such key."""


class StandingLedger(Protocol):
    async def block(self, user: str, reason: str) -> BuyerStanding:
        """Harmless to repeat: the first reason stays."""

    async def unblock(self, user: str, reason: str) -> BuyerStanding: ...

    async def end_tokens(self, user: str, before_s: int, reason: str) -> BuyerStanding:
        """Ends the buyer's tokens issued before that time. Of several such times, the latest counts."""

    async def standing(self, user: str) -> BuyerStanding: ...

    async def blocked(self, after: str, count: int) -> list[BuyerStanding]:
        """Returns blocked buyers after this one, by name."""


class AccessLedger(AccessReader, KeyLedger, StandingLedger, Protocol): ...
