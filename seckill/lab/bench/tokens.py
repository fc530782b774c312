"""Tokens for very many buyers: what the library would make, without its 30 µs for each."""

import base64
import hmac
import time

from seckill.settings import Secret
from seckill.web.auth import mint_buyer_token

LIFETIME_S = 6 * 3600


class Tokens:
    def __init__(self, secret: Secret) -> None:
        self._key = secret.reveal().encode()
        now = time.time()
        self._times = f'"iat":{int(now)},"exp":{int(now + LIFETIME_S)}'
        made = mint_buyer_token(secret, "someone", LIFETIME_S, None, None, now)
        self._header = made.split(".")[0].encode()

    def of(self, user: str) -> str:
        signed = self._header + b"." + _encode(f'{{"sub":"{user}",{self._times}}}'.encode())
        return (signed + b"." + _encode(hmac.digest(self._key, signed, "sha256"))).decode()


def _encode(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")
