"""Makes tokens for very many buyers: the same as the library's, without its 30 µs for each."""

import base64
import hmac
import time
from collections.abc import Mapping

import msgspec

from seckill.settings import Secret
from seckill.web.buyers.buyer_tokens import mint_buyer_token

LIFETIME_S = 6 * 3600


class Tokens:
    """`claims`: further claims that all tokens have."""

    def __init__(self, secret: Secret, claims: Mapping[str, object] | None = None) -> None:
        self._key = secret.reveal().encode()
        now = time.time()
        shared = {**(claims or {}), "iat": int(now), "exp": int(now + LIFETIME_S)}
        self._shared = msgspec.json.encode(shared).decode().removeprefix("{")
        made = mint_buyer_token(secret, "someone", LIFETIME_S, None, None, now)
        self._header = made.split(".")[0].encode()

    def of(self, user: str) -> str:
        signed = self._header + b"." + _encode(f'{{"sub":"{user}",{self._shared}'.encode())
        return (signed + b"." + _encode(hmac.digest(self._key, signed, "sha256"))).decode()


def _encode(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")
