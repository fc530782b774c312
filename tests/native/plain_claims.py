"""The kernel's reader of plain claims, in Python. It takes twenty times as long: for comparing only."""

import re
from collections.abc import Mapping

import msgspec

from seckill.web.buyers.token_shortcut import open_token
from seckill.web.claims.plain_claim import PlainClaim
from seckill.web.claims.plain_request import ORIGIN, PlainReader
from seckill.web.requests.request_ids import HEADER as REQUEST_ID

_BEARER = b"Bearer "
_SAID = frozenset((b"authorization", b"idempotency-key", REQUEST_ID, ORIGIN, b"host", b"content-length", b"connection"))
_QUANTITIES: Mapping[bytes, int] = {b"": 1, b"{}": 1} | {
    form % quantity: quantity for form in (b'{"quantity":%d}', b'{"quantity": %d}') for quantity in range(1, 11)
}
# An object of strings without escapes, whole numbers, words and lists, with nothing between them.
_STRING = r'"[ !#-\[\]-~]*"'
_NUMBER = r"(?:0|[1-9][0-9]{0,14})"
_LIST = rf"\[(?:(?:{_STRING}|{_NUMBER})(?:,(?:{_STRING}|{_NUMBER}))*)?\]"
_MEMBER = rf"{_STRING}:(?:{_STRING}|{_NUMBER}|true|false|null|{_LIST})"
_FLAT = re.compile(rf"\{{{_MEMBER}(?:,{_MEMBER})*\}}")
_NAMES = re.compile(rf"({_STRING}):(?:{_STRING}|{_NUMBER}|true|false|null|{_LIST})")
_USER = re.compile(r"[A-Za-z0-9._@|:+~=/-]{1,128}")


class _Claims(msgspec.Struct, gc=False):
    sub: str
    exp: int
    iat: int = 0
    nbf: int = 0
    jti: str = ""
    aud: str | msgspec.UnsetType = msgspec.UNSET
    iss: str | msgspec.UnsetType = msgspec.UNSET


_claims = msgspec.json.Decoder(_Claims)
_LOOKED_AT = frozenset(f'"{name}"' for name in _Claims.__struct_fields__)


class PlainClaimReader:
    def __init__(self, requests: PlainReader, issuer: str | None, audience: str | None) -> None:
        self._requests = requests
        self._issuer = msgspec.UNSET if issuer is None else issuer
        self._audience = msgspec.UNSET if audience is None else audience

    def read(self, data: bytes) -> PlainClaim | None:
        request = self._requests.read(data)
        if request is None:
            return None
        sale_id, what, headers, body = request
        authorization = headers.get(b"authorization", b"")
        quantity = _QUANTITIES.get(body)
        if (
            what != b"orders"
            or quantity is None
            or not authorization.startswith(_BEARER)
            or not headers.keys() <= _SAID
        ):
            return None
        opened = open_token(authorization[len(_BEARER) :])
        said = None if opened is None else self._read(opened[3])
        if opened is None or said is None:
            return None
        header, signed, signature, text = opened
        return PlainClaim(
            *(sale_id.decode(), quantity, header, signed, signature, said.sub, said.exp, said.iat, said.nbf, text),
            *map(headers.get, (b"idempotency-key", REQUEST_ID, ORIGIN)),
        )

    def _read(self, text: str) -> _Claims | None:
        if not _FLAT.fullmatch(text):
            return None
        names = [name for name in _NAMES.findall(text) if name in _LOOKED_AT]
        if len(set(names)) < len(names):
            return None
        try:
            said = _claims.decode(text)
        except msgspec.MsgspecError:
            return None
        meant_for_us = said.aud == self._audience and self._issuer in (msgspec.UNSET, said.iss)
        return said if meant_for_us and _USER.fullmatch(said.sub) else None
