"""Attacks on buyers' tokens: forged, stale, stolen and confused ones (S1-S7)."""

import base64
import math
import socket
from typing import Any, NoReturn

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from seckill.errors import SettingsError
from seckill.settings import Secret, Settings
from seckill.web.buyers.buyer_tokens import Buyers
from tests.web.buyers.tokens import (
    CLAIMS,
    DAY_S,
    KEYS,
    NOW,
    RSA_KEY,
    SECRET,
    by_hand,
    part,
    pem,
    refused,
    resigned,
    shared,
    signed,
)


def test_a_good_token_names_its_buyer() -> None:
    buyer = shared().verify(signed(), NOW)
    assert (buyer.user, buyer.expires_s) == ("ann", NOW + 600)


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_public_key_pins_its_algorithm(algorithm: str) -> None:
    buyers = Buyers(Settings(jwt_public_key=pem(KEYS[algorithm])))
    assert buyers.verify(jwt.encode(CLAIMS, KEYS[algorithm], algorithm), NOW).user == "ann"
    for other in KEYS.keys() - {algorithm}:
        refused(buyers, jwt.encode(CLAIMS, KEYS[other], other))


def test_another_algorithm_of_the_same_key_is_refused() -> None:
    buyers = Buyers(Settings(jwt_public_key=pem(RSA_KEY)))
    for algorithm in ("RS384", "RS512", "PS256"):
        assert "algorithm" in refused(buyers, jwt.encode(CLAIMS, RSA_KEY, algorithm))


def test_keys_that_are_not_accepted() -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    for key in (weak, ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP256K1())):
        with pytest.raises(SettingsError, match="must be an RSA key"):
            Buyers(Settings(jwt_public_key=pem(key)))
    with pytest.raises(SettingsError, match="cannot be read"):
        Buyers(Settings(jwt_public_key="-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"))
    with pytest.raises(SettingsError, match="SECKILL_JWT_SECRET, "):
        Buyers(Settings())


# S1: no signature is no token.
@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "HS256", "", None, 5, ["HS256"], {}])
@pytest.mark.parametrize("signature", ["", "e30"])
def test_an_unsigned_token_is_refused(alg: object, signature: str) -> None:
    token = f"{part({'alg': alg, 'typ': 'JWT'})}.{part(CLAIMS)}.{signature}"
    for buyers in (shared(), Buyers(Settings(jwt_public_key=pem(RSA_KEY)))):
        refused(buyers, token)


# S2: the public key is no secret, whatever the token says about its algorithm.
@pytest.mark.parametrize("algorithm", KEYS)
def test_a_public_key_used_as_a_secret_is_refused(algorithm: str) -> None:
    public = pem(KEYS[algorithm])
    buyers = Buyers(Settings(jwt_public_key=public))
    for key in (public, public.strip(), public.replace("\n", "\\n")):
        assert "algorithm" in refused(buyers, by_hand({}, CLAIMS, key.encode()))


def test_the_hand_made_token_would_pass_with_the_real_secret() -> None:
    assert shared().verify(by_hand({}, CLAIMS, SECRET.encode()), NOW).user == "ann"


