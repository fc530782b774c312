import hashlib
import hmac
import secrets

_COST = {"n": 2**14, "r": 8, "p": 1}


def hashed(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"{salt.hex()}${hashlib.scrypt(password.encode(), salt=salt, **_COST).hex()}"


def fits(password: str, kept: str) -> bool:
    salt, _, expected = kept.partition("$")
    found = hashlib.scrypt(password.encode(), salt=bytes.fromhex(salt), **_COST).hex()
    return hmac.compare_digest(found, expected)
