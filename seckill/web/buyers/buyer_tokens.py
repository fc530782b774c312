"""Finds out which buyer is asking, by tokens that another service has signed, and decides which tokens are valid."""

import contextlib
import re
import string
from collections import OrderedDict
from typing import Any

import jwt
import msgspec
from jwt.utils import base64url_decode

from seckill.domain.buyer_id import BadBuyerId, buyer_id
from seckill.engine.access.access_book import BarredBuyers, nobody_barred
from seckill.settings import Secret, Settings
from seckill.web.buyers.token_keys import KeysNotKnown, TokenKey, TokenKeys
from seckill.web.buyers.token_shortcut import SignedTokens
from seckill.web.claims.plain_claim import PlainClaim

LEEWAY_S = 30  # how far the clocks of token issuers may be from ours
LIFETIME_S_MAX = 31 * 86_400  # a leaked token must not be valid for ever
TOKEN_BYTES_MAX = 4096
# The library needs as long for a token as all the rest of a claim takes, and a buyer comes back with the same one.
KNOWN_TOKENS_MAX = 20_000

# Strict, because the decoder is not: it skips characters that are not base64, so one token would have endless
# spellings, and each would take a place among the known ones.
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_BEARER_CHARACTERS = (string.ascii_letters + string.digits + "-._~+/").encode()


class Unauthenticated(Exception):
    """The reason can go into a header and to the buyer: it has no quotes and nothing of the token in it, except the
    name of a character that no buyer's id may have."""

    def __init__(self, reason: str, *, forged: bool = False) -> None:
        self.reason = reason
        self.forged = forged  # well made, but signed with another key
        super().__init__(reason)


class Buyer(msgspec.Struct, frozen=True, gc=False):
    user: str
    expires_s: float  # Unix time
    claims: str = "{}"  # the token's claims as JSON, for code that needs more of them
    issued_s: float = 0.0  # Unix time; 0: the token does not say

    @property
    def good_until_s(self) -> float:
        """When a connection that goes by this token has to be closed."""
        return self.expires_s + LEEWAY_S


_OTHER_AUDIENCE = "The token is meant for another audience."
# The first that applies wins, so subclasses come before their base classes.
_REASONS: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.InvalidSignatureError, "The token is not signed with the key that is known here."),
    (jwt.InvalidAlgorithmError, "The token is not signed with the algorithm that is accepted here."),
    (
        jwt.MissingRequiredClaimError,
        "The token lacks a claim that is required here: exp, sub, or a set iss or aud.",
    ),
    (jwt.InvalidIssuerError, "The token is from another issuer."),
    (jwt.InvalidAudienceError, _OTHER_AUDIENCE),
)


