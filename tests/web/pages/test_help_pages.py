"""The documents at /help: built from docs/ without a warning, complete, and loading nothing from elsewhere."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import httpx2
import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from seckill.web.pages import help_pages
from seckill.web.pages.content_security_policy import help_policy
from seckill.web.problems import HttpProblem

ROOT = Path(__file__).parents[3]
MKDOCS = ROOT / ".venv" / "docs" / "bin" / "mkdocs"
PAGES = sorted(page.name for page in (ROOT / "docs").glob("*.md") if not page.name.endswith(".zh-CN.md"))
LINK = re.compile(r'<(?:a|img|link|script)\b[^>]*?\s(?:href|src)="([^":#]+)')


async def refuse(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HttpProblem)
    return Response(problem.detail, problem.status)


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """It finds its site in `tmp_path`."""
    monkeypatch.setattr(help_pages, "SITE", tmp_path / "site")
    help_pages._read.cache_clear()
    application = Starlette(routes=help_pages.help_routes(), exception_handlers={HttpProblem: refuse})
    transport = httpx2.ASGITransport(application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://seckill") as client:
        yield client
    help_pages._read.cache_clear()


def in_menu(entries: list[object]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        inside = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += in_menu(inside) if isinstance(inside, list) else [str(inside)]
    return found


def test_every_page_is_in_the_menu_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(in_menu(settings["nav"])) == PAGES


def test_scripts_in_a_page_are_allowed_by_their_digests_and_no_others() -> None:
    policy = help_policy(
        b"<script>one()</script><script src=x.js></script><script>two()</script><script>one()</script>"
    )
    assert re.findall(r"script-src ([^;]+);", policy) == [
        " ".join(
            (
                "'self'",
                "'sha256-HR7iaask9daLMRRskMI++QeJtjWDOjyPA6lGzYGzKW4='",
                "'sha256-iMrPAWirDC2X0OhZzLsM2MRIWSmepJGI4r7D8ZlwBOw='",
            )
        )
    ]


async def test_only_what_is_in_the_site_is_given(client: httpx2.AsyncClient, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "zh-CN").mkdir(parents=True)
    (site / "index.html").write_text("<p>here</p>", encoding="utf-8")
    (tmp_path / "secret").write_text("mine", encoding="utf-8")
    first = await client.get("/help")
    assert (first.status_code, first.headers["location"]) == (307, "help/index.html")
    found = await client.get("/help/index.html")
    assert (found.status_code, found.text) == (200, "<p>here</p>")
    assert "default-src 'none'" in found.headers["content-security-policy"]
    for path in ("../secret", "..%2fsecret", "zh-CN", "zh-CN/../../secret", "index.html/x", "nothing.html", ""):
        assert (await client.get(f"/help/{path}")).status_code == 404, path


@pytest.mark.skipif(not MKDOCS.exists() and not os.environ.get("CI"), reason="make site installs what builds the site")
async def test_the_site_is_built_and_its_links_lead_somewhere(client: httpx2.AsyncClient, tmp_path: Path) -> None:
    # From a copy: what mkdocs reads beside it stays out of the tree.
    for name in ("docs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    done = subprocess.run(
        [MKDOCS, "build", "--quiet", "--strict", "--site-dir", tmp_path / "site"],
        cwd=tmp_path,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = [page.replace(".md", ".html") for page in PAGES]
    asked: set[str] = set()
    for path in (f"/help/{folder}{name}" for folder in ("", "zh-CN/") for name in names):
        page = await client.get(path)
        assert page.status_code == 200, path
        assert page.text.count("<script>") >= 1
        asked |= {urlsplit(urljoin(path, found)).path for found in LINK.findall(page.text)}
        assert not re.findall(r'(?:src|<link[^>]*href)="(?:https?:)?//', page.text), "nothing comes from elsewhere"
    assert len(asked) > 2 * len(names)
    for path in sorted(asked):
        assert (await client.get(unquote(path))).status_code == 200, path
    index = json.loads((tmp_path / "site/search/search_index.json").read_text(encoding="utf-8"))
    texts = [entry["text"] for entry in index["docs"] if entry["location"].startswith("zh-CN/")]
    found = {word for text in texts for word in re.split(index["config"]["separator"], text)}
    assert {"候补", "抽签", "退款"} <= found, "Chinese is cut into words that readers look for"
    rows = re.findall(r"/help/operations.html#(if-[a-z-]+)", (ROOT / "deploy/prometheus/rules.yml").read_text())
    page = await client.get("/help/operations.html")
    assert len(rows) > 20
    assert all(f'id="{row}"' in page.text for row in rows), "the links of alerts lead to their rows"
    promises = (await client.get("/help/zh-CN/guarantees.html")).text
    assert '<a href="../guarantees.html#money">对应的测试</a>' in promises, "tests are named in the English page only"
    assert 'id="money"' in (await client.get("/help/guarantees.html")).text
