"""Several keys for buyers' tokens, so that one can be replaced by another without signing buyers out."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

from seckill.errors import SettingsError
from seckill.settings import Secret, Settings
from seckill.web.buyers import issuer_calls, key_set, token_keys
from seckill.web.buyers.buyer_tokens import Buyers, Unauthenticated
from seckill.web.buyers.key_set import IssuerAway, KeySet
from seckill.web.buyers.token_keys import KeysNotKnown, TokenKey, TokenKeys
from seckill.web.operators.admin_key import AdminKey
from tests.patience import PATIENCE_S
from tests.web.buyers.tokens import CLAIMS, ED25519_KEY, NOW, P256_KEY, RSA_KEY, SECRET, refused, signed

OLD, NEW = SECRET, "pZ4wN8xC1vB6mQ9tR2yH7kL3sD5fG0jUaE"


def by(secret: str, kid: object = None) -> str:
    return jwt.encode(CLAIMS, secret, "HS256", headers=None if kid is None else {"kid": kid})


def rotating(**more: Any) -> Buyers:
    return Buyers(Settings(jwt_secrets=(("old", Secret(OLD)), ("new", Secret(NEW))), **more))


def test_a_token_is_checked_with_the_key_that_it_names() -> None:
    buyers = rotating()
    for _ in range(3):  # the first goes the library's way, the others the short one
        assert buyers.verify(by(OLD, "old"), NOW).user == "ann"
        assert buyers.verify(by(NEW, "new"), NOW).user == "ann"
        for token in (by(OLD, "new"), by(NEW, "old"), by(NEW, "third"), by(OLD, "")):
            assert refused(buyers, token) == "The token is not signed with the key that is known here."


def test_a_token_that_names_no_key_may_be_signed_with_any(monkeypatch: pytest.MonkeyPatch) -> None:
    buyers = rotating()
    tokens = [by(OLD), by(NEW)]
    assert [buyers.verify(token, NOW).user for token in tokens] == ["ann", "ann"]
    stranger = by("somebody-elses-key-of-32-bytes-or-more")
    assert refused(buyers, stranger) == "The token is not signed with the key that is known here."
    monkeypatch.delattr(jwt, "decode_complete")
    assert [buyers.verify(token, NOW).user for token in tokens] == ["ann", "ann"], "both go the short way by now"


def test_beside_named_keys_the_one_without_a_name_is_good_as_before() -> None:
    buyers = Buyers(Settings(jwt_secret=Secret(OLD), jwt_secrets=(("new", Secret(NEW)),)))
    for token in (by(OLD), by(OLD, "whatever"), by(NEW, "new"), by(NEW)):
        assert buyers.verify(token, NOW).user == "ann"
    assert "key" in refused(buyers, by(OLD, "new"))


@pytest.mark.parametrize("kid", [7, ["old"], {"old": 1}, True, "x" * 3000])
def test_a_strange_name_of_a_key_is_refused(kid: object) -> None:
    header = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "kid": kid}).encode()).decode()
    signed_part = f"{header}.{signed().split('.')[1]}"
    mac = HMACAlgorithm(HMACAlgorithm.SHA256).sign(signed_part.encode(), OLD.encode())
    refused(rotating(), f"{signed_part}.{jwt.utils.base64url_encode(mac).decode()}")


class Issuer:
    """Publishes keys, as many of them as it has now."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = []
        self.fetched = asyncio.Event()
        self.away = False

    def publish(self, *keys: tuple[str, Any]) -> None:
        self.keys = [{**jwk(key), "kid": kid, "use": "sig"} for kid, key in keys]

    async def fetch(self) -> Mapping[str, TokenKey]:
        if self.away:
            raise IssuerAway("away")
        self.fetched.set()
        return key_set.read(json.dumps({"keys": self.keys}).encode())


def jwk(key: Any) -> dict[str, Any]:
    public = key.public_key()
    algorithm: Any = (
        RSAAlgorithm
        if isinstance(key, rsa.RSAPrivateKey)
        else ECAlgorithm
        if isinstance(key, ec.EllipticCurvePrivateKey)
        else OKPAlgorithm
    )
    made: dict[str, Any] = json.loads(algorithm.to_jwk(public))
    return made


def issued(kid: str, key: Any, algorithm: str) -> str:
    return jwt.encode(CLAIMS, key, algorithm, headers={"kid": kid})


