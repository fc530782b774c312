"""The short way to believe a token believes nothing that the library would not."""

import base64
import json
import string
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.keyed_hash import KeyedHash
from seckill.settings import Secret, Settings
from seckill.web.buyers.buyer_tokens import Buyer, Buyers, Unauthenticated
from seckill.web.buyers.token_shortcut import HEADERS_MAX, SignedTokens
from tests.web.buyers.tokens import CLAIMS, NOW, SECRET, by_hand, part, resigned, shared, signed

LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
OTHER_SECRET = SECRET[::-1]

times = st.sampled_from([NOW - 31, NOW - 29, NOW + 29, NOW + 31, NOW + 40 * 86_400, "1", None, True, -0.5])
texts: st.SearchStrategy[Any] = st.sampled_from(
    ["shop", "seckill", "", "Shop", ["seckill"], ["shop", "seckill"], None, 7, [], {}, False]
)
claims = st.fixed_dictionaries(
    {},
    optional={
        "exp": times,
        "nbf": times,
        "iat": times,
        "sub": st.sampled_from(["ann", "07", "张三", "e\u0301", "７", " 7", "", None, 7, "a" * 200]),
        "iss": texts,
        "aud": texts,
        "jti": texts,
        "more": texts,
    },
)
headers = st.sampled_from([{"typ": "JWT"}, {}, {"crit": ["b64"]}, {"alg": "none"}, {"alg": "HS512"}, {"kid": "1"}])
secrets = st.sampled_from([SECRET.encode(), OTHER_SECRET.encode()])
spellings = st.sampled_from(["{}", "{}=", "{}\n", ".{}", "{}.x", "{}\ud800", "{}é", "x{}"])


def judged(buyers: Buyers, token: str) -> Buyer | str:
    try:
        return buyers.verify(token, NOW)
    except Unauthenticated as error:
        return error.reason


class NoShortWay(SignedTokens):
    def read(self, token: bytes) -> None:
        return None


def without_the_short_way(**more: str) -> Buyers:
    buyers = Buyers(Settings(jwt_secret=Secret(SECRET), **more))  # type: ignore[arg-type]
    buyers._signed = NoShortWay(None, None)
    return buyers


@pytest.mark.parametrize("more", [{}, {"jwt_issuer": "shop"}, {"jwt_audience": "seckill"}])
@given(claims, headers, secrets, spellings)
def test_both_ways_judge_alike(
    more: dict[str, str], chosen: dict[str, Any], header: dict[str, Any], secret: bytes, spelling: str
) -> None:
    token = spelling.format(by_hand(header, {**CLAIMS, **chosen}, secret))
    assert judged(shared(**more), token) == judged(without_the_short_way(**more), token)


@pytest.mark.parametrize("text", ["[]", "7", "null", "{", '{"sub":"ann","sub":"bob","exp":1800000600}', "{}", "NaN"])
def test_any_signed_json(text: str) -> None:
    payload = base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    token = resigned(f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{payload}")
    assert judged(shared(), token) == judged(without_the_short_way(), token)


def test_a_payload_spelt_in_another_way_is_not_believed() -> None:
    """Signed, but not base64url: the decoder would pass over the characters that are not."""
    payload = base64.b64encode(json.dumps({**CLAIMS, "more": "??>>??"}).encode()).rstrip(b"=").decode()
    assert set(payload) & set("+/")
    for spelt in (payload, payload[:4] + "*" + payload[4:], payload[:4] + "." + payload[4:]):
        token = resigned(f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{spelt}")
        assert isinstance(judged(shared(), token), str)


@pytest.mark.parametrize("more", [b"", b" ", b"  "])
def test_bits_that_belong_to_no_byte_and_bytes_that_are_no_text_are_not_believed(more: bytes) -> None:
    header, claims = part({"alg": "HS256", "typ": "JWT"}), json.dumps(CLAIMS).encode() + more
    payload = base64.urlsafe_b64encode(claims).rstrip(b"=").decode()
    last = LETTERS[LETTERS.index(payload[-1]) + 1]
    not_text = base64.urlsafe_b64encode(claims.replace(b"{", b'{"more":"\xff",', 1)).rstrip(b"=").decode()
    spelt = [payload, not_text] + ([payload[:-1] + last] if len(payload) % 4 else [])
    buyers = shared()
    tokens = [resigned(f"{header}.{each}") for each in spelt]
    found = [judged(buyers, token) for token in tokens]
    assert found == [judged(without_the_short_way(), token) for token in tokens]
    assert [isinstance(each, Buyer) for each in found] == [True] + [False] * (len(spelt) - 1)


def test_the_second_token_of_a_kind_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    buyers = Buyers(Settings(jwt_secret=Secret(SECRET)))
    assert buyers.verify(signed(), NOW).user == "ann"
    monkeypatch.delattr(jwt, "decode_complete")
    assert buyers.verify(signed(sub="bob"), NOW).user == "bob"


def test_a_limited_number_of_header_kinds_is_remembered() -> None:
    tokens = SignedTokens(None, None)
    secret = KeyedHash(SECRET.encode())
    for number in range(2 * HEADERS_MAX):
        tokens.learn(f"{number}.b.c", secret)
    assert len(tokens._headers) == HEADERS_MAX
