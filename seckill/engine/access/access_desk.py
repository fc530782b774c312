"""What admins do to keys and operators do to buyers. Each change goes to the ledger first and takes effect in this
process at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from seckill.domain.operator import SIGNED_IN, Operator, Role
from seckill.domain.operator_key import SESSION_PREFIX, OperatorKey, digest_of, key_id_in, new_key, new_session
from seckill.domain.outcome import Outcome
from seckill.engine.access.access_book import AccessBook
from seckill.ports.access import BuyerStanding, KeyLedger, StandingLedger
from seckill.ports.line import BlockedLines
from seckill.ports.record import Facts


@dataclass(frozen=True, slots=True)
class MadeKey:
    known: OperatorKey
    key: str  # shown only this once


class AccessDesk:
    def __init__(self, keys: KeyLedger, standings: StandingLedger, lines: BlockedLines, book: AccessBook) -> None:
        self._keys = keys
        self._standings = standings
        self._lines = lines
        self._book = book

    async def create_key(self, name: str, role: Role, lifetime_s: float | None, by: str) -> MadeKey:
        key_id, key = new_key()
        made = await self._keys.add_key(_draft(key_id, key, Operator(name=name, role=role), by), lifetime_s)
        await self._book.refresh()
        return MadeKey(made, key)

    async def begin_session(self, begun_by: str, operator: Operator, lifetime_s: float, facts: Facts) -> MadeKey | None:
        """Begins a session for an operator who has signed in. Returns None if `begun_by` has already been used for
        one."""
        key_id, key = new_session(begun_by)
        made = await self._keys.add_session(_draft(key_id, key, operator, SIGNED_IN), lifetime_s, facts)
        await self._book.refresh()
        return None if made is None else MadeKey(made, key)

    async def end_session(self, candidate: str) -> None:
        """Ends the session, if the candidate is one, whatever its state."""
        key_id = key_id_in(candidate, SESSION_PREFIX)
        if key_id is not None and isinstance(await self._book.session(candidate), Operator):
            await self.revoke_key(key_id)

    async def keys(self) -> Sequence[OperatorKey]:
        return await self._keys.keys()

    async def revoke_key(self, key_id: str) -> OperatorKey | None:
        """Returns None if there is no such key."""
        revoked = await self._keys.revoke_key(key_id)
        await self._book.refresh()
        return revoked

    async def block(self, user: str, reason: str) -> BuyerStanding:
        """Blocks the buyer and takes them out of every line, where they would get a unit merely by waiting."""
        blocked = await self._done(await self._standings.block(user, reason))
        for entry_id in await self._lines.waiting_of(user):
            # Buyers see the reason of their entry, so the operator's own reason is only in the record.
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


def _draft(key_id: str, key: str, operator: Operator, by: str) -> OperatorKey:
    """Without the time of its making, which the ledger's clock sets."""
    role = operator.role
    return OperatorKey(id=key_id, name=operator.name, role=role, digest=digest_of(key), created_ms=0, created_by=by)
