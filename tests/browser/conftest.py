"""A real browser and a real `seckill up`, each started once for all tests here."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.visiting import Visit
from tests.e2e.stack import Stack, running
from tests.fixtures import missing

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome")
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
async def stack() -> AsyncIterator[Stack]:
    settings = {
        "SECKILL_DEMO_SIGN_IN": "on",
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
