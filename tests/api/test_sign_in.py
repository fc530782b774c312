"""Operators sign in to the console with a provider of OpenID Connect, which is here a server of the test's own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from seckill.bootstrap.engine import Engine, open_engine
from seckill.engine.access import access_book
from seckill.settings import Secret, Settings
from seckill.web.operators import console_sign_in, sign_in_provider
from tests.api.conftest import ADMIN_KEY, OPERATOR, Node, make_node, sale_body
from tests.api.sign_in_stand_in import CLIENT, CLIENT_SECRET, Provider, running_provider

PUBLIC = "http://localhost"
OUR_PAGE = {"Seckill-Console": "1"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as made:
        yield made


def with_provider(settings: Settings, provider: Provider, **changes: Any) -> Settings:
    return replace(
        settings,
        **{
            "oidc_url": provider.url,
            "public_url": PUBLIC,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": Secret(CLIENT_SECRET),
            "oidc_roles": (("viewer", "staff"), ("operator", "sales"), ("admin", "sre")),
            **changes,
        },
    )


@pytest.fixture
async def console(settings: Settings, engine: Engine, provider: Provider) -> AsyncIterator[Node]:
    node = await make_node(with_provider(settings, provider), engine)
    yield node
    await node.http.aclose()


@asynccontextmanager
async def browser(node: Node) -> AsyncIterator[httpx2.AsyncClient]:
    """Yields a client with its own cookies."""
    transport = httpx2.ASGITransport(node.api)
    async with httpx2.AsyncClient(transport=transport, base_url=PUBLIC) as http:
        yield http


async def go(http: httpx2.AsyncClient, provider: Provider, **claims: Any) -> str:
    """Goes to the provider, signs a user in, and returns the address at which the browser comes back."""
    there = await http.get("/console/sign-in")
    assert there.status_code == 303
    assert there.headers["location"].startswith(f"{provider.url}/authorize?prompt=login&")
    back = provider.signed_in(urlsplit(there.headers["location"]).query, **claims)
    assert back.startswith(f"{PUBLIC}/console/signed-in?")
    return back.removeprefix(PUBLIC)


async def sign_in(http: httpx2.AsyncClient, provider: Provider, **claims: Any) -> httpx2.Response:
    return await http.get(await go(http, provider, **claims))


async def me(http: httpx2.AsyncClient) -> Any:
    return (await http.get("/v1/admin/me", headers=OUR_PAGE)).json()


async def test_who_has_signed_in_works_under_their_name(console: Node, provider: Provider) -> None:
    async with browser(console) as http:
        back = await sign_in(http, provider)
        assert (back.status_code, back.headers["location"]) == (303, "/console")
        cookie = next(line for line in back.headers.get_list("set-cookie") if line.startswith("seckill-session="))
        assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=28800"} <= set(cookie.split("; "))
        assert await me(http) == {"name": "lina@shop.example", "role": "operator"}
        made = await http.post("/v1/sales", json=sale_body(published=False), headers=OUR_PAGE)
        assert made.status_code == 201, made.text
        listed = (await http.get("/v1/sales", headers=OUR_PAGE)).json()["sales"]
        assert [sale["id"] for sale in listed] == [made.json()["id"]], "operators see drafts"
        refused = await http.post("/v1/admin/operators", json={"name": "x", "role": "admin"}, headers=OUR_PAGE)
        assert (refused.status_code, refused.json()["code"]) == (403, "role_too_small")
        record = (await http.get("/v1/admin/record", headers=OUR_PAGE)).json()["entries"]
        assert [(entry["who"], entry["what"]) for entry in record] == [
            ("lina@shop.example", "sale.created"),
            ("lina@shop.example", "session.begun"),
        ]
        assert record[1]["after"]["sub"] == "u-17"


async def test_signing_out_and_being_signed_out(console: Node, provider: Provider) -> None:
    async with browser(console) as http, browser(console) as other:
        await sign_in(http, provider)
        kept = dict(http.cookies)
        assert (await http.post("/console/sign-out", headers=OUR_PAGE)).status_code == 204
        assert "seckill-session" not in http.cookies
        other.cookies.update(kept)  # someone who has copied it
        over = await other.get("/v1/admin/me", headers=OUR_PAGE)
        assert (over.status_code, over.json()["code"]) == (401, "unauthenticated")
        await sign_in(http, provider)
        keys = (await console.http.get("/v1/admin/operators", headers=OPERATOR)).json()["operators"]
        assert [(key["name"], key["created_by"], key["state"]) for key in keys] == [
            ("lina@shop.example", "sign-in", "active"),
            ("lina@shop.example", "sign-in", "revoked"),
        ]
        await console.http.delete(f"/v1/admin/operators/{keys[0]['id']}", headers=OPERATOR)
        assert (await http.get("/v1/admin/me", headers=OUR_PAGE)).status_code == 401


async def test_a_session_ends_with_its_time_and_is_forgotten(
    settings: Settings, engine: Engine, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await make_node(with_provider(settings, provider, oidc_session_s=0), engine)
    monkeypatch.setattr("seckill.backends.sql.access.SESSIONS_KEPT_MS", -1)
    async with browser(node) as http, browser(node) as other:
        back = await sign_in(http, provider)
        other.cookies.set("seckill-session", back.headers["set-cookie"].partition("=")[2].partition(";")[0])
        assert (await other.get("/v1/admin/me", headers=OUR_PAGE)).status_code == 401
        await sign_in(http, provider)
    assert len((await node.http.get("/v1/admin/operators", headers=OPERATOR)).json()["operators"]) == 1
    await node.http.aclose()


async def test_another_node_knows_a_session_at_once(
    console: Node, settings: Settings, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun at one and ended at the other: nothing of a sign-in is in the memory of a process."""
    monkeypatch.setattr(access_book, "LOOK_AGAIN_S", -1.0)
    async with open_engine(settings) as second:
        elsewhere = await make_node(with_provider(settings, provider), second)
        async with browser(console) as http, browser(elsewhere) as other:
            back = await go(http, provider)
            other.cookies.update(dict(http.cookies))
            assert (await other.get(back)).status_code == 303
            http.cookies.update(dict(other.cookies))
            assert (await me(http))["name"] == "lina@shop.example"
        await elsewhere.http.aclose()


