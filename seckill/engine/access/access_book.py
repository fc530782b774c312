"""Which operator keys are valid and which buyers are blocked. Each process keeps this in memory, so no request has to
ask the ledger.

The process looks for changes every second, so an operator's decision takes effect everywhere within
`EFFECTIVE_WITHIN_S`. A process that can no longer read the ledger would not hear that a key was revoked. After that
time it therefore accepts no named key until it can read again. Buyers it knows to be blocked stay blocked.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto

from seckill.domain.operator import Operator
from seckill.domain.operator_key import PREFIX, SESSION_PREFIX, OperatorKey, is_key, key_id_in
from seckill.ports.access import EVERYBODY, AccessReader, BuyerStanding

LOOK_EVERY_S = 1.0
# The shortest time between two looks for an unknown key or session: anyone can make one up.
LOOK_AGAIN_S = 0.05
# Every process acts on a decision within this time.
EFFECTIVE_WITHIN_S = 5.0


class NoOperator(Enum):
    """Why a key does not open the door."""

    WRONG = auto()
    EXPIRED = auto()
    REVOKED = auto()
    NOT_KNOWN = auto()  # the keys could not be read lately


class BarredBuyers:
    """The buyers who are blocked or whose tokens were ended. While there are none, a claim only looks at `active`."""

    __slots__ = ("_before_s", "_blocked", "_everybody_s", "_known", "active")

    def __init__(self) -> None:
        self.active = True  # until the first reading shows whether there are any
        self._known = False
        self._blocked: set[str] = set()
        self._before_s: dict[str, int] = {}
        self._everybody_s = 0

    def blocks(self, user: str) -> bool | None:
        """Whether this buyer is blocked. None: not known yet."""
        return user in self._blocked if self._known else None

    def has_ended(self, user: str, issued_s: float) -> bool | None:
        """Whether a token issued to the buyer at that time has been ended. None: not known yet."""
        if not self._known:
            return None
        return issued_s < max(self._everybody_s, self._before_s.get(user, 0))

    def learn(self, changed: Sequence[BuyerStanding]) -> None:
        for standing in changed:
            user, before_s = standing.user, standing.tokens_before_s or 0
            if user == EVERYBODY:
                self._everybody_s = before_s
                continue
            if before_s:
                self._before_s[user] = before_s
            if standing.blocked_ms is None:
                self._blocked.discard(user)
            else:
                self._blocked.add(user)
        self._known = True
        self.active = bool(self._blocked or self._before_s or self._everybody_s)


def nobody_barred() -> BarredBuyers:
    barred = BarredBuyers()
    barred.learn(())
    return barred


class AccessBook:
    def __init__(
        self,
        ledger: AccessReader,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._monotonic = monotonic
        self._now_ms = now_ms
        self._version = -1
        self._read_at: float | None = None
        self._looking = asyncio.Lock()
        self._keys: dict[str, OperatorKey] = {}
        self.barred = BarredBuyers()

    async def refresh(self) -> None:
        # Taken before the query: the answer may lack what is committed after it.
        asked_at = self._monotonic()
        changes = await self._ledger.changes(self._version)
        if changes is not None:
            self._keys = {key.id: key for key in changes.keys}
            self.barred.learn(changes.buyers)
            self._version = changes.version
        self._read_at = asked_at

    async def operator(self, candidate: str) -> Operator | NoOperator:
        """Finds the operator to whom a key belongs. Compares in constant time."""
        return await self._found(candidate, PREFIX)

    async def session(self, candidate: str) -> Operator | NoOperator:
        """The same for an operator who has signed in."""
        return await self._found(candidate, SESSION_PREFIX)

    async def _found(self, candidate: str, prefix: str) -> Operator | NoOperator:
        """It may have been made a moment ago, and on another node."""
        found = self._opened(candidate, prefix)
        if found is NoOperator.WRONG and key_id_in(candidate, prefix) not in (None, *self._keys):
            asked_s = self._monotonic()
            async with self._looking:  # all callers share one query: anyone can make up a key
                if self._read_at is None or self._read_at < asked_s - LOOK_AGAIN_S:
                    await self.refresh()
            found = self._opened(candidate, prefix)
        return found

    def _opened(self, candidate: str, prefix: str) -> Operator | NoOperator:
        key_id = key_id_in(candidate, prefix)
        if key_id is None:
            return NoOperator.WRONG
        if self._read_at is None or self._monotonic() - self._read_at > EFFECTIVE_WITHIN_S:
            return NoOperator.NOT_KNOWN
        key = self._keys.get(key_id)
        if key is None or not is_key(candidate, key.digest):
            return NoOperator.WRONG
        if key.revoked_ms is not None:
            return NoOperator.REVOKED
        if key.expires_ms is not None and self._now_ms() >= key.expires_ms:
            return NoOperator.EXPIRED
        return key.operator