# S3: nothing in the header is opened, fetched or used.
@pytest.mark.parametrize(
    "headers",
    [
        {"kid": "../../dev/null"},
        {"kid": "' OR 1=1 --"},
        {"kid": "http://127.0.0.1:1/key"},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "http://127.0.0.1:1/cert"},
        {"jwk": {"kty": "oct", "k": "AAAA"}},
    ],
)
def test_headers_that_point_somewhere_change_nothing(headers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(*_args: object, **_more: object) -> NoReturn:
        raise AssertionError("a token made us open something")

    buyers = shared()
    with monkeypatch.context() as closed:
        closed.setattr(socket, "socket", touched)
        closed.setattr("builtins.open", touched)
        assert buyers.verify(signed(headers=headers), NOW).user == "ann"
        refused(buyers, jwt.encode(CLAIMS, "x" * 32, "HS256", headers=headers))


def test_the_key_in_the_header_does_not_sign() -> None:
    own = {"kty": "oct", "k": base64.urlsafe_b64encode(b"x" * 32).rstrip(b"=").decode()}
    refused(shared(), jwt.encode(CLAIMS, "x" * 32, "HS256", headers={"jwk": own}))


@pytest.mark.parametrize("crit", [["exp"], ["b64"], [], "exp", ["unheard-of"]])
def test_a_demanded_extension_is_refused(crit: object) -> None:
    refused(shared(), by_hand({"crit": crit, "exp": 1}, CLAIMS))


# Nothing in it, or something of another kind, is not the same as no audience at all.
@pytest.mark.parametrize("audience", [[], "", {}, 0, False, ["shop"], [7], [["seckill"]], ["seckill", 7]])
@pytest.mark.parametrize("expected", [{}, {"jwt_audience": "seckill"}], ids=["none", "seckill"])
def test_an_audience_that_is_not_ours_is_refused(audience: object, expected: dict[str, str]) -> None:
    refused(shared(**expected), by_hand({}, {**CLAIMS, "aud": audience}))
    by_public_key = Buyers(Settings(jwt_public_key=pem(RSA_KEY), **expected))  # type: ignore[arg-type]
    refused(by_public_key, jwt.encode({**CLAIMS, "aud": audience}, RSA_KEY, "RS256"))


@pytest.mark.parametrize("issuer", [[], "", {}, 0, None, ["shop"], "sho", "shopx"])
def test_an_issuer_that_is_not_ours_is_refused(issuer: object) -> None:
    assert "issuer" in refused(shared(jwt_issuer="shop"), by_hand({}, {**CLAIMS, "iss": issuer}))


@pytest.mark.parametrize(("brackets", "depth"), [("[]", 100), ("[]", 1000), ("[]", 1400), ('{"a":}', 450)])
@pytest.mark.parametrize("place", ["claims", "header"])
def test_a_token_of_any_depth_gets_an_answer(brackets: str, depth: int, place: str) -> None:
    """The decoders go as deep as the stack does, and raise an error of their own where it ends."""
    deep = f'"deep":{brackets[:-1] * depth}1{brackets[-1] * depth}'
    claims = f'{{"sub":"ann","exp":{NOW + 600:.0f}' + (f",{deep}}}" if place == "claims" else "}")
    header = '{"alg":"HS256","typ":"JWT"' + (f",{deep}}}" if place == "header" else "}")
    token = resigned(f"{encoded(header)}.{encoded(claims)}")
    for buyers in (shared(), Buyers(Settings(jwt_secret=Secret(SECRET)))):
        if depth < 900:
            assert buyers.verify(token, NOW).user == "ann"
        else:
            assert "malformed" in refused(buyers, token)


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


# S4: times.
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"sub": "ann"}, "lacks a claim"),
        ({"exp": NOW + 600}, "lacks a claim"),
        ({"sub": "ann", "exp": None}, "lacks a claim"),
        ({**CLAIMS, "exp": NOW - 30}, "expired"),
        ({**CLAIMS, "exp": -(10**30)}, "exp is not a time"),
        ({**CLAIMS, "exp": 253_402_300_799}, "more than 31 days"),
        ({**CLAIMS, "exp": NOW + 31 * DAY_S + 31}, "more than 31 days"),
        ({**CLAIMS, "exp": 10**400}, "exp is not a time"),
        ({**CLAIMS, "exp": math.inf}, "exp is not a time"),
        ({**CLAIMS, "exp": math.nan}, "exp is not a time"),
        ({**CLAIMS, "exp": "1800000600"}, "exp is not a time"),
        ({**CLAIMS, "exp": True}, "exp is not a time"),
        ({**CLAIMS, "nbf": NOW + 31}, "not valid yet"),
        ({**CLAIMS, "iat": NOW + 31}, "not valid yet"),
        ({**CLAIMS, "nbf": "now"}, "nbf is not a time"),
        ({**CLAIMS, "iat": None}, "iat is not a time"),
    ],
)
def test_times_that_are_not_accepted(claims: dict[str, Any], reason: str) -> None:
    assert reason in refused(shared(), signed(claims))


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW - 29},
        {"exp": NOW + 31 * DAY_S},
        {"exp": NOW + 600.5},
        {"nbf": NOW + 29},
        {"iat": NOW + 29},
        {"nbf": NOW - DAY_S, "iat": NOW - DAY_S},
    ],
)
def test_times_at_the_edge_that_are_accepted(claims: dict[str, Any]) -> None:
    assert shared().verify(signed(**claims), NOW).user == "ann"


