"""A test's visit to the pages in a browser."""

import asyncio
import contextlib
import json
import os
import re
import signal
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route, expect

from seckill.backends.payment.callback_signature import HEADER, signature
from seckill.local.data_folder import read_secrets
from seckill.settings.redaction import Secret
from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S

# A busy machine may take this long. Nothing here does when all is well.
PATIENCE_MS = 1000 * PATIENCE_S
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1440, "height": 900}
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()
# The host of the shop's pictures, which SECKILL_IMAGE_HOSTS names.
PICTURE_HOST = "cdn.example.com"
# A browser logs these for every answer that is a refusal, and for connections that a test has cut on purpose.
EXPECTED = ("Failed to load resource", "WebSocket connection to")

expect.set_options(timeout=PATIENCE_MS)


def buyer(stack: Stack, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {stack.token(user)}"}


def operator(stack: Stack) -> dict[str, str]:
    return {"Authorization": f"Bearer {admin_key(stack)}"}


def admin_key(stack: Stack) -> str:
    key = stack.settings.admin_key
    assert key is not None
    return key.reveal()


async def ask(stack: Stack, method: str, path: str, headers: dict[str, str], **body: Any) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
        response = await http.request(method, path, json=body or None, headers=headers)
        assert response.status_code < 300, response.text
        content: dict[str, Any] = response.json()
        return content


async def upload(stack: Stack, picture: bytes) -> str:
    """Returns the address of a picture that an operator has uploaded."""
    async with httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
        made = await http.post("/v1/admin/images", content=picture, headers=operator(stack))
    assert made.status_code == 201, made.text
    return str(made.json()["url"])


async def orders_of(stack: Stack, user: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await ask(stack, "GET", "/v1/orders", buyer(stack, user)))["orders"]
    return found


async def buy(stack: Stack, sale: dict[str, Any], user: str, **body: Any) -> str:
    accepted = await ask(stack, "POST", f"/v1/sales/{sale['id']}/orders", buyer(stack, user), **body)
    await ask(stack, "GET", f"/v1/orders/{accepted['order_id']}?wait=30", buyer(stack, user))
    return str(accepted["order_id"])


async def notify(stack: Stack, order: dict[str, Any], payment_id: str) -> None:
    """The shop's payment side says that it has the money for this order."""
    secrets = read_secrets(stack.data)
    assert secrets is not None
    fields = {"payment_id": payment_id, **{name: order[name] for name in ("order_id", "currency")}}
    body = json.dumps(fields | {"amount_cents": order["price_cents"]}).encode()
    headers = {HEADER: signature(Secret(secrets.payment_secret), body, int(time.time()))}
    async with httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
        response = await http.post("/v1/payments/callback", content=body, headers=headers)
    assert response.status_code in (200, 202), response.text


def in_s(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


@contextlib.contextmanager
def stopped(stack: Stack, role: str = "worker") -> Iterator[None]:
    """Orders stay queued meanwhile; without the keeper, units that were given back stay on their way."""
    with standing_still(stack.pids(role)):
        yield


@contextlib.contextmanager
def standing_still(pids: Sequence[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


async def sale_called(stack: Stack, title: str) -> dict[str, Any]:
    """One that was announced on a page: the process that is asked here may be another one, which hears of it a moment
    later."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            sales: list[dict[str, Any]] = (await ask(stack, "GET", "/v1/sales", operator(stack)))["sales"]
            found = [sale for sale in sales if sale["title"] == title]
            if found:
                return found[0]
            await asyncio.sleep(0.02)


async def until_all_say(stack: Stack, sale: dict[str, Any], state: str) -> None:
    """An API process hears of what another has changed a moment later, and a page may ask either. So each is asked,
    while the others stand still: they share the port."""
    pids = stack.pids("api")
    async with asyncio.timeout(PATIENCE_S):
        for asked in pids:
            with standing_still([pid for pid in pids if pid != asked]):
                while (await ask(stack, "GET", f"/v1/sales/{sale['id']}", {}))["state"] != state:
                    await asyncio.sleep(0.02)


class Visit:
    def __init__(self, browser: Browser, stack: Stack) -> None:
        self._browser = browser
        self.stack = stack
        self.faults: list[str] = []
        self.addresses: list[str] = []
        self.hosts = {urlsplit(stack.url).netloc, PICTURE_HOST}  # that pages may ask
        self._contexts: list[BrowserContext] = []

    async def page(self, viewport: dict[str, int] = PHONE, locale: str = "en-GB", **options: Any) -> Page:
        # Without motion: what is being faded in has no contrast yet, and axe would say so.
        context = await self._browser.new_context(
            viewport={"width": viewport["width"], "height": viewport["height"]},
            locale=locale,
            reduced_motion="reduce",
            **options,
        )
        self._contexts.append(context)
        await context.route(f"https://{PICTURE_HOST}/**", _answer_picture)
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.faults.append(f"error in the page: {error}"))
        page.on("request", self._asked)
        return page

    async def sale_page(self, sale: dict[str, Any], user: str, **options: Any) -> Page:
        """Signed in as a shop would do it: with the token in the fragment."""
        page = await self.page(**options)
        await page.goto(f"{self.stack.url}/sales/{sale['id']}#token={self.stack.token(user)}")
        await expect(page.locator("h1")).to_have_text(sale["title"])
        return page

    async def console(self, *, key: str | None = None, **options: Any) -> Page:
        """Signed in with the admin key, or with another."""
        page = await self.page(DESKTOP, **options)
        await page.goto(f"{self.stack.url}/console")
        await page.fill("input[name=key]", key or admin_key(self.stack))
        await page.click("button[type=submit]")
        await expect(page.locator("aside")).to_be_visible()
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(EXPECTED):
            self.faults.append(f"{message.type} in the console: {message.text}")

    def _asked(self, request: Request) -> None:
        self.addresses.append(request.url)
        if urlsplit(request.url).netloc not in self.hosts and not request.url.startswith("data:"):
            self.faults.append(f"a request to another host: {request.url}")

    async def end(self) -> None:
        for context in self._contexts:
            await context.close()
        assert self.faults == [], self.faults
        assert not [url for url in self.addresses if re.search("[?&#]token|eyJ", url)], "a token in an address"


def picture(red: int, green: int, blue: int, width: int = 64, height: int = 48) -> bytes:
    """A PNG of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes((red, green, blue)) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


async def _answer_picture(route: Route) -> None:
    if "gone" in route.request.url:
        await route.fulfill(status=404)
    else:
        await route.fulfill(body=picture(180, 120, 60), content_type="image/png")


async def with_settings(page: Page, address: str, **settings: str) -> None:
    """Says to the page what the server says with other settings."""

    async def changed(route: Route) -> None:
        answer = await route.fetch()
        text = await answer.text()
        for name, value in settings.items():
            text = re.sub(rf'(seckill-{name}" content=")[^"]*', rf"\g<1>{value}", text)
        await route.fulfill(response=answer, body=text)

    await page.route(address, changed)


async def press(page: Page) -> None:
    button = page.locator("[data-action=buy]")
    await expect(button).to_be_enabled()
    await button.click()


async def order_is(page: Page, state: str) -> None:
    await expect(page.locator("[data-order-state]")).to_have_attribute("data-order-state", state)


async def shown_order(page: Page) -> str:
    await expect(page.locator("[data-order-state]")).to_be_visible()
    text = await page.locator(".product-text").inner_text()
    return next(word for word in text.split() if word.count("-") == 2).replace("-", "")


async def violations(page: Page, where: str = "document") -> list[tuple[str, str]]:
    """Returns the violations that axe finds, each with its impact."""
    await page.evaluate(AXE)
    found = await page.evaluate(f"axe.run({where}, {{resultTypes: ['violations']}})")
    return [
        (
            violation["impact"],
            f"{violation['id']}: {violation['nodes'][0]['html']} {violation['nodes'][0].get('failureSummary', '')}",
        )
        for violation in found["violations"]
    ]


async def serious(page: Page) -> list[str]:
    """Returns the violations that axe calls serious or worse."""
    return [text for impact, text in await violations(page) if impact in ("serious", "critical")]
