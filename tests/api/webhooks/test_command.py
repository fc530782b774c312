"""`seckill webhook` and the clients, against an API on a port and a keeper that sends."""

import asyncio
import json

import pytest

from seckill.client import AsyncClient, Client, NotFound
from tests.api.conftest import ADMIN_KEY
from tests.api.webhooks.conftest import Shop
from tests.api.webhooks.test_delivery import never
from tests.cli.test_command_line import seckill
from tests.public.serving import on_a_port


async def test_commands(shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SECKILL_ADMIN_KEY", ADMIN_KEY)

    async def said(*arguments: str, code: int = 0) -> str:
        done = await asyncio.to_thread(seckill, monkeypatch, "webhook", *arguments, "--url", url)
        told = capsys.readouterr()
        assert (done or 0) == code, told
        return told.out + told.err

    async with on_a_port(shop.node.api) as url, shop.keepers():
        assert await said("list") == "No webhooks.\n"
        made = await said("create", shop.receiver.url(), "--type", "order.*", "--type", "sale.created")
        assert "shown this once" in made
        assert "order.*, sale.created" in made
        assert "whsec_" not in await said("show", "1")
        assert "HTTP 200" in await said("test", "1")
        shop.receiver.answer = never
        failed = await said("test", "1")
        assert "HTTP 500" in failed
        assert "failed" in failed
        listed = await said("deliveries", "1", "--state", "failed")
        assert "webhook.test" in listed
        delivery = json.loads(await said("deliveries", "1", "--limit", "1", "--json"))["deliveries"][0]
        assert "failed" in await said("redeliver", "1", delivery["id"])
        assert "--after" in await said("deliveries", "1", "--limit", "1")
        changed = json.loads(await said("change", "1", "--type", "all", "--no-enabled", "--json"))
        assert (changed["types"], changed["disabled_by"]) == (None, "operator")
        assert "disabled (operator)" in await said("list")
        rotated = json.loads(await said("rotate", "1", "--overlap-hours", "0", "--json"))
        assert rotated["secret"].startswith("whsec_")
        assert rotated["overlap_until"] is None
        assert "must be" in await said("rotate", "1", "--overlap-hours", "1000", code=1)
        assert "public address" not in await said("change", "1", "--to", "https://a.example:22/", code=1)
        assert "deleted" in await said("delete", "1")
        assert "There is no webhook 1." in await said("show", "1", code=1)


async def test_clients(shop: Shop) -> None:
    async with on_a_port(shop.node.api) as url, shop.keepers():
        async with AsyncClient(url, ADMIN_KEY) as operator:
            made = await operator.create_webhook(shop.receiver.url(), types=["order.*"], description="mine")
            assert isinstance(made.secret, str)
            assert (await operator.test_webhook(made.id)).status == 200
            assert [each.id for each in await operator.webhooks()] == [made.id]
            changed = await operator.change_webhook(made.id, {"types": None, "enabled": False})
            assert (changed.types, changed.enabled) == (None, False)
            [tested] = (await operator.webhook_deliveries(made.id, state="delivered")).deliveries
            assert (await operator.redeliver_webhook(made.id, tested.id, wait_s=20)).tries == 2
        await asyncio.to_thread(use_blocking, url, made.id)


def use_blocking(url: str, webhook_id: str) -> None:
    with Client(url, ADMIN_KEY) as operator:
        rotated = operator.rotate_webhook(webhook_id, overlap_hours=2)
        assert rotated.overlap_until is not None
        assert operator.webhook(webhook_id).description == "mine"
        assert operator.delete_webhook(webhook_id) is None
        with pytest.raises(NotFound):
            operator.webhook(webhook_id)
