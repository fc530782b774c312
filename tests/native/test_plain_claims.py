"""The kernel reads plain claims as the same code in Python does, whatever bytes come."""

import base64
import json
import random
from types import ModuleType
from typing import Any

import pytest

from seckill.web.claims import plain_claim
from seckill.web.claims.plain_request import NOTABLE, ORIGIN, UNUSUAL, PlainReader
from tests.native.plain_claims import PlainClaimReader

USERS = ("ann", "buyer-7", "+86138", "a@b.example", "张三", "a b", "", "x" * 128, "x" * 129, 'a"b', 7, None)
SAID: tuple[dict[str, Any], ...] = (
    *(
        {},
        {"iat": 5},
        {"nbf": 7},
        {"jti": "1"},
        {"jti": 1},
        {"aud": "us"},
        {"aud": "them"},
        {"aud": ["us"]},
        {"iss": "me"},
    ),
    *(
        {"iss": "you"},
        {"groups": ["gold", 3]},
        {"groups": []},
        {"groups": [[]]},
        {"groups": [None]},
        {"address": {"city": "x"}},
    ),
    *({"a": True, "b": False, "c": None}, {"n": -1}, {"n": 1.5}, {"n": 10**14}, {"n": 10**15}, {"n": 10**16}, {"é": 1}),
    *(
        {"exp": 1.5},
        {"exp": "1"},
        {"exp": 10**15 - 1},
        {"exp": 10**15},
        {"exp": -1},
        {"iat": None},
        {"iat": True},
        {"a": "\\"},
    ),
)
BODIES = (b"", b"{}", b'{"quantity":1}', b'{"quantity": 10}', b'{"quantity":11}', b'{"quantity":0}', b'{"quantity":01}')
MORE_BODIES = (b"{ }", b'{"quantity":1 }', b'{"quantity":  1}', b'{"quantity":}', b'{"quantity":1', b'{"quantity":1}}')
LINES = (
    *(b"Idempotency-Key: 7", b"X-Request-Id: abc", b"Origin: https://shop.example", b"Seckill-Pass: p", b"X-Y: 1"),
    *(b"Connection: keep-alive", b"Prefer: wait=1", b"Content-Type: application/json"),
)
WAYS = [(issuer, audience, origin) for issuer in (None, "me") for audience in (None, "us") for origin in (False, True)]


def payload_of(chance: random.Random) -> bytes:
    said: dict[str, Any] = {"sub": chance.choice(USERS[:3] * 4 + USERS), "exp": chance.randrange(10**10)}
    said |= chance.choice([{}, {"aud": "us"}, {"iss": "me"}, {"aud": "us", "iss": "me"}])
    for _ in range(chance.choice([0, 0, 1, 2, 3])):
        said |= chance.choice(SAID)
    spaced = (", ", ": ") if chance.random() < 0.1 else (",", ":")
    text = json.dumps(said, separators=spaced, ensure_ascii=chance.random() < 0.8)
    if chance.random() < 0.1:
        text = text.replace("{", '{"sub":"eve",', 1)
    changed = bytearray(text.encode())
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        at = chance.randrange(len(changed))
        if chance.random() < 0.5:
            changed[at] = chance.choice([*range(256), *b'{}[]",:0123456789']) if chance.random() < 0.5 else 48
        else:
            del changed[at]
        changed = changed or bytearray(b"{")
    return bytes(changed)


def token_with(payload: bytes) -> bytes:
    """Returns a token. Nothing here looks at the signature."""
    return b"eyJhbGciOiJIUzI1NiJ9.%b.%b" % (base64.urlsafe_b64encode(payload).rstrip(b"="), b"A" * 43)


def claim_of(chance: random.Random) -> bytes:
    body = chance.choice(BODIES * 4 + MORE_BODIES)
    token = token_with(payload_of(chance))
    scheme = chance.choice([b"Bearer "] * 12 + [b"bearer ", b"Bearer  ", b"Bearer", b""])
    lines = [b"Host: a", b"Content-Length: %d" % len(body), b"Authorization: " + scheme + token]
    lines += chance.sample(LINES, chance.choice([0, 0, 1, 2]))
    chance.shuffle(lines)
    what = chance.choice([b"orders"] * 12 + [b"entries"])
    return b"POST /v1/sales/0A/%b HTTP/1.1\r\n%b\r\n\r\n%b" % (what, b"\r\n".join(lines), body)


@pytest.mark.parametrize(("issuer", "audience", "origin"), WAYS)
def test_claims(kernel: ModuleType, issuer: str | None, audience: str | None, origin: bool) -> None:
    notable = (*NOTABLE, ORIGIN) if origin else NOTABLE
    read = kernel.PlainClaimReader(kernel.PlainReader(notable, UNUSUAL), issuer, audience).read
    twin = PlainClaimReader(PlainReader(notable, UNUSUAL), issuer, audience)
    chance = random.Random(21)
    plain = 0
    for _ in range(4_000):
        data = claim_of(chance)
        expected = twin.read(data)
        assert read(data) == expected, data
        plain += expected is not None
    assert plain > 30, "both kinds were tried"


def test_every_byte_of_what_a_token_says(kernel: ModuleType) -> None:
    read = kernel.PlainClaimReader(kernel.PlainReader(NOTABLE, UNUSUAL), None, None).read
    twin = PlainClaimReader(PlainReader(NOTABLE, UNUSUAL), None, None)
    whole = b'{"sub":"ann","exp":90,"g":["a",1],"h":true}'
    tried = [whole[:at] + bytes([byte]) + whole[at + 1 :] for at in range(len(whole)) for byte in range(128)]
    tried += [whole[:size] for size in range(len(whole))] + [whole + b"}", b" " + whole, b"{}", b'{"a":1}', b"[]", b"1"]
    for payload in (whole, *tried):
        lines = b"Host: a\r\nAuthorization: Bearer " + token_with(payload)
        data = b"POST /v1/sales/0A/orders HTTP/1.1\r\n%b\r\n\r\n" % lines
        assert read(data) == twin.read(data), payload


def test_the_kernels_reader_refuses_wrong_arguments(kernel: ModuleType) -> None:
    reader = kernel.PlainReader(NOTABLE, UNUSUAL)
    with pytest.raises(TypeError):
        kernel.PlainClaimReader(None, None, None)
    with pytest.raises(TypeError):
        kernel.PlainClaimReader(reader, 7, None)
    with pytest.raises(ValueError, match="must be among the notable names"):
        kernel.PlainClaimReader(kernel.PlainReader((b"host", b"content-length", b"connection"), ()), None, None)
    for wrong in ("text", None, bytearray(b"x")):
        with pytest.raises(TypeError):
            kernel.PlainClaimReader(reader, None, None).read(wrong)


@pytest.mark.parametrize("named", ["商店", "\udcff"])
def test_whom_no_plain_token_can_name(kernel: ModuleType, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment may have bytes in it that are no text."""
    monkeypatch.setattr(plain_claim, "KERNEL", kernel)
    monkeypatch.setattr(plain_claim, "PLAIN", kernel.PlainReader(NOTABLE, UNUSUAL))
    for issuer, audience in ((named, None), (None, named)):
        read = plain_claim.plain_claim_reader(issuer, audience, with_origin=False)
        lines = b"Host: a\r\nAuthorization: Bearer " + token_with(b'{"sub":"ann","exp":90}')
        assert read(b"POST /v1/sales/0A/orders HTTP/1.1\r\n%b\r\n\r\n" % lines) is None
