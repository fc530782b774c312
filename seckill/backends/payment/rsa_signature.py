"""SHA256 with RSA (PKCS #1 v1.5), in base64: what both Alipay and WeChat Pay sign with."""

import base64
import binascii

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256


def sign(key: RSAPrivateKey, message: bytes) -> str:
    return base64.b64encode(key.sign(message, PKCS1v15(), SHA256())).decode()


def fits(key: RSAPublicKey, message: bytes, signature: str) -> bool:
    try:
        given = base64.b64decode(signature, validate=True)
        key.verify(given, message, PKCS1v15(), SHA256())
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return base64.b64encode(given).decode() == signature  # some texts stand for the same bytes: only one was sent
