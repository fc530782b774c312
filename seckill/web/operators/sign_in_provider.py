"""The OpenID Connect provider with which operators sign in, configured by its own metadata.

Of its answers only an ID token is believed. It must be signed with a key that the provider publishes, made for us,
still valid, and answer the question that we asked this browser (`nonce`). The key decides the algorithm; a token's
header only chooses among the keys.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import jwt

from seckill.domain.operator import NAME_MAX, RESERVED, Operator, Role
from seckill.errors import SeckillError
from seckill.settings import Settings
from seckill.web.buyers.issuer_calls import FAILURES, WITHIN_S, ask
from seckill.web.buyers.key_set import IssuerAway, KeySet
from seckill.web.buyers.token_keys import FETCHED_AGAIN_S, FETCHED_EVERY_S, TokenKey

WELL_KNOWN = "/.well-known/openid-configuration"
SCOPES = "openid email profile"
LEEWAY_S = 30  # how far the provider's clock may be from ours
TOKEN_BYTES_MAX = 16 * 1024


class ProviderAway(SeckillError):
    """The provider does not answer, or not as a provider should."""


class NotBelieved(SeckillError):
    """What came back from the provider proves nothing."""


# A provider that did not answer is not asked again for this long.
AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Person:
    operator: Operator | None  # None: the person's claims give them no role
    name: str
    subject: str


@dataclass(frozen=True, slots=True)
class _Facts:
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    secret_in_header: bool


class SignInProvider:
    def __init__(self, settings: Settings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._issuer = settings.oidc_url.removesuffix(WELL_KNOWN)
        self._monotonic = monotonic
        self._facts: tuple[float, _Facts] | None = None
        self._asking = asyncio.Lock()
        self._again_s = 0.0  # not asked again before this time
        self._keys: tuple[float, Mapping[str, TokenKey]] | None = None

    @property
    def name(self) -> str:
        return self._settings.oidc_name or urlsplit(self._issuer).netloc

    @property
    def return_url(self) -> str:
        return f"{self._settings.public_url.rstrip('/')}/console/signed-in"

    async def question(self, state: str, nonce: str, verifier: str) -> str:
        """Returns where to send the browser. Raises ProviderAway."""
        facts = await self._known()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": self.return_url,
            "scope": SCOPES,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if urlsplit(facts.authorization_endpoint).query else "?"
        return f"{facts.authorization_endpoint}{joint}{urlencode(query)}"

    async def keys_published(self) -> int:
        """Returns how many of its keys can be used here. Raises ProviderAway."""
        try:
            return len(await KeySet((await self._known()).jwks_uri, "SECKILL_OIDC_URL").fetch())
        except IssuerAway as error:
            raise ProviderAway(str(error)) from error

    async def person(self, code: str, verifier: str, nonce: str, issuer: str | None) -> Person:
        """Returns who has come back with that code. `issuer`: the provider named in the address, if any (RFC 9207).
        Raises NotBelieved or ProviderAway."""
        facts = await self._known()
        if issuer not in (None, facts.issuer):
            raise NotBelieved("The answer is another provider's.")
        token = await self._exchange(facts, code, verifier)
        claims = await self._claims(facts, token)
        if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
            raise NotBelieved("The ID token answers another question.")
        return self._person(facts, claims)

    async def _known(self) -> _Facts:
        async with self._asking:  # all who wait share one question
            if self._facts is None or self._monotonic() - self._facts[0] > FETCHED_EVERY_S:
                await self._learn()
            assert self._facts is not None
            return self._facts[1]

    async def _learn(self) -> None:
        if self._monotonic() < self._again_s:
            raise ProviderAway("SECKILL_OIDC_URL did not answer a moment ago.")
        try:
            found = _facts(self._issuer, json.loads(await _asked(f"{self._issuer.rstrip('/')}{WELL_KNOWN}")))
        except FAILURES as error:
            if self._facts is None:
                self._again_s = self._monotonic() + AGAIN_S
                raise ProviderAway(f"SECKILL_OIDC_URL does not answer as a provider ({error}).") from error
            found = self._facts[1]  # its earlier metadata is still valid
        self._facts = self._monotonic(), found

    async def _exchange(self, facts: _Facts, code: str, verifier: str) -> str:
        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.return_url,
            "code_verifier": verifier,
            "client_id": settings.oidc_client_id,
        }
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if settings.oidc_client_secret is not None:
            secret = settings.oidc_client_secret.reveal()
            if facts.secret_in_header:
                pair = f"{quote(settings.oidc_client_id, safe='')}:{quote(secret, safe='')}"
                headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            else:
                form["client_secret"] = secret
        try:
            answer = json.loads(await _asked(facts.token_endpoint, urlencode(form).encode(), headers))
            token = answer["id_token"]
        except (*FAILURES, LookupError, TypeError) as error:
            raise NotBelieved("The provider gives nothing for the code.") from error
        if not isinstance(token, str) or len(token) > TOKEN_BYTES_MAX:
            raise NotBelieved("The provider gives no ID token for the code.")
        return token

    async def _claims(self, facts: _Facts, token: str) -> dict[str, Any]:
        try:
            key = await self._key(facts, jwt.get_unverified_header(token).get("kid"))
            if key is None:
                raise NotBelieved("The ID token is signed with a key that the provider does not publish.")
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                issuer=facts.issuer,
                audience=self._settings.oidc_client_id,
                leeway=LEEWAY_S,
                options={"require": ["iss", "aud", "exp", "iat", "sub", "nonce"]},
            )
        except (jwt.PyJWTError, RecursionError) as error:
            raise NotBelieved(f"The ID token is not believed: {type(error).__name__}.") from error
        # A token for several audiences says which one has asked for it.
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else self._settings.oidc_client_id) != self._settings.oidc_client_id:
            raise NotBelieved("The ID token was issued to another client.")
        return claims

    async def _key(self, facts: _Facts, kid: object) -> TokenKey | None:
        """Returns the key as it is published now. The provider is asked again if it may have a new one, but not for
        each token that names an unknown one."""
        now_s = self._monotonic()
        fetched_s, keys = self._keys or (-FETCHED_EVERY_S, {})
        missing = isinstance(kid, str) and kid not in keys
        if now_s - fetched_s >= (FETCHED_AGAIN_S if missing else FETCHED_EVERY_S):
            try:
                keys = await KeySet(facts.jwks_uri, "SECKILL_OIDC_URL").fetch()
                self._keys = now_s, keys
            except IssuerAway as error:
                if not keys:
                    raise ProviderAway(str(error)) from error
        if kid is None and len(keys) == 1:
            return next(iter(keys.values()))
        return keys.get(kid) if isinstance(kid, str) else None

    def _person(self, facts: _Facts, claims: Mapping[str, Any]) -> Person:
        subject = str(claims["sub"])
        name = _name(facts.issuer, subject, claims)
        given = claims.get(self._settings.oidc_roles_claim, ())
        values = {given} if isinstance(given, str) else set(filter(_is_text, given if isinstance(given, list) else ()))
        roles = {Role(role) for role, value in self._settings.oidc_roles if value in values}
        greatest = next((role for role in reversed(Role) if role in roles), None)
        return Person(None if greatest is None else Operator(name=name, role=greatest), name, subject)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _name(issuer: str, subject: str, claims: Mapping[str, Any]) -> str:
    """Returns the operator's name for the record: the e-mail address if the provider vouches for it; otherwise the
    provider's name for the person, or a digest of it."""
    for name in (claims.get("email") if claims.get("email_verified", True) is True else None, subject):
        if isinstance(name, str) and name and name == name.strip() and name.isprintable() and _is_free(name):
            return name
    return f"sub {hashlib.blake2b(json.dumps([issuer, subject]).encode(), digest_size=12).hexdigest()}"


def _is_free(name: str) -> bool:
    return len(name) <= NAME_MAX and name.casefold() not in RESERVED


def _facts(issuer: str, content: Any) -> _Facts:
    """Raises ValueError."""
    if not isinstance(content, dict):
        raise ValueError("it says nothing of itself")
    said = content.get("issuer")
    if not isinstance(said, str) or said.rstrip("/") != issuer.rstrip("/"):
        raise ValueError(f"it says that it is another issuer, {str(said)[:200]!r}: give that one")
    found = {name: content.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
    scheme = urlsplit(issuer).scheme
    for name, url in found.items():
        if not isinstance(url, str) or urlsplit(url).scheme not in ("https", scheme):
            raise ValueError(f"its {name} is no address over https")
    methods = content.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    return _Facts(issuer=said, secret_in_header="client_secret_basic" in methods, **found)  # type: ignore[arg-type]


async def _asked(url: str, form: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
    async with asyncio.timeout(2 * WITHIN_S):  # also bounds an answer that comes byte by byte
        return await asyncio.to_thread(ask, url, form, headers)
