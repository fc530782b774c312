"""Who is asking: a buyer with a signed token, or an operator with the admin key."""

import hashlib
import hmac
import re
import string
from collections import OrderedDict
from typing import Any

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from seckill.errors import SettingsError
from seckill.settings import Secret, Settings
from seckill.web.signed_tokens import SignedTokens

LEEWAY_S = 30  # how far the clocks of token issuers may be from ours
LIFETIME_S_MAX = 31 * 86_400  # a leaked token must not be valid for ever
TOKEN_BYTES_MAX = 4096
# The library takes as long for a token as all the rest of a claim, and a buyer returns with the same one.
KNOWN_TOKENS_MAX = 20_000
RSA_BITS_MIN = 2048

# Strict, because the decoder is not: it skips what is not base64, so one token would have endless spellings
# and each would take a place among the known ones.
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# ASCII only: the same name in another script, width or case would be another buyer with a limit of their own.
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@|:+~=/-]{0,127}")
_PADDED_NUMBER = re.compile(r"0[0-9]+")
_BEARER_CHARACTERS = (string.ascii_letters + string.digits + "-._~+/").encode()


class Unauthenticated(Exception):
    """The reason is fit for a header and for the buyer: no quotes, and nothing of the token in it."""

    def __init__(self, reason: str, *, forged: bool = False) -> None:
        self.reason = reason
        self.forged = forged  # well made, but signed with another key
        super().__init__(reason)


class Buyer(msgspec.Struct, frozen=True, gc=False):
    user: str
    expires_s: float  # Unix time

    @property
    def good_until_s(self) -> float:
        """A connection that outlives it is closed."""
        return self.expires_s + LEEWAY_S


def is_user(text: str) -> bool:
    """One person has one spelling: "7" is a user, "07" is not."""
    return _USER.fullmatch(text) is not None and _PADDED_NUMBER.fullmatch(text) is None


