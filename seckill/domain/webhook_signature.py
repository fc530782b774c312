"""Signatures of webhooks, as the Standard Webhooks convention has them: made by the keeper, checked by receivers. Pure.

`webhook-signature: v1,<base64>`, the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`. Several may stand there
with spaces between them: while a secret is being changed, both sign.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"
VERSION = "v1"
SECRET_BYTES = 32
# What the convention allows a secret to have.
SECRET_BYTES_MIN = 24
SECRET_BYTES_MAX = 64


def written_secret(key: bytes) -> str:
    return PREFIX + base64.b64encode(key).decode()


def key_of(secret: str) -> bytes:
    """Raises ValueError."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a webhook's secret is whsec_ and base64") from None
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(f"a webhook's secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")
    return key


def sign(secrets: Sequence[str], message_id: str, timestamp_s: int, body: bytes) -> str:
    message = f"{message_id}.{timestamp_s}.".encode() + body
    return " ".join(f"{VERSION},{_digest(key_of(secret), message)}" for secret in secrets)


def fits(secrets: Sequence[str], message_id: str, timestamp: str, body: bytes, signatures: str) -> bool:
    """True if any of the signatures is that of any of the secrets."""
    message = f"{message_id}.{timestamp}.".encode(errors="surrogateescape") + body
    expected = [_digest(key_of(secret), message).encode() for secret in secrets]
    given = [text.encode(errors="surrogateescape") for text in _of_this_version(signatures)]
    # Compares all of them, so that the time reveals nothing.
    matches = [hmac.compare_digest(each, other) for each in expected for other in given]
    return any(matches)


def _of_this_version(signatures: str) -> list[str]:
    found = []
    for signature in signatures.split(" "):
        version, comma, digest = signature.partition(",")
        if comma and version == VERSION:
            found.append(digest)
    return found


def _digest(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()
