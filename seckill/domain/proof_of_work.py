"""Proof of work: a puzzle that takes many hashes to solve and two to pose and check. Pure.

It is ALTCHA's scheme (version 1), so that its solvers understand ours. A secret number below `maxnumber` is drawn, and
the challenge is the SHA-256 of a salt followed by that number. To find it, the numbers have to be tried one after the
other, half of them on average. The salt says until when the challenge is good, and for which buyer and round. An HMAC
over the challenge tells that it is ours, so nothing has to be kept. A solution that is sent again is the same buyer's
for the same round again: it is worth a second copy of the same pass, and no more.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

ALGORITHM = "SHA-256"
# Short enough for salt and number to be one block of the hash.
_RANDOM_BYTES = 4
_TAG_DIGITS = 10
# It ends in a character that is not a digit, so that no part of it can be taken for a part of the number, or the other
# way round.
_SALT = re.compile(r"[0-9a-f]{8}\?expires=([0-9]{10})&for=([0-9a-f]{10})&")


class WorkVerdict(StrEnum):
    RIGHT = "right"
    EXPIRED = "expired"
    OTHERS = "others"  # another buyer's, or for another round
    WRONG = "wrong"  # not the number, or not a challenge of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkChallenge:
    challenge: str
    salt: str
    signature: str
    maxnumber: int
    ends_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSolution:
    challenge: str
    salt: str
    signature: str
    number: int


class Works:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def pose(self, round_id: int, user: str, maxnumber: int, ends_s: int) -> WorkChallenge:
        salt = f"{secrets.token_hex(_RANDOM_BYTES)}?expires={ends_s:010d}&for={self._tag(round_id, user)}&"
        challenge = _hash(salt, secrets.randbelow(maxnumber))
        return WorkChallenge(
            challenge=challenge, salt=salt, signature=self._sign(challenge), maxnumber=maxnumber, ends_s=ends_s
        )

    def judge(self, solution: WorkSolution, round_id: int, user: str, now_s: float) -> WorkVerdict:
        found = _SALT.fullmatch(solution.salt)
        ours = hmac.compare_digest(self._sign(solution.challenge).encode(), solution.signature.encode())
        if found is None or not ours or _hash(solution.salt, solution.number) != solution.challenge:
            return WorkVerdict.WRONG
        if not hmac.compare_digest(self._tag(round_id, user), found[2]):
            return WorkVerdict.OTHERS
        return WorkVerdict.RIGHT if now_s < int(found[1]) else WorkVerdict.EXPIRED

    def _tag(self, round_id: int, user: str) -> str:
        return hmac.digest(self._key, f"{round_id} {user}".encode(), "sha256").hex()[:_TAG_DIGITS]

    def _sign(self, challenge: str) -> str:
        return hmac.digest(self._key, challenge.encode(), "sha256").hex()


def solve(challenge: str, salt: str, maxnumber: int) -> int | None:
    """Returns the number, or None if there is none. This may take long, so it must not run in an event loop."""
    wanted = bytes.fromhex(challenge)
    begun = hashlib.sha256(salt.encode())
    for number in range(maxnumber + 1):
        tried = begun.copy()
        tried.update(b"%d" % number)
        if tried.digest() == wanted:
            return number
    return None


def _hash(salt: str, number: int) -> str:
    return hashlib.sha256(f"{salt}{number}".encode()).hexdigest()
