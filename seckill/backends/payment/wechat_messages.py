"""Signing and encryption of WeChat Pay's API v3, in both directions."""

import base64
import binascii
import re
import secrets
from collections.abc import Mapping, Sequence

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from seckill.backends.payment.rsa_signature import fits, sign
from seckill.errors import NotGenuine, NotUnderstood
from seckill.settings import Secret
from seckill.settings.rsa_keys import public_key

# A message that an attacker has intercepted and sends again is refused after this time. Until then it is recognised as
# a repeat.
AGE_S_MAX = 300
SCHEME = "WECHATPAY2-SHA256-RSA2048"
_ALGORITHM = "AEAD_AES_256_GCM"


class _Resource(msgspec.Struct):
    algorithm: str
    ciphertext: str
    nonce: str
    associated_data: str = ""


class _Sealed(msgspec.Struct):
    """The encrypted content of a notice, and what it is about."""

    event_type: str
    resource: _Resource


def authorization(
    key: RSAPrivateKey, merchant: str, serial: str, method: str, target: str, body: bytes, now_s: float
) -> str:
    """`target`: path and query."""
    moment, nonce = str(int(now_s)), secrets.token_hex(16)
    signature = sign(key, f"{method}\n{target}\n{moment}\n{nonce}\n".encode() + body + b"\n")
    return (
        f'{SCHEME} mchid="{merchant}",nonce_str="{nonce}",signature="{signature}",timestamp="{moment}",'
        f'serial_no="{serial}"'
    )


class Signatures:
    """Checks WeChat Pay's signatures, which name the key that made them."""

    def __init__(self, named_keys: Sequence[str]) -> None:
        named = (item.partition("=") for item in named_keys)
        self._keys = {name: public_key(pem) for name, _, pem in named}

    @property
    def preferred(self) -> str | None:
        """The name of the public key with which WeChat Pay should sign. None: it signs with a platform certificate,
        which need not be requested."""
        return next((name for name in self._keys if name.startswith("PUB_KEY_ID_")), None)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def verify(self, headers: Mapping[str, str], body: bytes, now_s: float) -> None:
        """Raises NotGenuine."""
        key = self._keys.get(headers.get("wechatpay-serial", ""))
        if key is None:
            raise NotGenuine("It is not signed with a key of WeChat Pay's that is known here.")
        moment, nonce = headers.get("wechatpay-timestamp", ""), headers.get("wechatpay-nonce", "")
        if not re.fullmatch(r"[0-9]{1,12}", moment, re.ASCII):
            raise NotGenuine("The time of the signature is missing.")
        message = f"{moment}\n{nonce}\n".encode() + body + b"\n"
        if not fits(key, message, headers.get("wechatpay-signature", "")):
            raise NotGenuine("The signature does not fit the message and WeChat Pay's key.")
        if abs(now_s - int(moment)) > AGE_S_MAX:
            raise NotGenuine(f"The signature is more than {AGE_S_MAX} s away from our clock.")


_envelope = msgspec.json.Decoder(_Sealed)


def opened(body: bytes, api_keys: Sequence[Secret]) -> tuple[str, bytes]:
    """Returns what a genuine notice is about, and its content. Raises NotUnderstood."""
    try:
        envelope = _envelope.decode(body)
        if envelope.resource.algorithm != _ALGORITHM:
            raise NotUnderstood(f"the notice is encrypted with {envelope.resource.algorithm}, not {_ALGORITHM}")
        sealed = base64.b64decode(envelope.resource.ciphertext, validate=True)
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError, RecursionError) as error:
        raise NotUnderstood("is not a notice of WeChat Pay's") from error
    nonce, also = envelope.resource.nonce.encode(), envelope.resource.associated_data.encode()
    for key in api_keys:
        try:
            return envelope.event_type, AESGCM(key.reveal().encode()).decrypt(nonce, sealed, also)
        except (InvalidTag, ValueError):
            continue
    raise NotUnderstood("the notice cannot be opened with any of SECKILL_WECHAT_API_KEYS")
