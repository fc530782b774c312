"""Signatures of messages between the shop's payment side and us, in both directions.

`Seckill-Signature: t=<unix seconds>,v1=<hex>`, where v1 is the HMAC-SHA256 of `<t>.<body>`. There may be several v1:
while a secret is being changed, the sender signs with both.
"""

import hashlib
import hmac
import re

from seckill.errors import NotGenuine
from seckill.settings.redaction import Secret

HEADER = "Seckill-Signature"
# A message that an attacker has intercepted and sends again is refused after this time. Until then it is recognised as
# a repeat.
AGE_S_MAX = 300
_FORM = re.compile(r"t=([0-9]{1,12})((?:,v1=[0-9a-f]{64}){1,4})")


def signature(secret: Secret, body: bytes, now_s: int, old: Secret | None = None) -> str:
    """Signs with `old`, too, so that a receiver who knows either secret accepts the message."""
    return f"t={now_s}" + "".join(f",v1={_digest(each, body, str(now_s))}" for each in (secret, old) if each)


def verify(secret: Secret, header: str | None, body: bytes, now_s: float, old: Secret | None = None) -> None:
    """Raises NotGenuine."""
    if header is None:
        raise NotGenuine(f"The {HEADER} header is missing.")
    form = _FORM.fullmatch(header)
    if form is None:
        raise NotGenuine(f"The {HEADER} header must be t=<unix seconds>,v1=<64 hexadecimal digits>.")
    expected = [_digest(each, body, form[1]) for each in (secret, old) if each]
    # Compares with all of them, so that the time reveals nothing.
    matches = [hmac.compare_digest(ours, given) for given in form[2].split(",v1=")[1:] for ours in expected]
    if not any(matches):
        raise NotGenuine("The signature does not fit the body and the shared secret.")
    if abs(now_s - int(form[1])) > AGE_S_MAX:
        raise NotGenuine(f"The signature is more than {AGE_S_MAX} s away from our clock: sign again.")


def _digest(secret: Secret, body: bytes, timestamp: str) -> str:
    message = timestamp.encode() + b"." + body
    return hmac.new(secret.reveal().encode(errors="surrogateescape"), message, hashlib.sha256).hexdigest()
