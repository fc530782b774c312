"""SHA256 with RSA (PKCS #1 v1.5), in base64: the signatures of both Alipay and WeChat Pay."""

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
    # different base64 texts may stand for the same bytes: accept only the canonical one
    return base64.b64encode(given).decode() == signature
