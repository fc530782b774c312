"""The pages: a shell for each, and the files that it loads. They are the same for every buyer, so a CDN can keep them.
The list and a sale begin with a first view that is drawn here (first_view.py).

An asset's address contains a digest of all assets, so it may be cached for ever, and modules find each other by
relative addresses. While nodes are being replaced, a node may be asked for another version's asset: it answers with its
own and forbids caching it. `embed.js`, for the pages of shops, is cached as briefly as a shell, or for ever under its
digest.
"""

import gzip
import hashlib
import html
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from seckill.errors import LedgerError
from seckill.ports.payment import PaymentProvider, has_checkout
from seckill.settings import Settings
from seckill.web.buyers.demo_sign_in import signs_anybody_in
from seckill.web.context import context
from seckill.web.mounting import prefix_in
from seckill.web.pages.content_security_policy import check_hosts_of, page_headers
from seckill.web.pages.first_view import FirstView, language_tag, page_around, view_of_list, view_of_sale
from seckill.web.problems import not_found
from seckill.web.sales.calendar_file import show_calendar
from seckill.web.sales.sale_list import timeless
from seckill.web.sales.sales import sale_list, view
from seckill.web.schemas import Sale

STATIC = files("seckill.web") / "static"
SITE = files("seckill.web") / "help"  # the documents, where they have been built (help_pages.py)
EMBED_PATHS = ("/embed.js", "/embed/{version}.js")
# The modules that embed.js loads when it needs them, with their imports.
EMBED_LOADS = tuple(
    f"/assets/{{version}}/{path}"
    for path in (
        "vendor/uqr/uqr.mjs",
        "app/codes_parts.js",
        "app/line_parts.js",
        "app/door_parts.js",
        "app/texts/en.js",
        "app/texts/ja.js",
        "app/texts/zh.js",
        "app/worker.js",
        "app/work.js",
        "app/sha256.js",
    )
)
# The placeholder that embed/build.mjs leaves in the script for the server to fill in.
EMBED_FACTS = b'"__SECKILL_FACTS__"'
FOLDERS = ("app", "bundle", "vendor/htm", "vendor/preact", "vendor/uplot", "vendor/uqr")
MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Every client sees a new release after this time at the latest.
SHELL_MAX_AGE_S = 60
# A drawn view of a sale may be this old, until the script has asked for news.
FIRST_VIEW_MAX_AGE_S = 10
FOR_EVER_S = 365 * 24 * 3600
# How many prefixes one process serves, each with pages of its own. A prefix may be a parameter of the surrounding
# application, so it may come from a request.
PREFIXES_MAX = 16
# How many first views are kept ready. Each is drawn and packed once for as long as its sale does not change.
FIRST_VIEWS_MAX = 256