# S4: whose token, and for whom.
@pytest.mark.parametrize(
    ("claims", "good"),
    [
        ({"iss": "https://shop.example", "aud": "seckill"}, True),
        ({"iss": "https://shop.example", "aud": ["other", "seckill"]}, True),
        ({"iss": "https://shop.example"}, False),
        ({"aud": "seckill"}, False),
        ({"iss": "https://shop.exampl", "aud": "seckill"}, False),
        ({"iss": "https://shop.example.evil", "aud": "seckill"}, False),
        ({"iss": "HTTPS://SHOP.EXAMPLE", "aud": "seckill"}, False),
        ({"iss": ["https://shop.example"], "aud": "seckill"}, False),
        ({"iss": "https://shop.example", "aud": "seckil"}, False),
        ({"iss": "https://shop.example", "aud": []}, False),
        ({"iss": "https://shop.example", "aud": 7}, False),
    ],
)
def test_issuer_and_audience(claims: dict[str, Any], good: bool) -> None:
    buyers = shared(jwt_issuer="https://shop.example", jwt_audience="seckill")
    token = by_hand({}, {**CLAIMS, **claims})
    if good:
        assert buyers.verify(token, NOW).user == "ann"
    else:
        refused(buyers, token)


def test_a_token_for_another_audience_is_refused_when_none_is_set() -> None:
    assert "audience" in refused(shared(), signed(aud="another-service"))


# S6: one person is one buyer.
@pytest.mark.parametrize(
    "user",
    [
        "7",
        "0",
        "ann",
        "Ann",
        "a" * 128,
        "auth0|5f7c8e",
        "ann+tag@shop.example",
        "tenant:1/ann",
        "urn:user:7",
        "x0=~_.-",
        "+8613812345678",
        "00012",
        "张三",
        "Ann Lee",
        "{x}",
        'a"b\\c,*;',
        "\u0430",  # a Cyrillic letter is a letter of its own
        "안녕",
        "张" * 42,
    ],
)
def test_users_that_are_accepted(user: str) -> None:
    assert shared().verify(signed(sub=user), NOW).user == user


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        ("", "is empty"),
        (" 7", "begins or ends with a space"),
        ("7 ", "begins or ends with a space"),
        ("7\u3000", "begins or ends with a space"),
        ("a\n", "begins or ends with a space or a line break"),
        ("７", "U+FF17 (FULLWIDTH DIGIT SEVEN)"),
        ("7\u00b2", "U+00B2 (SUPERSCRIPT TWO)"),
        ("ﬁona", "U+FB01"),
        ("a\r\nb", "cannot be seen: U+000D"),
        ("a\x00", "cannot be seen: U+0000"),
        ("ann\u200b", "cannot be seen: U+200B (ZERO WIDTH SPACE)"),
        ("7\ufe0f", "cannot be seen: U+FE0F"),
        ("a\u00a0b", "cannot be seen: U+00A0"),
        ("\u202eann", "cannot be seen: U+202E"),
        ("a" * 129, "more than 128 bytes"),
        ("张" * 43, "more than 128 bytes"),
        ("a" * 2800, "more than 128 bytes"),
        (7, "not a text"),
        (7.0, "not a text"),
        (True, "not a text"),
        (None, "required"),
        (["7"], "not a text"),
        ({"id": 7}, "not a text"),
    ],
)
def test_users_that_are_refused(user: object, reason: str) -> None:
    """One person never has two limits, and the maker of the tokens is told what is wrong with them (S6)."""
    told = refused(shared(), signed(sub=user) if user is not None else signed({"exp": NOW + 60, "sub": None}))
    assert reason in told


@pytest.mark.parametrize(("one", "other"), [("Jose\u0301", "José"), ("\u1112\u1161\u11ab", "한"), ("\u212b", "Å")])
def test_one_name_in_two_encodings_is_one_buyer(one: str, other: str) -> None:
    assert shared().verify(signed(sub=one), NOW).user == shared().verify(signed(sub=other), NOW).user == other


def test_case_counts() -> None:
    buyers = shared()
    assert buyers.verify(signed(sub="ann"), NOW).user != buyers.verify(signed(sub="Ann"), NOW).user
