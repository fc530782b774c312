"""The programs in docs/python.md, run as they stand there."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from seckill.settings import Settings
from seckill.testing import MemoryEngine, memory_engine
from tests.api.conftest import ADMIN_KEY, OPERATOR, sale_body
from tests.public.serving import on_a_port

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "python.md", ROOT / "docs" / "python.zh-CN.md"]


def programs(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


CLIENT, ASYNC_CLIENT, MOUNTED, PROVIDER, CHECKED, TESTED, ENGINE = programs(PAGES[0])


@dataclass
class Shop:
    engine: MemoryEngine
    url: str

    async def run(self, program: str) -> str:
        environ = {"PYTHONPATH": str(ROOT), "URL": self.url, "TOKEN": self.engine.token("ann")}
        assert self.engine.settings.admin_key is not None
        environ["ADMIN_KEY"] = self.engine.settings.admin_key.reveal()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, env=environ, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        assert process.returncode == 0
        return printed.decode()


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with memory_engine() as engine, on_a_port(engine.app) as url:
        yield Shop(engine, url)


def test_both_languages_show_the_same_programs() -> None:
    assert programs(PAGES[0]) == programs(PAGES[1])


async def test_the_client_buys(shop: Shop) -> None:
    assert await shop.run(CLIENT) == "unpaid 9900 CNY\npaid\n"


async def test_the_client_with_asyncio_looks(shop: Shop) -> None:
    now = shop.engine.now()
    await shop.engine.operator.create_sale("Kettle", units=1, begins_at=now, ends_at=now + timedelta(hours=1))
    assert (await shop.run(ASYNC_CLIENT)).startswith("Kettle open 20")


async def test_the_application_is_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECKILL_REDIS_URL", "memory://")
    monkeypatch.setenv("SECKILL_ADMIN_KEY", ADMIN_KEY)
    monkeypatch.setenv("SECKILL_JWT_SECRET", "x8Kq2Lw0Zr5Tn7Vx3Bc9Ym1Kp6Hd4Fs8Qa2")
    made: dict[str, Any] = {}
    exec(MOUNTED, made)
    async with made["sale"].lifespan():
        transport = httpx2.ASGITransport(made["app"])
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop") as http:
            sale = await http.post("/sale/v1/sales", json=sale_body(), headers=OPERATOR)
            assert sale.headers["location"].startswith("/sale/v1/sales/")


def test_the_provider_and_the_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest('pytest_plugins = ["seckill.testing.fixtures"]')
    pytester.makepyfile(shop_payment=PROVIDER, test_provider=CHECKED, test_shop=TESTED)
    pytester.makeini("[pytest]\nasyncio_mode = auto\n")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


async def test_the_providers_factory_is_one() -> None:
    made: dict[str, Any] = {}
    exec(PROVIDER, made)
    assert made["make"](Settings()).name == "bank"


def test_the_engine_is_opened(redis_url: str, sqlite_database: str) -> None:
    environ = {
        "PYTHONPATH": str(ROOT),
        "SECKILL_REDIS_URL": redis_url,
        "SECKILL_DATABASE_URL": sqlite_database,
        "SECKILL_DURABILITY": "fast",
    }
    done = subprocess.run([sys.executable, "-c", ENGINE], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