NOWHERE = Template(
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>Not found</title>"
    # Whatever the version is called: a node answers with its own.
    '<link rel="stylesheet" href="${base}/assets/own/bundle/buyer.css"><link rel="stylesheet" href="${base}/brand.css">'
    '<main><h1>404</h1><div class="empty"><p>There is nothing here.<br><span lang="zh-CN">页面不存在。</span></p>'
    '<a class="button quiet" href="${base}/">All sales ·&nbsp;<span lang="zh-CN">全部秒杀</span></a>'
    "</div></main></html>"
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
        # Without a time in it, so that every node makes the same bytes.
        return cls(body, gzip.compress(body, mtime=0), f'"{_digest(body)}"', media_type)

    def answer(self, request: Request, cache_control: str, extra: dict[str, str]) -> Response:
        packs = "gzip" in request.headers.get("accept-encoding", "")
        # Each form has its own tag: a cache that compares tags must not confuse them.
        etag = f'{self.etag[:-1]}-gz"' if packs else self.etag
        headers = {"Cache-Control": cache_control, "ETag": etag, "Vary": "Accept-Encoding", **extra}
        if etag in request.headers.get("if-none-match", ""):
            return Response(None, 304, headers)
        if packs:
            return Response(self.packed, 200, headers | {"Content-Encoding": "gzip"}, self.media_type)
        return Response(self.plain, 200, headers, self.media_type)


class Pages:
    def __init__(self, settings: Settings, provider: PaymentProvider) -> None:
        no_money_moves = provider.sandbox or getattr(provider, "test_mode", False)
        self._assets = _assets()
        self.version = version_of_assets()
        facts = {
            "shop": settings.shop_name,
            "demo": "on" if signs_anybody_in(settings) else "off",
            "sign_in": settings.sign_in_url,
            "sandbox": "on" if provider.sandbox else "off",
            "checkout": "on" if has_checkout(provider) else "off",
            "pay": settings.pay_url,
            "groups": settings.jwt_groups_claim,
            "check_script": settings.check_script_url,
            "help": "on" if (SITE / "index.html").is_file() else "",
            "oidc": (settings.oidc_name or urlsplit(settings.oidc_url).netloc) if settings.oidc_url else "",
            # No buyer may take a test for a shop, nor a payment for a test.
            "test": ("free" if no_money_moves else "paid") if settings.rehearsal == "on" else "",
        }
        self._facts = {name: html.escape(value) for name, value in facts.items()}
        of_embed = {
            "sign-in": facts["sign_in"],
            "assets": self.version,
            "check-script": facts["check_script"],
            **{name: facts[name] for name in ("sandbox", "checkout", "pay", "groups", "test")},
        }
        self._embed = _embed_script(msgspec.json.encode(of_embed))
        self._headers = page_headers(settings.image_hosts, check_hosts_of(settings))
        self._shop, self._test = settings.shop_name, facts["test"]
        self._shell = lru_cache(maxsize=2 * PREFIXES_MAX)(self._make_shell)
        self._sale_page = lru_cache(maxsize=FIRST_VIEWS_MAX)(self._make_sale_page)
        self._list_page = lru_cache(maxsize=PREFIXES_MAX)(self._make_list_page)
        self._brand = Content.of((STATIC / "brand.css").read_bytes(), MEDIA_TYPES["css"])

    def routes(self) -> list[BaseRoute]:
        return [
            StarletteRoute("/", self.list_of_sales),
            StarletteRoute("/sales/{sale_id}", self.sale),
            StarletteRoute("/sales/{sale_id}/calendar.ics", show_calendar),
            StarletteRoute("/orders", self.buyer),
            StarletteRoute("/orders/{order_id}", self.buyer),
            StarletteRoute("/console", self.console),
            StarletteRoute("/brand.css", self.brand),
            StarletteRoute("/assets/{version}/{path:path}", self.asset),
            *(StarletteRoute(path, self.embed) for path in EMBED_PATHS),
        ]

    async def list_of_sales(self, request: Request) -> Response:
        ctx = context(request)
        try:
            await ctx.sale_cache.look_first()
        except LedgerError:
            return await self.buyer(request)  # the script says so, and asks again
        sales = sale_list(ctx, None)
        page = self._list_page(prefix_in(request.scope), sales.many, sales.going)
        return page.answer(request, f"public, max-age={FIRST_VIEW_MAX_AGE_S}", self._headers)

    async def sale(self, request: Request) -> Response:
        ctx = context(request)
        try:
            found = await ctx.sale_cache.find(request.path_params["sale_id"])
        except LedgerError:
            found = None  # the script says so, and asks again
        if found is None or ctx.sale_cache.public_id(found) != request.path_params["sale_id"]:
            return await self.buyer(request)
        content = msgspec.json.encode(timeless(view(ctx, found)))
        page = self._sale_page(prefix_in(request.scope), content)
        return page.answer(request, f"public, max-age={FIRST_VIEW_MAX_AGE_S}", self._headers)

    async def buyer(self, request: Request) -> Response:
        shell = self._shell("buyer.html", prefix_in(request.scope))
        return shell.answer(request, f"public, max-age={SHELL_MAX_AGE_S}", self._headers)

    async def console(self, request: Request) -> Response:
        shell = self._shell("console.html", prefix_in(request.scope))
        return shell.answer(request, f"public, max-age={SHELL_MAX_AGE_S}", self._headers)

    async def brand(self, request: Request) -> Response:
        return self._brand.answer(request, f"public, max-age={SHELL_MAX_AGE_S}", {"X-Content-Type-Options": "nosniff"})

    async def asset(self, request: Request) -> Response:
        found = self._assets.get(request.path_params["path"])
        if found is None:
            raise not_found()
        ours = request.path_params["version"] == self.version
        cache_control = f"public, max-age={FOR_EVER_S}, immutable" if ours else "no-store"
        return found.answer(request, cache_control, {"X-Content-Type-Options": "nosniff"})

    async def embed(self, request: Request) -> Response:
        version = self._embed.etag.strip('"')
        given = request.path_params.get("version")
        cache_control = f"public, max-age={SHELL_MAX_AGE_S if given is None else FOR_EVER_S}"
        if given is not None:
            cache_control = f"{cache_control}, immutable" if given == version else "no-store"
        return self._embed.answer(
            request,
            cache_control,
            {
                "X-Content-Type-Options": "nosniff",
                # Other sites may load it, including pages that are isolated from all resources without this header.
                "Cross-Origin-Resource-Policy": "cross-origin",
                "Content-Location": f"{prefix_in(request.scope)}/embed/{version}.js",
            },
        )

    def _make_sale_page(self, prefix: str, content: bytes) -> Content:
        return self._make_shell("buyer.html", prefix, view_of_sale(msgspec.json.decode(content, type=Sale), prefix))

    def _make_list_page(self, prefix: str, many: int, content: bytes) -> Content:
        sales = msgspec.json.decode(content, type=list[Sale])
        return self._make_shell("buyer.html", prefix, view_of_list(sales, many, self._shop, prefix))

    def _make_shell(self, name: str, prefix: str, first: FirstView | None = None) -> Content:
        """Puts the page's own head into the frame that all pages share."""
        base = html.escape(prefix)
        facts = self._facts | {"base": base, "assets": f"{base}/assets/{self.version}"}
        facts |= {"lang": "en", "title": self._facts["shop"], "head": "", "data": "", "first": ""}
        if first is not None:
            facts |= {
                "lang": language_tag(first),
                "title": html.escape(first.title),
                "head": first.head,
                "data": html.escape(first.data.decode()),
                "first": page_around(first, self._shop, self._test, prefix),
            }
        own = Template((STATIC / name).read_text(encoding="utf-8")).substitute(facts)
        text = Template((STATIC / "frame.html").read_text(encoding="utf-8")).substitute(facts, own=own)
        return Content.of(text.encode(), "text/html; charset=utf-8")


def nowhere(prefix: str) -> Response:
    """For a person who has mistyped an address. Programs get a problem."""
    page = NOWHERE.substitute(base=html.escape(prefix))
    return Response(page, 404, {**page_headers(), "Vary": "Accept"}, "text/html; charset=utf-8")


@lru_cache(maxsize=PREFIXES_MAX)
def _embed_script(facts: bytes) -> Content:
    """Packed once, even where one process makes several nodes."""
    script = (files("seckill.web") / "embed.js").read_bytes()
    return Content.of(script.replace(EMBED_FACTS, facts), MEDIA_TYPES["js"])


@cache
def _assets() -> dict[str, Content]:
    """The assets are part of the package. They are packed once, even where one process makes several nodes."""
    return {path: _asset(STATIC / path) for folder in FOLDERS for path in _names(folder)}


@cache
def version_of_assets() -> str:
    """Packs the assets if that has not been done yet, so that processes forked from this one share them."""
    return _digest(b"".join(path.encode() + b"\0" + content.plain for path, content in _assets().items()))


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
