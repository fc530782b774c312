"""Buyers' tokens, good and forged, for tests."""

import base64
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from seckill.settings import Secret, Settings
from seckill.web.buyers.buyer_tokens import Buyers, Unauthenticated

NOW = 1_800_000_000.0
SECRET = "tK7rX2vQ9mB4nL6pW8sD1fG3hJ5kZ0cYuE"
CLAIMS: dict[str, Any] = {"sub": "ann", "exp": NOW + 600}
DAY_S = 86_400

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
P256_KEY = ec.generate_private_key(ec.SECP256R1())
ED25519_KEY = ed25519.Ed25519PrivateKey.generate()
KEYS: dict[str, PrivateKey] = {"RS256": RSA_KEY, "ES256": P256_KEY, "EdDSA": ED25519_KEY}


def pem(key: Any) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    text: bytes = key.public_key().public_bytes(serialization.Encoding.PEM, form)
    return text.decode()


def shared(**more: str) -> Buyers:
    """One that has seen good tokens before, so that everything is tried on the short way first."""
    buyers = Buyers(Settings(jwt_secret=Secret(SECRET), **more))  # type: ignore[arg-type]
    [key] = buyers.keys.of(None)
    assert key.hash is not None
    for header in ({"alg": "HS256", "typ": "JWT"}, {"alg": "HS256"}):
        buyers._signed.learn(part(header) + ".", key.hash)
    buyers._signed.learn(signed(), key.hash)
    return buyers


def signed(claims: dict[str, Any] | None = None, headers: dict[str, Any] | None = None, **more: Any) -> str:
    chosen = CLAIMS if claims is None else claims
    return jwt.encode({**chosen, **more}, SECRET, "HS256", headers=headers)


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def refused(buyers: Buyers, token: str, now: float = NOW) -> str:
    with pytest.raises(Unauthenticated) as caught:
        buyers.verify(token, now)
    reason = caught.value.reason
    assert len(token) < 8 or token not in reason
    assert '"' not in reason
    assert reason.isascii()
    assert reason.isprintable()
    return reason


def by_hand(header: dict[str, Any], claims: dict[str, Any], key: bytes = SECRET.encode()) -> str:
    """A correctly signed token that PyJWT would refuse to make."""
    head = f"{part({'alg': 'HS256', **header})}.{part(claims)}"
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(head.encode(), key)
    return f"{head}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def resigned(text: str) -> str:
    algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = base64.urlsafe_b64encode(algorithm.sign(text.encode(), SECRET.encode()))
    return f"{text}.{signature.rstrip(b'=').decode()}"
