"""The short way to verify a buyer's token, for tokens that are signed with a secret of ours (HS256).

The library takes about 70 µs for a token, as long as all the rest of a claim; this takes about 10. It only ever
accepts: any token that is not plainly right goes to the library, which decides and words the refusal. So its only
possible mistake is to accept a token that the library would refuse, and a test lets both judge the same tokens.
"""

import hmac
import string
from binascii import a2b_base64
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from seckill.domain.keyed_hash import KeyedHash
from seckill.native.kernel_choice import KERNEL

# A signer writes the same header every time. Remembering more headers than this is not worthwhile.
HEADERS_MAX = 16

# The decoder skips all other characters.
_BASE64URL = (string.ascii_letters + string.digits + "-_").encode()
# The last characters that a text may have, by its length modulo 4: any other has bits that belong to no byte.
_ENDS = (_BASE64URL, _BASE64URL, b"AQgw", b"AEIMQUYcgkosw048")
_FROM_URL = bytes.maketrans(b"-_", b"+/")
_DIGEST_BYTES = 32  # of SHA-256
# No real time is this long ago; the library refuses such a token.
_Time = Annotated[float, Meta(gt=-(1 << 53))]


class Claims(msgspec.Struct, gc=False):
    """The claims that we look at, with the types that they must have."""

    sub: str
    exp: _Time
    iat: _Time = 0.0
    nbf: _Time = 0.0
    jti: str = ""
    aud: Any = None
    iss: Any = None


_claims = msgspec.json.Decoder(Claims)


Opened = tuple[bytes, bytes, bytes, str]


def open_token(token: bytes) -> Opened | None:
    """Returns the header as it is written, the signed text, the signature, and all claims. None: the token has an
    unusual form. `native/kernel.c` does the same where it is compiled."""
    signed, _, signature = token.rpartition(b".")
    header, _, payload = signed.partition(b".")
    try:
        # Decoded as text, so that all of it must be UTF-8 and not only what we look at.
        text = _decoded(payload).decode()
        digest = _decoded(signature)
    except ValueError:
        return None
    return (header, signed, digest, text) if text and len(digest) == _DIGEST_BYTES else None


def _decoded(text: bytes) -> bytes:
    """Decodes strictly, because a decoder would forgive other spellings. Raises ValueError."""
    if text.translate(None, _BASE64URL) or text[-1:] not in _ENDS[len(text) % 4]:
        raise ValueError
    return a2b_base64(text.translate(_FROM_URL) + b"=" * (-len(text) % 4))


_open: Callable[[bytes], Opened | None] = open_token if KERNEL is None else KERNEL.open_token


class SignedTokens:
    def __init__(self, issuer: str | None, audience: str | None) -> None:
        self._issuer = issuer
        self._audience = audience
        # Headers as they are written in tokens that the library has accepted, with the secrets of those tokens. There
        # may be two: while a secret is being replaced, a signer that does not name its keys writes the same header with
        # both.
        self._headers: dict[bytes, tuple[KeyedHash, ...]] = {}

    def learn(self, token: str, secret: KeyedHash) -> None:
        """Called when the library has accepted this token with this secret, so its header is a good one."""
        header = token.partition(".")[0].encode()
        known = self._headers.get(header, ())
        if secret not in known and (known or len(self._headers) < HEADERS_MAX):
            self._headers[header] = (*known, secret)

    def is_ours(self, header: bytes, signed: bytes, signature: bytes) -> bool:
        for secret in self._headers.get(header, ()):  # noqa: SIM110 (`any` would make a generator for each claim)
            if hmac.compare_digest(secret.digest(signed), signature):
                return True
        return False

    def read(self, token: bytes) -> tuple[Claims, str] | None:
        """Returns the claims, and the whole payload as JSON, of a token that is signed with our secret and meant for
        us. None: ask the library. It does not check times and `sub`."""
        opened = _open(token)
        if opened is None:
            return None
        header, signed, signature, text = opened
        if not self.is_ours(header, signed, signature):
            return None
        try:
            claims = _claims.decode(text)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            return None
        meant_for_us = claims.aud == self._audience and (self._issuer is None or claims.iss == self._issuer)
        return (claims, text) if meant_for_us else None