_OTHER_AUDIENCE = "The token is meant for another audience."
# The first that applies wins, so subclasses stand before what they derive from.
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
    """Verifies buyers' tokens. The key decides the algorithm; nothing in a token's header is followed."""

    def __init__(self, settings: Settings) -> None:
        self._key, self._algorithm = _key(settings)
        self._issuer = settings.jwt_issuer
        self._audience = settings.jwt_audience
        self._known: OrderedDict[str, Buyer] = OrderedDict()
        self._signed = SignedTokens(self._key, self._issuer, self._audience) if self._algorithm == "HS256" else None

    def verify(self, token: str, now: float) -> Buyer:
        """Raises Unauthenticated."""
        believed = self.believe(token.encode(), now) if token.isascii() else None
        return believed or self._verify_with_library(token, now)

    def believe(self, token: bytes, now: float) -> Buyer | None:
        """The short way. None: `verify` decides."""
        if self._signed is None or len(token) > TOKEN_BYTES_MAX:
            return None
        claims = self._signed.read(token)
        if (
            claims is not None
            and now - LEEWAY_S < claims.exp <= now + LIFETIME_S_MAX + LEEWAY_S
            and claims.iat <= now + LEEWAY_S
            and claims.nbf <= now + LEEWAY_S
            and is_user(claims.sub)
        ):
            return Buyer(claims.sub, claims.exp)
        return None

    def _verify_with_library(self, token: str, now: float) -> Buyer:
        buyer = self._known.get(token) or self._decode(token, now)
        if now >= buyer.good_until_s:
            self._known.pop(token, None)
            raise Unauthenticated("The token has expired.")
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
        try:
            decoded = jwt.decode_complete(
                token,
                self._key,
                algorithms=[self._algorithm],
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
        # Claims may be nested until the decoder reaches the end of the stack; older versions let that pass.
        except (jwt.PyJWTError, RecursionError) as error:
            reason = next((text for kind, text in _REASONS if isinstance(error, kind)), "The token is malformed.")
            raise Unauthenticated(reason, forged=isinstance(error, jwt.InvalidSignatureError)) from error
        if "crit" in decoded["header"]:
            raise Unauthenticated("The token demands an extension that is not known here.")
        if self._audience is None and decoded["payload"].get("aud") is not None:
            # The library takes an empty list for none. It is a token that was meant for nobody.
            raise Unauthenticated(_OTHER_AUDIENCE)
        buyer = _buyer(decoded["payload"], now)
        if self._signed is not None:
            self._signed.learn(token)
        return buyer


def _key(settings: Settings) -> tuple[Any, str]:
    if settings.jwt_secret is not None:
        return settings.jwt_secret.reveal().encode(errors="surrogateescape"), "HS256"
    if settings.jwt_public_key is None:
        raise SettingsError(["Set SECKILL_JWT_SECRET or SECKILL_JWT_PUBLIC_KEY: buyers' tokens are checked with it."])
    try:
        key = load_pem_public_key(settings.jwt_public_key.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SettingsError(
            ["SECKILL_JWT_PUBLIC_KEY cannot be read: give an intact public key in PEM form."]
        ) from error
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= RSA_BITS_MIN:
        return key, "RS256"
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key, "ES256"
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key, "EdDSA"
    kinds = f"an RSA key of at least {RSA_BITS_MIN} bits, a P-256 key or an Ed25519 key"
    raise SettingsError([f"SECKILL_JWT_PUBLIC_KEY must be {kinds}."])


def _buyer(claims: dict[str, Any], now: float) -> Buyer:
    expires_s = _time(claims, "exp")
    if expires_s > now + LIFETIME_S_MAX + LEEWAY_S:
        raise Unauthenticated(f"The token is good for more than {LIFETIME_S_MAX // 86_400} days.")
    for name in ("nbf", "iat"):
        if name in claims and _time(claims, name) > now + LEEWAY_S:
            raise Unauthenticated("The token is not valid yet.")
    user = claims["sub"]
    if not isinstance(user, str) or not is_user(user):
        raise Unauthenticated("The token's sub is not a user id.")
    return Buyer(user, expires_s)


def _time(claims: dict[str, Any], name: str) -> float:
    value = claims[name]
    # Within what a float holds exactly; false for nan.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 53:
        raise Unauthenticated(f"The token's {name} is not a time.")
    return float(value)


def mint_buyer_token(
    secret: Secret, user: str, lifetime_s: float, issuer: str | None, audience: str | None, now: float
) -> str:
    """For trying things out: in a shop, the service that logs buyers in makes their tokens. Raises ValueError."""
    if not is_user(user):
        raise ValueError("A user id has 1 to 128 letters, digits and . _ @ | : + ~ = / -, and no leading zeros.")
    if not 0 < lifetime_s <= LIFETIME_S_MAX:
        raise ValueError(f"A token lives for at most {LIFETIME_S_MAX // 86_400} days.")
    claims: dict[str, Any] = {"sub": user, "iat": int(now), "exp": int(now + lifetime_s)}
    claims |= {"iss": issuer} if issuer is not None else {}
    claims |= {"aud": audience} if audience is not None else {}
    return jwt.encode(claims, secret.reveal().encode(errors="surrogateescape"), "HS256")


class AdminKey:
    """Compares in constant time, and hashes first so that not even the length shows."""

    def __init__(self, key: Secret | None) -> None:
        self._digest = None if key is None else _digest(key.reveal())

    def matches(self, candidate: str) -> bool:
        """Never true when no key is set."""
        return self._digest is not None and hmac.compare_digest(self._digest, _digest(candidate))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def bearer(header: bytes | None) -> str | None:
    """The one token of an `Authorization: Bearer` header, or None."""
    scheme, _, rest = (header or b"").partition(b" ")
    token = rest.strip(b" ")
    text = token.rstrip(b"=")
    # What is left after all that may be there: a regular expression takes five times as long.
    if scheme.lower() != b"bearer" or not text or text.translate(None, _BEARER_CHARACTERS):
        return None
    return token.decode("ascii")
