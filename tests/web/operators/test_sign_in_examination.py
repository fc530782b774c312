"""The doctor says whether operators could sign in with their provider, and what to change if not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from seckill.lab.servers.ports import free_port
from seckill.settings import Settings
from seckill.web.operators import sign_in_examination
from seckill.web.operators.sign_in_examination import examine_sign_in
from tests.api.sign_in_stand_in import CLIENT, Provider, running_provider


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as made:
        yield made


class PublicServer(ThreadingHTTPServer):
    name = "seckill"


class Public(BaseHTTPRequestHandler):
    """This installation as browsers reach it."""

    server: PublicServer

    def do_GET(self) -> None:
        body = json.dumps({"name": self.server.name} if self.path == "/version" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def public() -> Iterator[str]:
    server = PublicServer(("127.0.0.1", 0), Public)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def settings(provider: Provider, public: str) -> Settings:
    return Settings(
        oidc_url=provider.url, public_url=public, oidc_client_id=CLIENT, oidc_roles=(("admin", "sre"),), oidc_name="ID"
    )


async def test_nothing_is_asked_where_there_is_no_provider() -> None:
    health = await examine_sign_in(Settings())
    assert (health.mend, health.advice) == ([], [])
    assert "keys only" in health.says


async def test_a_provider_that_works_needs_no_mending(settings: Settings, provider: Provider) -> None:
    health = await examine_sign_in(settings)
    assert (health.mend, health.advice) == ([], [])
    assert health.says.startswith("with ID, which shows 1 key; people come back to")
    assert health.says.endswith(f"{settings.public_url}/console/signed-in")
    assert "/token" not in provider.asked, "nobody was signed in"


async def test_a_provider_that_is_not_there(settings: Settings) -> None:
    health = await examine_sign_in(replace(settings, oidc_url=f"http://127.0.0.1:{free_port()}"))
    assert len(health.mend) == 1
    assert "SECKILL_OIDC_URL does not answer as a provider" in health.mend[0]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"issuer": "https://id.example.com/other"}, "another issuer, 'https://id.example.com/other': give that one"),
        ({"jwks_uri": "/nowhere"}, "its jwks_uri is no address"),
        ({"authorization_endpoint": None}, "its authorization_endpoint is no address"),
    ],
)
async def test_a_provider_whose_metadata_does_not_fit_is_named(
    settings: Settings, provider: Provider, facts: dict[str, Any], words: str
) -> None:
    provider.facts = facts
    health = await examine_sign_in(settings)
    assert [words in sentence for sentence in health.mend] == [True]


async def test_keys_that_cannot_be_read(settings: Settings, provider: Provider) -> None:
    provider.facts = {"jwks_uri": f"{provider.url}/gone"}
    assert "SECKILL_OIDC_URL shows no keys" in (await examine_sign_in(settings)).mend[0]


@pytest.mark.parametrize("page", ["gone", "refused"])
async def test_a_client_or_a_return_address_that_the_provider_does_not_know(
    settings: Settings, provider: Provider, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    if page == "gone":
        provider.facts = {"authorization_endpoint": f"{provider.url}/gone"}
    else:
        back = f"{settings.public_url}/console/signed-in?error=unauthorized_client"
        monkeypatch.setattr(provider, "signed_in", lambda _: back)
    [sentence] = (await examine_sign_in(settings)).mend
    assert ("HTTP 404" if page == "gone" else "unauthorized_client") in sentence
    assert f"{settings.public_url}/console/signed-in" in sentence


async def test_an_address_that_nobody_comes_back_to(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    assert "cannot be reached from here" in (await examine_sign_in(replace(settings, public_url=away))).advice[0]
    monkeypatch.setattr(PublicServer, "name", "nginx")
    assert "not as seckill does" in (await examine_sign_in(settings)).advice[0]
    monkeypatch.setattr(sign_in_examination, "_LOOPBACK", ("localhost",))
    [sentence] = (await examine_sign_in(replace(settings, public_url="http://localhost"))).advice
    assert "only browsers on this machine" in sentence