@pytest.mark.parametrize(
    ("claims", "name", "role"),
    [
        ({"groups": ["staff"]}, "lina@shop.example", "viewer"),
        ({"groups": "sre", "email": None}, "u-17", "admin"),
        ({"groups": ["sre", "staff"], "email_verified": False}, "u-17", "admin"),
        ({"email": "root"}, "u-17", "operator"),
        ({"email": "x" * 65, "sub": "Root"}, "sub ", "operator"),
        ({"aud": [CLIENT, "another"], "azp": CLIENT}, "lina@shop.example", "operator"),
    ],
)
async def test_claims_give_name_and_role(
    console: Node, provider: Provider, claims: dict[str, Any], name: str, role: str
) -> None:
    async with browser(console) as http:
        await sign_in(http, provider, **claims)
        found = await me(http)
    assert found["role"] == role
    assert found["name"] == name or (found["name"].startswith(name) and name == "sub ")


@pytest.mark.parametrize("groups", [["cleaning"], [], None, "staff sales", {"admin": True}, [["sre"], 7], "SRE"])
async def test_nobody_without_a_role_is_let_in(console: Node, provider: Provider, groups: Any) -> None:
    async with browser(console) as http:
        back = await sign_in(http, provider, groups=groups)
        assert back.status_code == 403
        assert "lina@shop.example, who has no role here" in back.text
        assert "没有任何角色" in back.text
        assert "seckill-session" not in http.cookies


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"azp": "another"},
        {"iss": "https://provider.example"},
        {"iss": None},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"iat": 4_000_000_000},
        {"sub": None},
    ],
    ids=str,
)
async def test_what_an_id_token_must_say(console: Node, provider: Provider, claims: dict[str, Any]) -> None:
    async with browser(console) as http:
        back = await sign_in(http, provider, **claims)
        assert (back.status_code, "seckill-session" in http.cookies) == (403, False)


