"""The pages: a shell for each, and the files that it loads. They are the same for every buyer, so a CDN can keep them.

An asset's address has a digest of all assets in it, so it may be kept for ever, and modules find each other by relative
addresses. A node that is asked for another version's asset, while nodes are being replaced, answers with its own and
forbids caching it.
"""

import gzip
import hashlib
import html
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from seckill.settings import Settings
from seckill.web.demo_sign_in import signs_anybody_in
from seckill.web.mounting import prefix_in
from seckill.web.problems import not_found

STATIC = files("seckill.web") / "static"
FOLDERS = ("app", "vendor/htm", "vendor/preact", "vendor/uplot")
MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Every client sees a new release after this time at the latest.
SHELL_MAX_AGE_S = 60
FOR_EVER_S = 365 * 24 * 3600
# Paths that one process is under, each with pages of its own. A prefix may be a parameter of the surrounding
# application, so it may come from a request.
PREFIXES_MAX = 16
# Nothing from other hosts, nothing inline, no text that becomes markup, no frame around it.
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

NOWHERE = Template(
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>Not found</title>"
    # Whatever the version is called: a node answers with its own.
    '<link rel="stylesheet" href="${base}/assets/own/app/theme.css">'
    '<link rel="stylesheet" href="${base}/assets/own/app/buyer.css"><link rel="stylesheet" href="${base}/brand.css">'
    '<main><h1>404</h1><div class="empty"><p>There is nothing here.<br><span lang="zh-CN">这里什么也没有。</span></p>'
    '<a class="button quiet" href="${base}/">All sales · <span lang="zh-CN">全部秒杀</span></a></div></main></html>'
)


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes that never change while the process runs, and the same compressed."""

    plain: bytes
    packed: bytes
    etag: str
    media_type: str

    @classmethod
    def of(cls, body: bytes, media_type: str) -> "Content":
        # No time in it, so that every node makes the same bytes.
        return cls(body, gzip.compress(body, mtime=0), f'"{_digest(body)}"', media_type)

    def answer(self, request: Request, cache_control: str, extra: dict[str, str]) -> Response:
        packs = "gzip" in request.headers.get("accept-encoding", "")
        # One tag for each form: a cache that compares tags must not take one for the other.
        etag = f'{self.etag[:-1]}-gz"' if packs else self.etag
        headers = {"Cache-Control": cache_control, "ETag": etag, "Vary": "Accept-Encoding", **extra}
        if etag in request.headers.get("if-none-match", ""):
            return Response(None, 304, headers)
        if packs:
            return Response(self.packed, 200, headers | {"Content-Encoding": "gzip"}, self.media_type)
        return Response(self.plain, 200, headers, self.media_type)


class Pages:
    def __init__(self, settings: Settings, *, sandbox: bool) -> None:
        self._assets = _assets()
        self.version = _digest(b"".join(path.encode() + b"\0" + self._assets[path].plain for path in self._assets))
        facts = {
            "shop": settings.shop_name,
            "demo": "on" if signs_anybody_in(settings) else "off",
            "sign_in": settings.sign_in_url,
            "sandbox": "on" if sandbox else "off",
            "pay": settings.pay_url,
            # No buyer may take a test for a shop, nor a payment for a test.
            "test": ("free" if sandbox else "paid") if settings.rehearsal == "on" else "",
        }
        self._facts = {name: html.escape(value) for name, value in facts.items()}
        self._shell = lru_cache(maxsize=2 * PREFIXES_MAX)(self._make_shell)
        self._brand = Content.of((STATIC / "brand.css").read_bytes(), MEDIA_TYPES["css"])

    def routes(self) -> list[BaseRoute]:
        return [
            StarletteRoute("/", self.buyer),
            StarletteRoute("/sales/{sale_id}", self.buyer),
            StarletteRoute("/orders", self.buyer),
            StarletteRoute("/orders/{order_id}", self.buyer),
            StarletteRoute("/console", self.console),
            StarletteRoute("/brand.css", self.brand),
            StarletteRoute("/assets/{version}/{path:path}", self.asset),
        ]

    async def buyer(self, request: Request) -> Response:
        shell = self._shell("buyer.html", prefix_in(request.scope))
        return shell.answer(request, f"public, max-age={SHELL_MAX_AGE_S}", PAGE_HEADERS)

    async def console(self, request: Request) -> Response:
        shell = self._shell("console.html", prefix_in(request.scope))
        return shell.answer(request, f"public, max-age={SHELL_MAX_AGE_S}", PAGE_HEADERS)

    async def brand(self, request: Request) -> Response:
        return self._brand.answer(request, f"public, max-age={SHELL_MAX_AGE_S}", {"X-Content-Type-Options": "nosniff"})

    async def asset(self, request: Request) -> Response:
        found = self._assets.get(request.path_params["path"])
        if found is None:
            raise not_found()
        ours = request.path_params["version"] == self.version
        cache_control = f"public, max-age={FOR_EVER_S}, immutable" if ours else "no-store"
        return found.answer(request, cache_control, {"X-Content-Type-Options": "nosniff"})

    def _make_shell(self, name: str, prefix: str) -> Content:
        """What the page has of its own in its head, in the frame that all pages share."""
        base = html.escape(prefix)
        facts = self._facts | {"base": base, "assets": f"{base}/assets/{self.version}"}
        own = Template((STATIC / name).read_text(encoding="utf-8")).substitute(facts)
        text = Template((STATIC / "frame.html").read_text(encoding="utf-8")).substitute(facts, own=own)
        return Content.of(text.encode(), "text/html; charset=utf-8")


def nowhere(prefix: str) -> Response:
    """For a person who has mistyped an address. Programs get a problem."""
    page = NOWHERE.substitute(base=html.escape(prefix))
    return Response(page, 404, {**PAGE_HEADERS, "Vary": "Accept"}, "text/html; charset=utf-8")


@cache
def _assets() -> dict[str, Content]:
    """They are part of the package: packed once, also where one process makes several nodes."""
    return {path: _asset(STATIC / path) for folder in FOLDERS for path in _names(folder)}


def _names(folder: str) -> list[str]:
    found = []
    for entry in sorted((STATIC / folder).iterdir(), key=lambda entry: entry.name):
        path = f"{folder}/{entry.name}"
        if entry.is_dir():
            found += _names(path)
        elif path.rsplit(".", 1)[-1] in MEDIA_TYPES:
            found.append(path)
    return found


def _asset(file: Traversable) -> Content:
    return Content.of(file.read_bytes(), MEDIA_TYPES[file.name.rsplit(".", 1)[-1]])


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
