"""Operators' keys: how they are made, found and compared. Pure.

A key is long and random, so hashing it once is enough: no one can guess among 2²⁵⁶. The part before the secret names
the key, so that it is found without comparing secrets and recognised in a leak.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from seckill.domain.operator import Operator, Role

PREFIX = "sko"
# The prefix of a session's secret, which only the operator's browser has. Such a secret is not valid as a key.
SESSION_PREFIX = "sks"
_ID_BYTES = 6
_SECRET_BYTES = 32
_SECRETS = re.compile(rf"({PREFIX}|{SESSION_PREFIX})_([0-9a-f]{{{2 * _ID_BYTES}}})_[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorKey:
    """A key as the ledger has it: without the key itself."""

    id: str
    name: str
    role: Role
    digest: str
    created_ms: int
    created_by: str
    expires_ms: int | None = None
    revoked_ms: int | None = None

    @property
    def operator(self) -> Operator:
        return Operator(name=self.name, role=self.role)


def new_key() -> tuple[str, str]:
    """Returns a new key's id, and the key, which contains it."""
    key_id = secrets.token_hex(_ID_BYTES)
    return key_id, f"{PREFIX}_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def new_session(begun_by: str) -> tuple[str, str]:
    """The same for an operator who has signed in. The id is derived from `begun_by`, so that one sign-in begins one
    session and never a second."""
    key_id = hashlib.sha256(begun_by.encode()).hexdigest()[: 2 * _ID_BYTES]
    return key_id, f"{SESSION_PREFIX}_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def key_id_in(candidate: str, prefix: str = PREFIX) -> str | None:
    """Returns None if it is not made like one of ours."""
    found = _SECRETS.fullmatch(candidate)
    return None if found is None or found[1] != prefix else found[2]


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def is_key(candidate: str, digest: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(digest_of(candidate), digest)
