"""Reads RSA keys from their text."""

from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

BITS_MIN = 2048
_FAILURES = (ValueError, TypeError, UnsupportedAlgorithm)
_WEAK = f"must be an RSA key with at least {BITS_MIN} bits"


@lru_cache(maxsize=8)
def private_key(pem: str) -> RSAPrivateKey:
    """Raises ValueError with the end of a sentence, like a kind of setting."""
    try:
        key = load_pem_private_key(pem.encode(), None)
    except _FAILURES as error:
        raise ValueError("must be a private key in PEM form without a passphrase") from error
    if not isinstance(key, RSAPrivateKey) or key.key_size < BITS_MIN:
        raise ValueError(_WEAK)
    return key


@lru_cache(maxsize=16)
def public_key(pem: str) -> RSAPublicKey:
    """Reads a public key, even from a certificate. Raises ValueError."""
    try:
        in_certificate = "CERTIFICATE" in pem
        key = _certificate(pem).public_key() if in_certificate else load_pem_public_key(pem.encode())
    except _FAILURES as error:
        raise ValueError("must be a public key or a certificate in PEM form") from error
    if not isinstance(key, RSAPublicKey) or key.key_size < BITS_MIN:
        raise ValueError(_WEAK)
    return key


def serial_of(pem: str) -> str:
    """Returns a certificate's serial number, as it is written in headers."""
    return f"{_certificate(pem).serial_number:X}"


def _certificate(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())
