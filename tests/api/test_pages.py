"""The shells and their files: cacheable, strict, and the same for all visitors."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

import seckill.web
from seckill.bootstrap.engine import Engine
from seckill.cli.demo import demo_sale
from seckill.domain.outcome import REFUSALS, Outcome, RefusalKind
from seckill.engine.money.payments import REFUSED
from seckill.settings import Settings
from seckill.web.demo_sign_in import user_called
from tests.api.conftest import Node, make_node

STATIC = Path(seckill.web.__file__).parent / "static"


@pytest.fixture
async def demo(settings: Settings, engine: Engine) -> AsyncIterator[Node]:
    node = await make_node(replace(settings, demo_sign_in="on", shop_name='A & "B"'), engine)
    yield node
    await node.http.aclose()


@pytest.mark.parametrize("path", ["/", "/sales/ANY", "/orders", "/orders/ANY", "/console"])
async def test_a_shell_is_the_same_for_all_visitors_and_strict(node: Node, path: str) -> None:
    response = await node.http.get(path, headers={"Accept-Encoding": "identity"})
    assert response.status_code == 200
    assert response.headers["cache-control"] == "public, max-age=60"
    assert "set-cookie" not in response.headers
    policy = response.headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    again = await node.http.get(
        path, headers={"Accept-Encoding": "identity", "If-None-Match": response.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", response.text) == []
    for address in re.findall(r'(?:src|href)="([^"]*)"', response.text):
        assert re.match("/[^/]|/$", address)
        assert (await node.http.get(address)).status_code == 200, address


async def test_assets_may_be_kept_for_ever_and_those_of_another_version_not_at_all(node: Node) -> None:
    shell = (await node.http.get("/")).text
    (script,) = re.findall(r'<script type="module" src="([^"]+)"', shell)
    response = await node.http.get(script)
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.headers["x-content-type-options"] == "nosniff"
    version = script.split("/")[2]
    other = await node.http.get(script.replace(version, "0123456789abcdef"))
    assert (other.status_code, other.headers["cache-control"]) == (200, "no-store")
    assert other.text == response.text
    for path in ("app/none.js", "vendor/htm/LICENSE", "buyer.html", "%2e%2e/app.py", "app/%2e%2e/%2e%2e/app.py"):
        assert (await node.http.get(f"/assets/{version}/{path}")).status_code == 404, path


async def test_what_travels_is_small_and_told_apart_from_what_is_not(node: Node) -> None:
    plain = await node.http.get("/", headers={"Accept-Encoding": "identity"})
    packed = await node.http.get("/", headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == plain.text
    assert packed.headers["etag"] != plain.headers["etag"]
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


async def test_a_mistyped_address_is_answered_for_people_to_people(node: Node) -> None:
    page = await node.http.get("/sale", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert 'href="/">All sales' in page.text
    assert page.headers["x-content-type-options"] == "nosniff"
    for path, accept in (("/sale", "*/*"), ("/v1/sale", "text/html")):
        problem = await node.http.get(path, headers={"Accept": accept})
        assert (problem.status_code, problem.json()["code"]) == (404, "not_found")


async def test_the_time_is_the_gates_and_nobody_keeps_it(node: Node) -> None:
    response = await node.http.get("/v1/time")
    assert response.headers["cache-control"] == "no-store"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", response.json()["server_time"])


async def test_there_is_no_demo_sign_in_unless_it_is_wanted(node: Node, settings: Settings, engine: Engine) -> None:
    """Not refused: it does not exist."""
    response = await node.http.post("/v1/demo/sign-in", json={"name": "ann"})
    assert response.status_code == 404
    assert "/v1/demo/sign-in" not in (await node.http.get("/openapi.json")).json()["paths"]
    assert '<meta name="seckill-demo" content="off">' in (await node.http.get("/")).text


@pytest.mark.parametrize("name", ["ann", "小明", "Ann Lee", "07", "<b>"])
async def test_any_name_is_a_buyer_in_the_demo(demo: Node, name: str) -> None:
    tokens = set()
    for _ in range(2):
        response = await demo.http.post("/v1/demo/sign-in", json={"name": name})
        assert response.status_code == 200
        assert response.headers["cache-control"] == "no-store"
        assert response.json()["user"] == user_called(name)
        tokens.add(response.json()["user"])
    mine = await demo.http.get("/v1/orders", headers={"Authorization": f"Bearer {response.json()['token']}"})
    assert mine.status_code == 200
    assert len(tokens) == 1, "the same name is the same buyer"


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "x" * 41, 7])
async def test_what_is_no_name_is_refused(demo: Node, name: object) -> None:
    response = await demo.http.post("/v1/demo/sign-in", json={"name": name})
    assert (response.status_code, response.json()["code"]) == (422, "invalid")


async def test_the_shops_name_is_text(demo: Node) -> None:
    shell = (await demo.http.get("/")).text
    assert '<meta name="seckill-shop" content="A &amp; &quot;B&quot;">' in shell
    assert '<meta name="seckill-demo" content="on">' in shell


TEXTS = (
    "strings.js",
    "codes_strings.js",
    "door_strings.js",
    "line_strings.js",
    "console/strings.js",
    "console/access_strings.js",
)


def texts() -> str:
    return "".join((STATIC / "app" / name).read_text(encoding="utf-8") for name in TEXTS)


def test_every_text_is_there_in_both_languages() -> None:
    source = texts()
    entries = re.findall(r'^  (\w+): \["((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)"\],$', source, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^  \w+:", source, re.MULTILINE)), "a line of another form"
    assert len({key for key, _, _ in entries}) == len(entries) > 150
    for key, english, chinese in entries:
        assert english
        assert chinese
        assert sorted(re.findall(r"{\w+}", english)) == sorted(re.findall(r"{\w+}", chinese)), key
        assert re.search(r"[\u4e00-\u9fff]", chinese) or not re.search(r"[A-Za-z]{3}", english), key


def test_every_refusal_has_its_texts() -> None:
    """A new one too: for the buyer who meets it, for the operator who counts it, for money that it sends back."""
    keys = set(re.findall(r"^  (\w+):", texts(), re.MULTILINE))
    no_round = {Outcome.UNAUTHENTICATED, Outcome.UNKNOWN_SALE}  # so that no round counts them
    assert {f"reason_{outcome}" for outcome in set(REFUSALS) - no_round} <= keys
    # The page asks again by itself, or sends the buyer to sign in.
    silent = {outcome for outcome, refusal in REFUSALS.items() if refusal.kind is RefusalKind.TROUBLE}
    shown = set(REFUSALS) - silent - {Outcome.RATE_LIMITED, Outcome.UNAUTHENTICATED}
    assert {f"refused_{outcome}" for outcome in shown} | {f"refused_{outcome}_title" for outcome in shown} <= keys
    assert {f"refund_{outcome}" for outcome in REFUSED} <= keys


def test_every_text_that_is_used_exists_and_every_one_is_used() -> None:
    source = texts()
    keys = set(re.findall(r"^  (\w+):", source, re.MULTILINE))
    code = "".join(
        path.read_text(encoding="utf-8") for path in (STATIC / "app").rglob("*.js") if path.name not in TEXTS
    )
    assert set(re.findall(r'\bt\("(\w+)"', code)) <= keys
    made = [re.sub(r"\\\$\\{.*?\\}", r"\\w+", re.escape(text)) for text in re.findall(r"\bt\(\s*`([^`]+)`", code)]
    for key in keys:
        quoted = re.search(rf'"{key}"', code)
        assert quoted or any(re.fullmatch(pattern, key) for pattern in made), f"{key} is not used"


def test_nothing_becomes_markup_and_nothing_comes_from_elsewhere() -> None:
    for path in (STATIC / "app").rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|dangerouslySet|insertAdjacent|document\.write|\beval\(|new Function", text), (
            path
        )
        assert not re.search(r"https?://[\w$]", text), path


@pytest.mark.parametrize(
    ("folder", "package", "licence"),
    [("preact", "preact", "MIT"), ("htm", "htm", "Apache-2.0"), ("uplot", "uplot", "MIT")],
)
def test_vendored_files_tell_their_origin(folder: str, package: str, licence: str) -> None:
    found = STATIC / "vendor" / folder
    readme = " ".join((found / "README.md").read_text(encoding="utf-8").split())
    assert re.search(rf"`{package}`, version \d+\.\d+\.\d+, licence {licence}", readme)
    assert (found / "LICENSE").stat().st_size > 0


async def test_the_demo_is_shown_with_the_same_sale_at_every_start(
    settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that costs something, in whichever order the ledger has them: the next line is how to pay."""
    first = await demo_sale(engine, settings)
    sales = await engine.ledger.sales()
    for order in (sales, sales[::-1]):
        monkeypatch.setattr(engine.ledger, "sales", AsyncMock(return_value=list(order)))
        assert await demo_sale(engine, settings) == first


async def test_the_script_for_shops_is_kept_briefly_or_for_ever_under_its_digest(node: Node) -> None:
    now = await node.http.get("/embed.js")
    assert now.headers["cache-control"] == "public, max-age=60"
    assert now.headers["content-type"].startswith("text/javascript")
    assert now.headers["cross-origin-resource-policy"] == "cross-origin"
    kept = await node.http.get(now.headers["content-location"])
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert kept.content == now.content
    other = await node.http.get("/embed/0123456789abcdef.js")
    assert (other.headers["cache-control"], other.content) == ("no-store", now.content)
    again = await node.http.get("/embed.js", headers={"If-None-Match": now.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert '"sandbox":"on"' in now.text
