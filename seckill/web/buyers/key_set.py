"""The keys that an issuer of tokens publishes (RFC 7517), fetched from `SECKILL_JWKS_URL`."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import jwt

from seckill.errors import SeckillError
from seckill.web.buyers.issuer_calls import FAILURES, WITHIN_S, ask
from seckill.web.buyers.token_keys import KEY_ID, Fetch, TokenKey, public_key

KEYS_MAX = 32


class IssuerAway(SeckillError):
    """The issuer does not show its keys, or none that can be used here."""


class KeySet:
    def __init__(self, url: str, setting: str = "SECKILL_JWKS_URL") -> None:
        """`setting`: the setting that contains the address."""
        self._url = url
        self._setting = setting

    @classmethod
    def of(cls, url: str) -> Fetch | None:
        return cls(url).fetch if url else None

    async def fetch(self) -> Mapping[str, TokenKey]:
        """Raises IssuerAway."""
        try:
            async with asyncio.timeout(2 * WITHIN_S):
                return read(await asyncio.to_thread(ask, self._url))
        except FAILURES as error:
            raise IssuerAway(f"{self._setting} shows no keys ({type(error).__name__}: {error}).") from error


def read(document: bytes) -> Mapping[str, TokenKey]:
    """Returns the keys that can be used here. Others are skipped: an issuer may have keys for other purposes. Symmetric
    keys are skipped too, since a published one is no secret. Raises ValueError if nothing is left."""
    content = json.loads(document)
    listed = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it is no set of keys")
    found: dict[str, TokenKey] = {}
    for entry in listed[:KEYS_MAX]:
        key = _key(entry) if isinstance(entry, dict) else None
        if key is not None:
            found.setdefault(entry["kid"], key)
    if not found:
        raise ValueError("none of its keys can be used: RS256, ES256 or EdDSA, with a kid")
    return found


def _key(entry: dict[str, Any]) -> TokenKey | None:
    kid = entry.get("kid")
    if not isinstance(kid, str) or not KEY_ID.fullmatch(kid) or entry.get("use", "sig") != "sig":
        return None
    try:
        key = public_key(jwt.PyJWK(entry).key)
    # The library fails in various ways on values of unexpected types.
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError):
        return None
    return key if key is not None and entry.get("alg", key.algorithm) == key.algorithm else None
