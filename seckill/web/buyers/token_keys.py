"""The keys with which buyers' tokens may be signed: those in the settings and those that an issuer publishes.

The key decides the algorithm. Of a token's header only `kid` is used, which can only choose among these keys.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from seckill.domain.keyed_hash import KeyedHash
from seckill.errors import SettingsError
from seckill.settings import Secret, Settings
from seckill.settings.requirements import UNKNOWN_BUYERS

RSA_BITS_MIN = 2048
# How old the issuer's keys may be, and how soon they are fetched again when a token names an unknown one. Before that,
# such a token is refused: the keys are as good as new, and anyone can write such tokens.
FETCHED_EVERY_S = 300.0
FETCHED_AGAIN_S = 10.0
KEY_ID = re.compile(r"[!-~]{1,128}")

log = structlog.get_logger()


class TokenKey(NamedTuple):
    key: Any
    algorithm: str
    hash: KeyedHash | None = None  # for a secret: used by the short way


class KeysNotKnown(Exception):
    """It is unknown whether the token is valid: the issuer's keys, or its newest ones, have not been fetched yet."""


Fetch = Callable[[], Awaitable[Mapping[str, TokenKey]]]


class TokenKeys:
    def __init__(self, settings: Settings, fetch: Fetch | None = None) -> None:
        """`fetch` gets the keys that the issuer publishes."""
        self._unnamed = _unnamed(settings)
        self._named = {name: secret_key(secret) for name, secret in settings.jwt_secrets}
        self._fetch = fetch
        self._published: Mapping[str, TokenKey] = {}
        self._fetched = fetch is None
        self._fresh = fetch is None
        self._wanted = asyncio.Event()
        self.version = 0  # grows whenever a key may have been withdrawn
        if not self._unnamed and not self._named and fetch is None:
            raise SettingsError([UNKNOWN_BUYERS])

    @property
    def known(self) -> bool:
        """Whether tokens can be checked at all."""
        return self._fetched or bool(self._unnamed or self._named)

    def of(self, kid: object) -> list[TokenKey]:
        """Returns the keys that may have signed a token with this `kid`, which may be anything, in the order in which
        to try them. Raises KeysNotKnown."""
        if isinstance(kid, str) and (found := self._named.get(kid) or self._published.get(kid)) is not None:
            return [found]
        if kid is None:
            # An issuer with several keys must say which one: otherwise each forged token would be tried with all of
            # them.
            only = [*self._published.values()] if len(self._published) == 1 else []
            tried = [*self._unnamed, *self._named.values(), *only]
        else:
            # A single key needs no name, so any name in a token is ignored.
            tried = self._unnamed
        if not self._fresh:
            self._wanted.set()
            if not tried:
                raise KeysNotKnown
        return tried

    async def follow(self) -> None:
        """One step of a loop: fetches the issuer's keys, and waits until they are wanted again. If it fails, those
        fetched before are still good."""
        assert self._fetch is not None
        published = await self._fetch()
        if published.keys() != self._published.keys():
            log.info("the issuer's keys", keys=sorted(published))
        self._published = published
        self.version += 1
        self._fetched = self._fresh = True
        try:
            await asyncio.sleep(FETCHED_AGAIN_S)
            self._wanted.clear()
            self._fresh = False
            async with asyncio.timeout(FETCHED_EVERY_S - FETCHED_AGAIN_S):
                await self._wanted.wait()
        except TimeoutError:
            pass
        finally:
            self._fresh = False


_KINDS = f"an RSA key of at least {RSA_BITS_MIN} bits, a P-256 key or an Ed25519 key"


def secret_key(secret: Secret) -> TokenKey:
    content = secret.reveal().encode(errors="surrogateescape")
    return TokenKey(content, "HS256", KeyedHash(content))


def public_key(key: object) -> TokenKey | None:
    """Returns None for a kind of key that is not accepted here."""
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= RSA_BITS_MIN:
        return TokenKey(key, "RS256")
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return TokenKey(key, "ES256")
    if isinstance(key, ed25519.Ed25519PublicKey):
        return TokenKey(key, "EdDSA")
    return None


def _unnamed(settings: Settings) -> list[TokenKey]:
    if settings.jwt_secret is not None:
        return [secret_key(settings.jwt_secret)]
    if settings.jwt_public_key is None:
        return []
    try:
        key = public_key(load_pem_public_key(settings.jwt_public_key.encode()))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SettingsError(
            ["SECKILL_JWT_PUBLIC_KEY cannot be read: give an intact public key in PEM form."]
        ) from error
    if key is None:
        raise SettingsError([f"SECKILL_JWT_PUBLIC_KEY must be {_KINDS}."])
    return [key]