@pytest.mark.parametrize("alg", ["none", "HS256"])
async def test_the_key_decides_the_algorithm(console: Node, provider: Provider, alg: str) -> None:
    provider.alg = alg
    async with browser(console) as http:
        assert (await sign_in(http, provider)).status_code == 403
        provider.alg = "ES256"
        assert (await sign_in(http, provider)).status_code == 303


async def test_a_key_of_somebody_else(console: Node, provider: Provider) -> None:
    async with browser(console) as http:
        back = await go(http, provider)
        own, provider.key = provider.key, ec.generate_private_key(ec.SECP256R1())
        forged = provider.signed(provider.codes[back.split("=")[1].partition("&")[0]][-1])
        provider.key = own
        provider.signed = lambda claims: forged  # type: ignore[method-assign]
        assert (await http.get(back)).status_code == 403


async def test_a_new_key_of_the_provider_is_followed(
    console: Node, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser(console) as http:
        assert (await sign_in(http, provider)).status_code == 303
        provider.key, provider.kid = ec.generate_private_key(ec.SECP256R1()), "second"
        assert (await sign_in(http, provider)).status_code == 403, "asked for a moment ago"
        monkeypatch.setattr(sign_in_provider, "FETCHED_AGAIN_S", 0.0)
        assert (await sign_in(http, provider)).status_code == 303
        assert (await sign_in(http, provider)).status_code == 303
        assert provider.asked.count("/k") == 2, "and kept"


async def test_a_state_counts_once_and_in_the_browser_that_asked(console: Node, provider: Provider) -> None:
    async with browser(console) as http, browser(console) as other:
        back = await go(http, provider)
        assert (await other.get(back)).status_code == 403, "an attacker's answer in somebody else's browser"
        await go(other, provider)
        assert (await other.get(back)).status_code == 403, "another question was asked there"
        asked = dict(http.cookies)
        code, claims = back.split("=")[1].partition("&")[0], dict(provider.codes)
        assert (await http.get(back)).status_code == 303
        assert (await http.get(back)).status_code == 403, "its question is gone"
        # Even who has kept the question, of a provider that takes a code twice, gets no second session.
        provider.codes[code] = claims[code]
        other.cookies.clear()
        other.cookies.update(asked)
        assert (await other.get(back)).status_code == 403
        assert "seckill-session" not in other.cookies


async def test_a_question_that_is_changed_or_old(
    console: Node, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser(console) as http:
        back = await go(http, provider)
        question = http.cookies["seckill-question"]
        for changed in ("", "nonsense", f"{question[:-1]}{'0' if question[-1] != '0' else '1'}", f"00{question}"):
            http.cookies.clear()
            http.cookies.set("seckill-question", changed)
            assert (await http.get(back)).status_code == 403, changed
        http.cookies.clear()
        http.cookies.set("seckill-question", question)
        monkeypatch.setattr(console_sign_in, "QUESTION_WITHIN_S", -1)
        assert (await http.get(back)).status_code == 403


@pytest.mark.parametrize(
    "query", ["?to=https://evil.example", "?return=//evil.example", "?redirect_uri=https://evil.example/"]
)
async def test_nothing_of_a_request_says_where_to_go(console: Node, provider: Provider, query: str) -> None:
    async with browser(console) as http:
        there = await http.get(f"/console/sign-in{query}", headers={"Host": "evil.example"})
        assert "evil.example" not in there.headers["location"]
        back = await http.get(f"{await go(http, provider)}&{query[1:]}", headers={"X-Forwarded-Host": "evil.example"})
        assert (back.status_code, back.headers["location"]) == (303, "/console")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Seckill-Console": "0"},
        OUR_PAGE | {"Origin": "https://evil.example"},
        OUR_PAGE | {"Origin": "null"},
        OUR_PAGE | {"Sec-Fetch-Site": "same-site"},
        OUR_PAGE | {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
async def test_another_page_cannot_use_a_session(console: Node, provider: Provider, headers: dict[str, str]) -> None:
    async with browser(console) as http:
        await sign_in(http, provider)
        for method, path in (("POST", "/v1/sales"), ("GET", "/v1/admin/orders.csv"), ("POST", "/console/sign-out")):
            refused = await http.request(method, path, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), path
        ours = OUR_PAGE | {"Origin": PUBLIC, "Sec-Fetch-Site": "same-origin"}
        assert (await http.post("/v1/sales", json=sale_body(), headers=ours)).status_code == 201


async def test_a_session_is_no_key_and_a_key_no_session(console: Node, provider: Provider) -> None:
    async with browser(console) as http:
        await sign_in(http, provider)
        secret = http.cookies["seckill-session"]
        as_key = await console.http.get("/v1/admin/me", headers={"Authorization": f"Bearer {secret}"})
        assert as_key.status_code == 403
        http.cookies.set("seckill-session", ADMIN_KEY, domain="localhost.local")
        made = await console.http.post("/v1/admin/operators", json={"name": "Li Na", "role": "admin"}, headers=OPERATOR)
        for key in (ADMIN_KEY, made.json()["key"]):
            http.cookies.clear()
            http.cookies.set("seckill-session", key)
            assert (await http.get("/v1/admin/me", headers=OUR_PAGE)).status_code == 401
        # A key that is given counts, whatever else comes along.
        assert (await http.get("/v1/admin/me", headers=OPERATOR)).json()["name"] == "root"


@pytest.mark.parametrize(
    "facts",
    [
        {"issuer": "https://provider.example"},
        {"token_endpoint": None},
        {"jwks_uri": "ftp://127.0.0.1/k"},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
    ids=str,
)
async def test_a_provider_that_is_none(
    console: Node, provider: Provider, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.facts = facts
    monkeypatch.setattr(sign_in_provider, "AGAIN_S", 0.0)
    async with browser(console) as http:
        answer = await http.get("/console/sign-in")
        assert (answer.status_code, "does not answer now" in answer.text) == (503, True)
        provider.facts = {}
        assert (await sign_in(http, provider)).status_code == 303


async def test_the_provider_says_no(console: Node, provider: Provider) -> None:
    async with browser(console) as http:
        back = await go(http, provider)
        state = back.partition("state=")[2]
        refused = await http.get(f"/console/signed-in?error=access_denied&state={state}")
        assert (refused.status_code, "did not let you sign in" in refused.text) == (403, True)
        assert (await http.get(f"{await go(http, provider)}&iss=https://other.example")).status_code == 403
        assert (await http.get(f"{await go(http, provider)}&iss={provider.url}")).status_code == 303


async def test_over_https_the_cookies_are_for_this_host_alone(
    settings: Settings, engine: Engine, provider: Provider
) -> None:
    node = await make_node(with_provider(settings, provider, public_url="https://sale.example/"), engine)
    answer = await node.http.get("/console/sign-in")
    (cookie,) = answer.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-seckill-question=")
    assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "redirect_uri=https%3A%2F%2Fsale.example%2Fconsole%2Fsigned-in&" in answer.headers["location"]
    await node.http.aclose()


async def test_without_a_provider_there_is_no_such_thing(node: Node) -> None:
    assert (await node.http.get("/console/sign-in")).status_code == 404
    refused = await node.http.get("/v1/admin/me", headers=OUR_PAGE | {"Cookie": "seckill-session=sks_x"})
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
