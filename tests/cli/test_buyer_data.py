"""`seckill export` and `seckill erase`, against an API on a port."""

import asyncio
import json
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from seckill.testing import memory_engine
from tests.cli.test_command_line import seckill
from tests.public.serving import on_a_port


async def test_one_buyer_is_shown_and_then_taken_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    async with memory_engine() as engine, on_a_port(engine.app) as url:
        monkeypatch.setenv("SECKILL_ADMIN_KEY", str(engine.operator._token))

        async def command(*arguments: str) -> int:
            return await asyncio.to_thread(seckill, monkeypatch, *arguments, "--url", url) or 0

        now = engine.now()
        sale = await engine.operator.create_sale("Phone", units=9, begins_at=now, ends_at=now + timedelta(hours=1))
        order = await engine.buyer("ann").claim(sale.id)
        await engine.settle()
        assert await command("export", "ann", "--out", "ann.json") == 0
        told = json.loads((tmp_path / "ann.json").read_text())
        assert [each["order_id"] for each in told["orders"]] == [order.order_id]
        assert stat.S_IMODE((tmp_path / "ann.json").stat().st_mode) == 0o600
        assert await command("erase", "ann") == 1
        said = capsys.readouterr()
        assert said.err.startswith(
            "seckill: Nothing was erased, because the gate still has records of a round of theirs"
        )
        assert await command("erase", "nobody") == 0
        assert capsys.readouterr().out.endswith("Nothing was held about them.\n")
