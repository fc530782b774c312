"""`seckill voucher`, against an API on a port, and the client that it is made of."""

import asyncio
import io
import json
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from seckill.client import AsyncClient, Conflict, Denied, Invalid, NotFound, Sale
from seckill.testing import memory_engine
from seckill.testing.memory import MemoryEngine
from tests.cli.test_command_line import seckill
from tests.public.serving import on_a_port


@dataclass
class Shop:
    url: str
    engine: MemoryEngine
    sale: Sale

    async def command(self, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
        return await asyncio.to_thread(seckill, monkeypatch, "voucher", *arguments, "--url", self.url) or 0


@pytest.fixture
async def shop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Shop]:
    monkeypatch.chdir(tmp_path)
    async with memory_engine() as engine, on_a_port(engine.app) as url:
        now = engine.now()
        sale = await engine.operator.create_sale(
            "Coupon", units=2, begins_at=now, ends_at=now + timedelta(hours=1), vouchers=True
        )
        monkeypatch.setenv("SECKILL_ADMIN_KEY", str(engine.operator._token))
        yield Shop(url, engine, sale)


async def test_upload_count_redeem(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "codes.csv").write_text("A-1\nA-2\n")
    assert await shop.command(monkeypatch, "count", shop.sale.id) == 0
    assert "2 are missing" in capsys.readouterr().out
    assert await shop.command(monkeypatch, "upload", shop.sale.id, "codes.csv") == 0
    assert "2 codes added.\n2 codes: 2 free, 0 given" in capsys.readouterr().out
    order_id = (await shop.engine.buyer("ann").claim(shop.sale.id)).order_id
    await shop.engine.settle()
    assert (await shop.engine.buyer("ann").order(order_id)).codes == ["A-1"]
    assert await shop.command(monkeypatch, "redeem", "A-1") == 0
    assert re.match(rf"Redeemed at .*, order {order_id} of ann\.", capsys.readouterr().out)
    assert await shop.command(monkeypatch, "redeem", "A-1") == 1
    assert "redeemed before" in capsys.readouterr().err
    assert await shop.command(monkeypatch, "show", "A-1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "redeemed"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A-3\nA-1\n")))
    assert await shop.command(monkeypatch, "upload", shop.sale.id, "-") == 1
    assert "Line 2 has a code that was uploaded before" in capsys.readouterr().err
    assert await shop.command(monkeypatch, "upload", shop.sale.id, "nothing.csv") == 1


async def test_the_client_and_large_uploads(shop: Shop) -> None:
    operator = shop.engine.operator
    added = await operator.upload_vouchers(shop.sale.id, ['a,"b"', "c"])
    assert (added.added, added.missing) == (2, 0)
    assert (await operator.voucher('a,"b"')).state == "free"
    with pytest.raises(Conflict):
        await operator.redeem_voucher("c")
    with pytest.raises(NotFound):
        await operator.redeem_voucher("x")
    with pytest.raises(Invalid, match="Line 2 has the same code as line 1"):
        await operator.upload_vouchers(shop.sale.id, ["d", "d"])
    many = b"".join(b"CODE-%015d\n" % number for number in range(200_000))
    async with AsyncClient(shop.url, str(operator._token), repeat_for_s=0) as client:
        assert (await client.upload_vouchers(shop.sale.id, many)).added == 200_000
        with pytest.raises(Invalid, match="Line 1 has a code that was uploaded before"):
            await client.upload_vouchers(shop.sale.id, many)
        # Answered at once, although most of it is still to be sent.
        with pytest.raises(Denied):
            await client.signed_in("no-key").upload_vouchers(shop.sale.id, many * 20)
    assert (await operator.count_vouchers(shop.sale.id)).codes == 200_002
