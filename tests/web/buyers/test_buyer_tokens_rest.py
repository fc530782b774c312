"""Malformed tokens, the tokens that are remembered, tokens of our own, the admin key, the header."""

import base64
import math
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.buyer_id import buyer_id
from seckill.settings import Secret, Settings
from seckill.web.buyers import buyer_tokens
from seckill.web.buyers.buyer_tokens import Buyer, Buyers, Unauthenticated, bearer, mint_buyer_token
from seckill.web.operators.admin_key import AdminKey
from tests.web.buyers.tokens import CLAIMS, DAY_S, ED25519_KEY, NOW, SECRET, by_hand, pem, refused, shared, signed


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "e30.e30.",
        "e30.e30.e30",
        "é.é.é",
        "\ud800.a.b",
        "a\x00.b.c",
        "Bearer x",
    ],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    refused(shared(), token)


def test_a_long_token_is_refused_unread() -> None:
    assert "too long" in refused(shared(), signed(pad="x" * 4096))
    assert shared().verify(signed(pad="x" * 2000), NOW).user == "ann"


@given(
    st.text(max_size=200)
    | st.lists(st.binary(max_size=60), min_size=3, max_size=3).map(
        lambda parts: ".".join(base64.urlsafe_b64encode(item).decode().rstrip("=") for item in parts)
    )
)
def test_any_text_is_refused_and_raises_nothing_else(token: str) -> None:
    refused(shared(), token)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
claim_names = st.sampled_from(["exp", "sub", "nbf", "iat", "iss", "aud", "jti"])


@given(
    st.dictionaries(claim_names, json_values),
    st.dictionaries(st.sampled_from(["kid", "crit", "b64", "typ"]), json_values),
)
def test_any_signed_claims_are_a_buyer_or_refused(claims: dict[str, Any], header: dict[str, Any]) -> None:
    try:
        buyer = shared().verify(by_hand(header, {**CLAIMS, **claims}), NOW)
    except Unauthenticated:
        return
    assert buyer_id(buyer.user) == buyer.user


def test_a_known_token_is_not_decoded_again_but_expires_on_time(monkeypatch: pytest.MonkeyPatch) -> None:
    buyers, token = Buyers(Settings(jwt_public_key=pem(ED25519_KEY))), jwt.encode(CLAIMS, ED25519_KEY, "EdDSA")
    decoded: list[str] = []
    decode: Callable[..., Any] = jwt.decode_complete

    def counted(token: str, *args: Any, **more: Any) -> Any:
        decoded.append(token)
        return decode(token, *args, **more)

    monkeypatch.setattr(jwt, "decode_complete", counted)
    for now in (NOW, NOW + 300, NOW + 629.9):
        assert buyers.verify(token, now).user == "ann"
    assert len(decoded) == 1
    assert "expired" in refused(buyers, token, NOW + 630)
    assert "expired" in refused(buyers, token, NOW + 630)
    assert len(decoded) == 2  # forgotten, so looked at again, and refused again


def test_refused_tokens_take_no_place_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buyer_tokens, "KNOWN_TOKENS_MAX", 2)
    buyers = Buyers(Settings(jwt_public_key=pem(ED25519_KEY)))

    def token_of(**claims: Any) -> str:
        return jwt.encode({**CLAIMS, **claims}, ED25519_KEY, "EdDSA")

    first, second, third = (token_of(sub=user) for user in ("u1", "u2", "u3"))
    for token in (first, second, first):
        buyers.verify(token, NOW)
    refused(buyers, token_of(sub=" 7"))
    refused(buyers, token_of(exp=NOW - 60))
    buyers.verify(third, NOW)
    assert list(buyers._known) == [first, third]


def test_another_spelling_of_a_signature_is_not_another_token() -> None:
    for spelling in ("{}=", "{}==", "{}!", "{}\n", "{} "):
        refused(shared(), spelling.format(signed()))


def test_minted_tokens_are_accepted() -> None:
    token = mint_buyer_token(Secret(SECRET), "ann", 3600, None, None, NOW)
    claims = f'{{"sub":"ann","iat":{NOW:.0f},"exp":{NOW + 3600:.0f}}}'
    assert shared().verify(token, NOW) == Buyer("ann", NOW + 3600, claims, NOW)
    token = mint_buyer_token(Secret(SECRET), "ann", 31 * DAY_S, "shop", "seckill", NOW)
    assert shared(jwt_issuer="shop", jwt_audience="seckill").verify(token, NOW).user == "ann"


@pytest.mark.parametrize(
    ("user", "lifetime_s"), [(" 7", 60), ("", 60), ("ann", 0), ("ann", 32 * DAY_S), ("ann", math.nan)]
)
def test_what_would_be_refused_is_not_minted(user: str, lifetime_s: float) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        mint_buyer_token(Secret(SECRET), user, lifetime_s, None, None, NOW)


def test_the_admin_key() -> None:
    key = AdminKey(Secret("4fd1b7a90c2e8d635f10"))
    assert key.matches("4fd1b7a90c2e8d635f10")
    for wrong in (
        "",
        "4fd1b7a90c2e8d635f1",
        "4fd1b7a90c2e8d635f100",
        "4FD1B7A90C2E8D635F10",
        "ключ",
        "\ud800",
    ):
        assert not key.matches(wrong)


def test_without_an_admin_key_nobody_is_an_operator() -> None:
    for wrong in ("", "None", "***"):
        assert not AdminKey(None).matches(wrong)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (b"Bearer abc.def-_~+/==", "abc.def-_~+/=="),
        (b"bearer abc", "abc"),
        (b"BEARER   abc ", "abc"),
        (None, None),
        (b"", None),
        (b"Bearer", None),
        (b"Bearer ", None),
        (b"Bearerabc", None),
        (b"Bearer abc def", None),
        (b"Bearer abc, Bearer def", None),
        (b"Bearer\tabc", None),
        (b"Bearer abc\r\n", None),
        (b"Bearer \xff", None),
        (b"Basic abc", None),
        (b"abc", None),
    ],
)
def test_the_authorization_header(header: bytes | None, token: str | None) -> None:
    assert bearer(header) == token
