"""A real browser and a real `seckill up`, each started once for all tests here."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.api.test_door_services import SECRET, site_verify, stand_in
from tests.browser.shop import Shop, open_shop
from tests.browser.visiting import PICTURE_HOST, Visit
from tests.e2e.stack import Stack, running
from tests.fixtures import missing

HERE = Path(__file__).parent
# The first is the same engine without the browser around it: a page takes a third of the CPU time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--disable-background-networking", "--disable-component-update", "--no-first-run"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One event loop for all of them: browser and server outlive a test."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = next((found for found in map(shutil.which, NAMES) if found), None)
    if path is None:
        missing("There is no Chromium: tests/get-chromium installs it")
    arguments = ARGUMENTS + (["--no-sandbox"] if os.getuid() == 0 else [])
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as shop:
        yield shop


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def stack(shop: Shop) -> AsyncIterator[Stack]:
    settings = {
        "SECKILL_DEMO_SIGN_IN": "on",
        "SECKILL_IMAGE_HOSTS": PICTURE_HOST,
        "SECKILL_ORIGINS": shop.url,
        "SECKILL_RETRY_DELAYS_S": "0.1,0.1",
        "SECKILL_GATE_TIMEOUT_S": "10",  # a busy machine is not what is tested here
    }
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
        stack = Stack(Path(name), settings=settings)
        async with running(stack):
            yield stack


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, stack: Stack) -> AsyncIterator[Visit]:
    """Opens pages, and looks at the end whether anything went wrong in any of them."""
    visit = Visit(browser, stack)
    yield visit
    await visit.end()


WIDGET = b"""globalThis.turnstile = { render(place, { sitekey, callback }) {
  place.textContent = `widget of ${sitekey}`;
  setTimeout(() => callback("good-" + Math.random()), 50);
} };"""


@pytest_asyncio.fixture(loop_scope="session")
async def checked(browser: Browser, shop: Shop) -> AsyncIterator[Visit]:
    """A shop with a captcha service, whose widget and siteverify stand in for a real one's."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nContent-Length: {len(WIDGET)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + WIDGET)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(script, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with stand_in(site_verify()) as service:
        settings = {
            "SECKILL_CHECK_URL": service.url,
            "SECKILL_CHECK_SECRET": SECRET,
            "SECKILL_CHECK_SITE_KEY": "site-1",
            "SECKILL_CHECK_SCRIPT_URL": f"http://127.0.0.1:{port}/api.js",
            "SECKILL_CHECK_WITHIN_S": "30",
            "SECKILL_ORIGINS": shop.url,
        }
        with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
            stack = Stack(Path(name), settings=settings)
            async with running(stack):
                visit = Visit(browser, stack)
                yield visit
                for context in visit._contexts:
                    await context.close()
    server.close()
