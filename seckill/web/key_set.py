"""The keys that an issuer of tokens publishes (RFC 7517), fetched from `SECKILL_JWKS_URL`."""

import asyncio
import json
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

import jwt

from seckill.errors import SeckillError
from seckill.web.token_keys import KEY_ID, Fetch, TokenKey, public_key

WITHIN_S = 5.0
BYTES_MAX = 64 * 1024
KEYS_MAX = 32


class IssuerAway(SeckillError):
    """The issuer does not show its keys, or none that can be used here."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whoever can redirect us would choose whom we believe."""

    def redirect_request(self, *args: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


class KeySet:
    def __init__(self, url: str) -> None:
        self._url = url

    @classmethod
    def of(cls, url: str) -> Fetch | None:
        return cls(url).fetch if url else None

    async def fetch(self) -> Mapping[str, TokenKey]:
        """Raises IssuerAway."""
        try:
            async with asyncio.timeout(2 * WITHIN_S):
                return read(await asyncio.to_thread(self._get))
        except (OSError, ValueError, HTTPException, RecursionError) as error:  # also TimeoutError and refusals
            raise IssuerAway(f"SECKILL_JWKS_URL shows no keys ({type(error).__name__}: {error}).") from error

    def _get(self) -> bytes:
        with _opener.open(self._url, timeout=WITHIN_S) as answer:
            found: bytes = answer.read(BYTES_MAX + 1)
        if len(found) > BYTES_MAX:
            raise ValueError(f"the answer has more than {BYTES_MAX} bytes")
        return found


def read(document: bytes) -> Mapping[str, TokenKey]:
    """Those that can be used here. Others are passed over: an issuer may have keys for other purposes. Secrets too:
    what is published is none. Raises ValueError if nothing is left."""
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
    # The library trips over what is not of the type that it expects.
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError):
        return None
    return key if key is not None and entry.get("alg", key.algorithm) == key.algorithm else None
