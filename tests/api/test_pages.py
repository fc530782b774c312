"""The shells and their files: cacheable, strict, and the same for all visitors."""

import html
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from PIL import Image

import seckill.web
from seckill.bootstrap.engine import Engine
from seckill.cli.demo_sales import demo_sale
from seckill.domain.outcome import REFUSALS, Outcome, RefusalKind
from seckill.engine.money.late_payments import REFUSED
from seckill.settings import Settings
from seckill.web.buyers.demo_sign_in import user_called
from seckill.web.pages import first_view
from seckill.web.pages.page_texts import tag_of, texts_in
from seckill.web.pages.pages import EMBED_LOADS
from tests.api.conftest import OPERATOR, Node, buyer, make_node

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
    assert response.headers["cache-control"] == f"public, max-age={10 if path == '/' else 60}"
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


async def test_a_sale_is_there_before_any_script_and_is_the_same_for_all_visitors(node: Node) -> None:
    sale = await node.create(title="Kettle & <cup>", units=10, price_cents=9900)
    path = f"/sales/{sale['id']}"
    page = await node.http.get(path, headers={"Accept-Language": "ja"})
    assert page.headers["cache-control"] == "public, max-age=10"
    assert "set-cookie" not in page.headers
    assert "script-src 'self';" in page.headers["content-security-policy"]
    for part in ("<title>Kettle &amp; &lt;cup&gt;</title>", "CN¥99<", ">On now<", "<time datetime="):
        assert part in page.text
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", page.text) == []
    assert (await node.http.get(path, headers={"Accept-Language": "zh-CN", **buyer("ann")})).content == page.content
    (listed,) = re.findall(r'name="seckill-first" content="([^"]+)"', (await node.http.get("/")).text)
    assert sale["id"] in html.unescape(listed)


async def test_what_buyers_may_not_know_of_is_in_no_page(node: Node) -> None:
    hidden = await node.create(title="Secret kettle", units=10, published=False)
    assert "Secret kettle" not in (await node.http.get("/")).text
    page = await node.http.get(f"/sales/{hidden['id']}")
    assert (page.status_code, page.headers["cache-control"]) == (200, "public, max-age=60")
    assert "Secret kettle" not in page.text
    assert (await node.http.get(f"/sales/{hidden['id']}/calendar.ics")).status_code == 404


async def test_the_beginning_of_a_sale_goes_into_a_calendar(node: Node) -> None:
    sale = await node.create(title="Kettle", units=10)
    file = await node.http.get(f"/sales/{sale['id']}/calendar.ics")
    assert file.headers["content-type"] == "text/calendar; charset=utf-8"
    assert file.headers["content-disposition"] == f'attachment; filename="sale-{sale["id"]}.ics"'
    assert f"/sales/{sale['id']}" in file.text.replace("\r\n ", "")
    assert (await node.http.get("/sales/NONE/calendar.ics")).status_code == 404


FIRST_VIEW_BYTES_MAX = 60_000


async def test_the_first_view_of_a_sale_travels_in_few_requests_and_few_bytes(node: Node) -> None:
    """Compressed, in the largest of the languages, with all that the page loads before its user does anything."""
    sale = await node.create(title="Kettle", units=10, description="Boils. " * 500)
    page = (await node.http.get(f"/sales/{sale['id']}")).text
    addresses = re.findall(r'<(?:link|script)[^>]* (?:src|href)="([^"]*)"', page)
    assets = next(address for address in addresses if "/bundle/" in address).split("/bundle/")[0]

    async def size(address: str) -> int:
        return int((await node.http.get(address, headers={"Accept-Encoding": "gzip"})).headers["content-length"])

    texts = max([await size(f"{assets}/app/texts/{code}.js") for code in LANGUAGES])
    assert len(addresses) + 2 <= 6, "the page, what it names, and its texts"
    sizes = [await size(address) for address in [f"/sales/{sale['id']}", *addresses]]
    assert sum(sizes) + texts < FIRST_VIEW_BYTES_MAX


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
    """The route is not refused: it does not exist."""
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


# The operators' pages have each text in both of their languages.
TABLES = ("strings.js", "console/strings.js", "console/access_strings.js", "console/figure_strings.js")
LANGUAGES = {path.stem: path for path in (STATIC / "app" / "texts").iterdir()}
# Every text of a language has one of these letters in it, unless it is made of names and signs alone.
LETTERS = {"en": "[A-Za-z]", "zh": "[\u4e00-\u9fff]", "ja": "[\u3040-\u30ff\u4e00-\u9fff]"}


def tables() -> str:
    return "".join((STATIC / "app" / name).read_text(encoding="utf-8") for name in TABLES)


