"""The programs in docs/python.md, run as they stand there."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from seckill.client import Client
from seckill.domain.webhook_signature import sign
from seckill.engine.webhooks.desk import new_secret
from seckill.settings import Settings
from seckill.testing import MemoryEngine, memory_engine
from tests.api.conftest import ADMIN_KEY, OPERATOR, sale_body
from tests.public.serving import on_a_port

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "python.md", ROOT / "docs" / "python.zh-CN.md"]


def programs(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


CLIENT, ASYNC_CLIENT, FOLLOWER, RECEIVER, MOUNTED, PROVIDER, CHECKED, TESTED, ENGINE = programs(PAGES[0])


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


def test_the_table_of_methods_has_all_of_them() -> None:
    table = re.search(r"\| for \| methods \|\n(.*?)\n\n", PAGES[0].read_text(), re.DOTALL)
    assert table
    elsewhere = {"signed_in", "close", "document"}  # told in the text, a context manager's, for our own commands
    methods = {name for name in vars(Client) if not name.startswith("_")}
    assert set(re.findall(r"`(\w+)", table[1])) == methods - elsewhere


def test_both_languages_show_the_same_programs() -> None:
    assert programs(PAGES[0]) == programs(PAGES[1])


async def test_the_client_buys(shop: Shop) -> None:
    assert await shop.run(CLIENT) == "unpaid 9900 CNY\npaid\n"


async def test_the_client_with_asyncio_looks(shop: Shop) -> None:
    now = shop.engine.now()
    await shop.engine.operator.create_sale("Kettle", units=1, begins_at=now, ends_at=now + timedelta(hours=1))
    assert (await shop.run(ASYNC_CLIENT)).startswith("Kettle open 20")


async def test_the_follower_goes_on_where_it_stopped(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    now = shop.engine.now()
    sale = await shop.engine.operator.create_sale("Voucher", units=2, begins_at=now, ends_at=now + timedelta(hours=1))
    for user in ("ann", "bob"):
        await shop.engine.buyer(user).claim(sale.id)
        await shop.engine.settle()
    told = [(await shop.run(FOLLOWER)).splitlines()[-1].split() for _ in range(2)]
    assert [(kind, buyer) for kind, _, buyer in told] == [("order.paid", "ann"), ("order.paid", "bob")]


async def test_the_receiver_takes_what_is_signed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    secret, now_s = new_secret(), int(time.time())
    monkeypatch.setenv("WEBHOOK_SECRET", secret)
    made: dict[str, Any] = {"__name__": "receiver"}
    exec(RECEIVER, made)
    body = b'{"type":"order.paid","timestamp":"2026-11-20T02:00:01Z","data":{}}'
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(now_s),
        "webhook-signature": sign([secret], "evt_1", now_s, body),
    }
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(made["app"]), base_url="http://shop") as http:
        answers = [await http.post("/webhooks", content=body, headers=headers) for _ in range(2)]
        forged = await http.post("/webhooks", content=body + b" ", headers=headers)
    assert [answer.json() for answer in answers] == ["ok", "known"]
    assert forged.status_code == 401
    assert capsys.readouterr().out == "order.paid {}\n"


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