def answer_to(buyers: Buyers, token: str) -> type[Exception] | None:
    try:
        buyers.verify(token, NOW)
    except (KeysNotKnown, Unauthenticated) as error:
        return type(error)
    return None


async def test_the_keys_of_an_issuer_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_keys, "FETCHED_AGAIN_S", 0.01)
    issuer = Issuer()
    issuer.publish(("a", RSA_KEY), ("b", ED25519_KEY))
    settings = Settings(jwks_url="https://issuer.example/keys")
    keys = TokenKeys(settings, issuer.fetch)
    buyers = Buyers(settings, keys)
    old, new = issued("a", RSA_KEY, "RS256"), issued("c", P256_KEY, "ES256")
    assert (keys.known, answer_to(buyers, old)) == (False, KeysNotKnown)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(keys.follow())
        async with asyncio.timeout(PATIENCE_S):
            await issuer.fetched.wait()
        assert (keys.known, answer_to(buyers, old)) == (True, None)
        assert buyers.verify(old, NOW).user == "ann"
        assert buyers.verify(issued("b", ED25519_KEY, "EdDSA"), NOW).user == "ann"
        assert "algorithm" in refused(buyers, issued("b", RSA_KEY, "RS256")), "the key decides the algorithm"
        assert "algorithm" in refused(buyers, jwt.encode(CLAIMS, b"secret" * 8, "HS256", headers={"kid": "a"}))
        issuer.publish(("c", P256_KEY))
        async with asyncio.timeout(PATIENCE_S):
            # A name that is not known makes them be fetched again, as soon as that is not too often.
            while answer_to(buyers, new) is not KeysNotKnown:
                await asyncio.sleep(0.005)
            await following
        issuer.fetched.clear()
        following = tasks.create_task(keys.follow())
        async with asyncio.timeout(PATIENCE_S):
            await issuer.fetched.wait()
        assert buyers.verify(new, NOW).user == "ann"
        assert refused(buyers, old), "its key was withdrawn, though the token was known"
        following.cancel()
    issuer.away = True
    with pytest.raises(IssuerAway):
        await keys.follow()
    assert buyers.verify(new, NOW).user == "ann", "what was fetched before is still good"


@asynccontextmanager
async def published() -> AsyncIterator[tuple[str, list[tuple[int, bytes]]]]:
    """An address, and what it answers: the last of these."""
    answers: list[tuple[int, bytes]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        status, body = answers[-1]
        writer.write(b"HTTP/1.1 %d .\r\nLocation: /other\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys", answers


async def test_what_the_issuer_publishes_is_fetched_and_chosen_from() -> None:
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    other_curve = ec.generate_private_key(ec.SECP384R1())
    listed: list[Any] = [
        {**jwk(RSA_KEY), "kid": "good"},
        {**jwk(P256_KEY), "kid": "good"},  # the first of a name counts
        {**jwk(RSA_KEY)},
        {**jwk(RSA_KEY), "kid": "encrypts", "use": "enc"},
        {**jwk(RSA_KEY), "kid": "other", "alg": "PS512"},
        {**jwk(RSA_KEY), "kid": 7},
        {**jwk(RSA_KEY), "kid": "no number", "n": 5},
        {**jwk(small), "kid": "small"},
        {**jwk(other_curve), "kid": "curve"},
        {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "secret"},
        {"kty": "RSA", "kid": "empty"},
        "no key",
    ]
    async with published() as (url, answers):
        answers.append((200, json.dumps({"keys": listed}).encode()))
        assert [*await KeySet(url).fetch()] == ["good"]
        for answer in (
            (200, json.dumps({"keys": listed[2:]}).encode()),
            (200, b"[]"),
            (200, b"{"),
            (200, b'{"keys": {}}'),
            (200, b" " * (issuer_calls.BYTES_MAX + 1)),
            (200, b"[" * 60_000),
            (302, b""),
            (500, b""),
        ):
            answers.append(answer)
            with pytest.raises(IssuerAway):
                await KeySet(url).fetch()
    with pytest.raises(IssuerAway):
        await KeySet(url).fetch()


def test_there_must_be_some_key() -> None:
    with pytest.raises(SettingsError, match="SECKILL_JWKS_URL"):
        Buyers(Settings())


def test_while_the_admin_key_is_replaced_both_are_good() -> None:
    both = AdminKey(Secret("new-key"), Secret("old-key"))
    assert both.matches("new-key")
    assert both.matches("old-key")
    assert not both.matches("other-key")
    assert not AdminKey(None, None).matches("")