def keys() -> set[str]:
    return set(re.findall(r"^  (\w+):", tables(), re.MULTILINE)) | set(texts_in("en"))


def test_every_text_of_operators_is_there_in_both_languages() -> None:
    source = tables()
    entries = re.findall(r'^  (\w+): \["((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)"\],$', source, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^  \w+:", source, re.MULTILINE)), "a line of another form"
    assert len({key for key, _, _ in entries}) == len(entries) > 150
    assert not {key for key, _, _ in entries} & set(texts_in("en")), "one of buyers and one of operators"
    for key, english, chinese in entries:
        assert english
        assert chinese
        assert sorted(re.findall(r"{\w+}", english)) == sorted(re.findall(r"{\w+}", chinese)), key
        assert re.search(r"[\u4e00-\u9fff]", chinese) or not re.search(r"[A-Za-z]{3}", english), key


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_has_the_same_texts_with_the_same_places(language: str) -> None:
    english, translated = texts_in("en"), texts_in(language)
    assert list(translated) == list(english), "the same keys, in the same order"
    for key, text in translated.items():
        assert text, key
        assert sorted(re.findall(r"{\w+}", text)) == sorted(re.findall(r"{\w+}", english[key])), key
        words = re.sub(r"{\w+}", "", english[key])
        assert re.search(LETTERS[language], text) or not re.search("[A-Za-z]{3}", words), f"{key} is not translated"


def test_every_language_can_be_chosen() -> None:
    """A file without a line in languages.js would never be read, and a line without a file would show no page."""
    lines = re.findall(
        r'^  (\w+): { name: "(\S+)", tag: "(\S+)" },$', (STATIC / "app" / "languages.js").read_text(), re.MULTILINE
    )
    assert {code for code, _, _ in lines} == set(LANGUAGES) == set(LETTERS)
    assert {code: tag for code, _, tag in lines} == {code: tag_of(code) for code in LANGUAGES}
    assert {f"/assets/{{version}}/app/texts/{code}.js" for code in LANGUAGES} <= set(EMBED_LOADS)


def test_every_refusal_has_its_texts() -> None:
    """A new one too: for the buyer who meets it, for the operator who counts it, for money that it sends back."""
    known = keys()
    no_round = {Outcome.UNAUTHENTICATED, Outcome.UNKNOWN_SALE}  # so that no round counts them
    assert {f"reason_{outcome}" for outcome in set(REFUSALS) - no_round} <= known
    # The page asks again by itself, or sends the buyer to sign in.
    silent = {outcome for outcome, refusal in REFUSALS.items() if refusal.kind is RefusalKind.TROUBLE}
    shown = set(REFUSALS) - silent - {Outcome.RATE_LIMITED, Outcome.UNAUTHENTICATED}
    assert {f"refused_{outcome}" for outcome in shown} | {f"refused_{outcome}_title" for outcome in shown} <= known
    assert {f"refund_{outcome}" for outcome in REFUSED} <= known


def test_every_text_that_is_used_exists_and_every_one_is_used() -> None:
    named = {STATIC / "app" / name for name in TABLES} | set(LANGUAGES.values())
    code = "".join(path.read_text(encoding="utf-8") for path in (STATIC / "app").rglob("*.js") if path not in named)
    code += Path(first_view.__file__).read_text(encoding="utf-8")
    assert set(re.findall(r'\bt\("(\w+)"', code)) <= keys()
    made = [re.sub(r"\\\$\\{.*?\\}", r"\\w+", re.escape(text)) for text in re.findall(r"\bt\(\s*`([^`]+)`", code)]
    for key in keys():
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


async def test_the_goods_of_the_demo_have_pictures_and_its_voucher_has_codes(
    demo: Node, settings: Settings, engine: Engine
) -> None:
    await demo_sale(engine, settings)
    await demo.refresh()
    phone, voucher = (await demo.http.get("/v1/sales")).json()["sales"]
    for sale in (phone, voucher):
        assert sale["state"] == "open"
        [address] = sale["images"]
        shown = await demo.http.get(address)
        assert (shown.status_code, shown.headers["content-type"]) == (200, "image/webp")
        assert len(shown.content) < 12_000
        with Image.open(BytesIO(shown.content)) as picture:
            assert (picture.format, picture.size) == ("WEBP", (800, 600))
    assert (phone["price_cents"], phone["list_price_cents"], voucher["price_cents"]) == (9900, 19900, 0)
    counted = await demo.http.get(f"/v1/admin/sales/{voucher['id']}/vouchers", headers=OPERATOR)
    assert (counted.json()["free"], counted.json()["missing"]) == (1000, 0)


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
