"""What admins do to keys, and operators to buyers: the ledger first, then at once this process."""

from collections.abc import Sequence
from dataclasses import dataclass

from seckill.domain.operator import OperatorKey, Role, digest_of, new_key
from seckill.domain.outcome import Outcome
from seckill.engine.access.access_book import AccessBook
from seckill.ports.access import BuyerStanding, KeyLedger, StandingLedger
from seckill.ports.line import BlockedLines


@dataclass(frozen=True, slots=True)
class MadeKey:
    known: OperatorKey
    key: str  # shown this once


class AccessDesk:
    def __init__(self, keys: KeyLedger, standings: StandingLedger, lines: BlockedLines, book: AccessBook) -> None:
        self._keys = keys
        self._standings = standings
        self._lines = lines
        self._book = book

    async def create_key(self, name: str, role: Role, lifetime_s: float | None, by: str) -> MadeKey:
        key_id, key = new_key()
        draft = OperatorKey(id=key_id, name=name, role=role, digest=digest_of(key), created_ms=0, created_by=by)
        made = await self._keys.add_key(draft, lifetime_s)
        await self._book.refresh()
        return MadeKey(made, key)

    async def keys(self) -> Sequence[OperatorKey]:
        return await self._keys.keys()

    async def revoke_key(self, key_id: str) -> OperatorKey | None:
        """None: there is no such key."""
        revoked = await self._keys.revoke_key(key_id)
        await self._book.refresh()
        return revoked

    async def block(self, user: str, reason: str) -> BuyerStanding:
        """Also out of every line: there, nothing that a buyer does brings a unit, but time."""
        blocked = await self._done(await self._standings.block(user, reason))
        for entry_id in await self._lines.waiting_of(user):
            # Why, the record says: buyers see the reason of their entry.
            await self._lines.leave(entry_id, None, Outcome.BLOCKED.value)
        return blocked

    async def unblock(self, user: str, reason: str) -> BuyerStanding:
        return await self._done(await self._standings.unblock(user, reason))

    async def end_tokens(self, user: str, before_s: int, reason: str) -> BuyerStanding:
        return await self._done(await self._standings.end_tokens(user, before_s, reason))

    async def standing(self, user: str) -> BuyerStanding:
        return await self._standings.standing(user)

    async def blocked(self, after: str, count: int) -> Sequence[BuyerStanding]:
        return await self._standings.blocked(after, count)

    async def _done(self, standing: BuyerStanding) -> BuyerStanding:
        await self._book.refresh()
        return standing
