"""`seckill orders`, against an API on a port."""

import asyncio
import csv
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from seckill.client import asynchronous
from seckill.testing import memory_engine
from tests.cli.test_command_line import seckill
from tests.public.serving import on_a_port


@dataclass
class Shop:
    url: str
    sale_id: str
    bought: list[str]

    async def command(self, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
        return await asyncio.to_thread(seckill, monkeypatch, "orders", *arguments, "--url", self.url) or 0


@pytest.fixture
async def shop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Shop]:
    monkeypatch.chdir(tmp_path)
    async with memory_engine() as engine, on_a_port(engine.app) as url:
        now = engine.now()
        sale = await engine.operator.create_sale("Phone", units=9, begins_at=now, ends_at=now + timedelta(hours=1))
        bought = [(await engine.buyer(user).claim(sale.id)).order_id for user in ("ann", "bob", "eve")]
        await engine.settle()
        monkeypatch.setenv("SECKILL_ADMIN_KEY", str(engine.operator._token))
        yield Shop(url, sale.id, bought)


async def test_a_page_and_how_to_go_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await shop.command(monkeypatch, "list", "--sale", shop.sale_id, "--limit", "2") == 0
    said = capsys.readouterr().out
    assert [order_id in said for order_id in shop.bought] == [False, True, True]
    assert "eve" in said
    assert f"--after {shop.bought[1]}" in said
    assert await shop.command(monkeypatch, "list", "--after", shop.bought[1], "--json") == 0
    (one,) = json.loads(capsys.readouterr().out)["orders"]
    assert one["order"]["order_id"] == shop.bought[0]
    assert await shop.command(monkeypatch, "list", "--state", "expired") == 0
    assert capsys.readouterr().out == "No orders.\n"


async def test_exports_go_to_a_file_or_to_the_standard_output(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    monkeypatch.setattr(asynchronous, "EXPORTED_AT_ONCE", 2)
    assert await shop.command(monkeypatch, "export", "--sale", shop.sale_id, "--out", "orders.csv") == 0
    with (tmp_path / "orders.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["order_id"], row["buyer"], row["state"]) for row in rows] == [
        (order_id, user, "paid") for order_id, user in zip(shop.bought[::-1], ("eve", "bob", "ann"), strict=True)
    ]
    assert await shop.command(monkeypatch, "export", "--format", "jsonl", "--buyer", "bob") == 0
    (line,) = capfdbinary.readouterr().out.splitlines()
    assert json.loads(line)["order_id"] == shop.bought[1]


async def test_an_export_that_fails_leaves_the_file_before_and_no_half_of_one(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("yesterday's")
    before = set(tmp_path.iterdir())
    assert await shop.command(monkeypatch, "export", "--sale", "NOTHING", "--out", "orders.csv") == 1
    assert (tmp_path / "orders.csv").read_text() == "yesterday's"
    assert set(tmp_path.iterdir()) == before
    assert await shop.command(monkeypatch, "export", "--sale", shop.sale_id, "--out", "orders.csv") == 0
    assert (tmp_path / "orders.csv").read_text().startswith("order_id,")
    assert set(tmp_path.iterdir()) == before
    assert await shop.command(monkeypatch, "export", "--out", "/dev/null") == 0
    assert not Path("/dev/null").is_file()


async def test_what_cannot_be_done_is_one_sentence(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, sentence in (
        (("export", "--sale", "NOTHING"), "sale_id: there is no such sale"),
        (("list", "--since", "2026-11-20T10:00:00"), "since: must be a time with its offset"),
        (("export", "--out", "no/such/folder/orders.csv"), "cannot be written (No such file or directory)"),
    ):
        assert await shop.command(monkeypatch, *arguments) == 1
        said = capsys.readouterr().err
        assert sentence in said
        assert said.count("\n") == 1