class Buyers:
    """Verifies buyers' tokens. `TokenKeys` knows which keys there are and what each may be used for. Of a token's
    header only `kid` is used, which chooses among them."""

    def __init__(self, settings: Settings, keys: TokenKeys | None = None, barred: BarredBuyers | None = None) -> None:
        self.keys = keys or TokenKeys(settings)
        self._barred = barred or nobody_barred()
        self._issuer = settings.jwt_issuer
        self._audience = settings.jwt_audience
        self._known: OrderedDict[str, Buyer] = OrderedDict()
        self._known_by = self.keys.version
        self._signed = SignedTokens(self._issuer, self._audience)

    def verify(self, token: str, now: float) -> Buyer:
        """Raises Unauthenticated or KeysNotKnown."""
        believed = self.believe(token.encode(), now) if token.isascii() else None
        return believed or self._verify_with_library(token, now)

    def believe(self, token: bytes, now: float) -> Buyer | None:
        """The short way. Returns None if `verify` has to decide."""
        if len(token) > TOKEN_BYTES_MAX:
            return None
        signed = self._signed.read(token)
        if signed is None:
            return None
        claims, text = signed
        if (
            now - LEEWAY_S < claims.exp <= now + LIFETIME_S_MAX + LEEWAY_S
            and claims.iat <= now + LEEWAY_S
            and claims.nbf <= now + LEEWAY_S
        ):
            try:
                buyer = Buyer(buyer_id(claims.sub), claims.exp, text, claims.iat)
            except BadBuyerId:
                return None
            return buyer if self.trusts(buyer) else None
        return None

    def vouch(self, said: PlainClaim, now: float) -> bool:
        """Whether the token of a plain claim is plainly good. False: the other ways decide."""
        _, _, header, signed, signature, user, expires_s, issued_s, not_before_s, *_ = said
        return (
            self._signed.is_ours(header, signed, signature)
            and now - LEEWAY_S < expires_s <= now + LIFETIME_S_MAX + LEEWAY_S
            and issued_s <= now + LEEWAY_S >= not_before_s
            and (not self._barred.active or self._barred.has_ended(user, issued_s) is False)
        )

    def trusts(self, buyer: Buyer) -> bool:
        """Returns False if the token was ended since, or if that is not known yet."""
        return not self._barred.active or self._barred.has_ended(buyer.user, buyer.issued_s) is False

    def _verify_with_library(self, token: str, now: float) -> Buyer:
        if self._known_by != self.keys.version:  # the key of some known tokens may have been withdrawn
            self._known.clear()
            self._known_by = self.keys.version
        buyer = self._known.get(token) or self._decode(token, now)
        if now >= buyer.good_until_s:
            self._known.pop(token, None)
            raise Unauthenticated("The token has expired.")
        if self._barred.active and (ended := self._barred.has_ended(buyer.user, buyer.issued_s)) is not False:
            if ended is None:
                raise KeysNotKnown
            raise Unauthenticated("The token was ended by the shop; sign in again.")
        self._known[token] = buyer
        self._known.move_to_end(token)
        if len(self._known) > KNOWN_TOKENS_MAX:
            self._known.popitem(last=False)
        return buyer

    def _decode(self, token: str, now: float) -> Buyer:
        if len(token) > TOKEN_BYTES_MAX:
            raise Unauthenticated("The token is too long.")
        if not _TOKEN.fullmatch(token):
            raise Unauthenticated("The token is not a JWT.")
        key, decoded = self._open(token)
        if "crit" in decoded["header"]:
            raise Unauthenticated("The token demands an extension that is not known here.")
        if self._audience is None and decoded["payload"].get("aud") is not None:
            # The library treats an empty list like none, but such a token was meant for no one.
            raise Unauthenticated(_OTHER_AUDIENCE)
        buyer = _buyer(decoded["payload"], now, base64url_decode(token.split(".")[1]).decode())
        if key.hash is not None:
            self._signed.learn(token, key.hash)
        return buyer

    def _open(self, token: str) -> tuple[TokenKey, dict[str, Any]]:
        """Opens the token with the key that fits. An error concerns the last key that was tried."""
        try:
            tried = self.keys.of(jwt.get_unverified_header(token).get("kid"))
            if not tried:
                raise Unauthenticated(_REASONS[0][1], forged=True)
            for key in tried[:-1]:
                with contextlib.suppress(jwt.InvalidSignatureError, jwt.InvalidAlgorithmError):
                    return key, self._decoded(token, key)
            return tried[-1], self._decoded(token, tried[-1])
        # Claims may be nested so deeply that the decoder reaches the end of the stack, which older versions do not
        # catch.
        except (jwt.PyJWTError, RecursionError) as error:
            reason = next((text for kind, text in _REASONS if isinstance(error, kind)), "The token is malformed.")
            raise Unauthenticated(reason, forged=isinstance(error, jwt.InvalidSignatureError)) from error

    def _decoded(self, token: str, key: TokenKey) -> dict[str, Any]:
        return jwt.decode_complete(
            token,
            key.key,
            algorithms=[key.algorithm],
            # Times are checked here, against the caller's clock, and so is sub, which has stricter rules.
            options={
                "require": ["exp", "sub"],
                "verify_sub": False,
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
            issuer=self._issuer,
            audience=self._audience,
        )


def _buyer(claims: dict[str, Any], now: float, text: str) -> Buyer:
    expires_s = _time(claims, "exp")
    if expires_s > now + LIFETIME_S_MAX + LEEWAY_S:
        raise Unauthenticated(f"The token is good for more than {LIFETIME_S_MAX // 86_400} days.")
    for name in ("nbf", "iat"):
        if name in claims and _time(claims, name) > now + LEEWAY_S:
            raise Unauthenticated("The token is not valid yet.")
    if not isinstance(claims["sub"], str):
        raise Unauthenticated("The token's sub is not a text.")
    try:
        issued_s = _time(claims, "iat") if "iat" in claims else 0.0
        return Buyer(buyer_id(claims["sub"]), expires_s, text, issued_s)
    except BadBuyerId as error:
        raise Unauthenticated(f"The token's sub {error}.") from None


def _time(claims: dict[str, Any], name: str) -> float:
    value = claims[name]
    # Integers that a float holds exactly; false for nan.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 53:
        raise Unauthenticated(f"The token's {name} is not a time.")
    return float(value)


def mint_buyer_token(
    secret: Secret, user: str, lifetime_s: float, issuer: str | None, audience: str | None, now: float
) -> str:
    """Makes a token for trying things out: in a shop, the service that logs buyers in makes their tokens. Raises
    ValueError."""
    try:
        user = buyer_id(user)
    except BadBuyerId as error:
        raise ValueError(f"That cannot be a buyer's id: it {error}.") from None
    if not 0 < lifetime_s <= LIFETIME_S_MAX:
        raise ValueError(f"A token lives for at most {LIFETIME_S_MAX // 86_400} days.")
    claims: dict[str, Any] = {"sub": user, "iat": int(now), "exp": int(now + lifetime_s)}
    claims |= {"iss": issuer} if issuer is not None else {}
    claims |= {"aud": audience} if audience is not None else {}
    return jwt.encode(claims, secret.reveal().encode(errors="surrogateescape"), "HS256")


def looks_like_jwt(token: str) -> bool:
    """Whether the text has the form of a token, valid or not: a token's header is a JSON object, and no admin key looks
    like that."""
    return token.startswith("eyJ") and token.count(".") == 2


def bearer(header: bytes | None) -> str | None:
    """The one token of an `Authorization: Bearer` header, or None."""
    scheme, _, rest = (header or b"").partition(b" ")
    token = rest.strip(b" ")
    text = token.rstrip(b"=")
    # Deletes all allowed characters and looks whether any are left: a regular expression takes five times as long.
    if scheme.lower() != b"bearer" or not text or text.translate(None, _BEARER_CHARACTERS):
        return None
    return token.decode("ascii")
