"""A shop of `examples/` and seckill as real processes: sold, paid, followed, killed, refunded."""

import ast
import hashlib
import hmac
import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
import run

from seckill.client import AsyncClient
from seckill.lab.servers.ports import free_port
from seckill.local.data_folder import read_secrets
from seckill.local.tether import tethered
from tests.examples.shops import STOCK, Bookshop, Shop, TeaShop, found, open_shop, until
from tests.patience import PATIENCE_S


async def bank_tells(shop: Shop, order_id: str) -> None:
    """Money for an order arrives while the shop is away."""
    secrets = read_secrets(shop.stack.data)
    assert secrets is not None
    payment = {"payment_id": f"bank-{order_id}", "order_id": order_id, "amount_cents": 990, "currency": "EUR"}
    body, now = json.dumps(payment).encode(), int(time.time())
    mac = hmac.new(secrets.payment_secret.encode(), b"%d." % now + body, hashlib.sha256).hexdigest()
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        headers = {"Seckill-Signature": f"t={now},v1={mac}"}
        answer = await http.post(f"{shop.stack.url}/v1/payments/callback", content=body, headers=headers)
    assert answer.json()["state"] == "paid"


def operator(shop: Shop) -> AsyncClient:
    secrets = read_secrets(shop.stack.data)
    assert secrets is not None
    return AsyncClient(shop.stack.url, secrets.admin_key, within_s=PATIENCE_S)


@pytest.mark.parametrize("kind", [TeaShop, Bookshop], ids=lambda kind: kind.name)
async def test_a_sale_in_a_shop(kind: type[Shop], folder: Path) -> None:
    async with open_shop(kind, folder) as shop, operator(shop) as seckill:
        staff, ann, bob = [await shop.sign_in(name) for name in ("staff", "ann", "bob")]

        await speaks_both_languages(shop)

        # Units set aside for the sale are not sold from the shelf, and no more can be set aside than there are.
        await shop.announce(staff, STOCK + 1)
        assert await shop.shelf(staff) == (STOCK, STOCK)
        await shop.announce(staff, STOCK)
        assert await shop.shelf(staff) == (STOCK, 0)
        assert (await shop.buy_from_shelf(ann)).status_code == 409
        [sale] = (await seckill.sales()).sales
        assert (sale.id, sale.units, sale.currency) == (await shop.sale_id(ann), STOCK, "EUR")
        assert sale.metadata in ({"sku": shop.product}, {"slug": shop.product})

        # Bought and paid in the shop: its orders, its stock and its letters follow.
        anns = await shop.buy(ann)
        await shop.pay(ann, anns)
        await until(lambda: is_in(shop, ann, anns, "paid"))
        assert await shop.shelf(staff) == (STOCK - 1, 0)
        await until(lambda: has_letters(shop, staff, anns, 1))
        assert anns not in await shop.orders(bob)

        # The shop is killed, and money comes for an order. seckill has tried to tell it, in vain.
        bobs = await shop.buy(bob)
        await until(lambda: is_in(shop, bob, bobs, "unpaid"))
        before = shop.cursor
        shop.kill()
        await bank_tells(shop, bobs)
        [webhook] = await seckill.webhooks()
        await until(lambda: is_waiting(seckill, webhook.id))

        # It reads on where it stopped, and is told again what it has missed; once more is not twice.
        await shop.start()
        await until(lambda: is_in(shop, bob, bobs, "paid"))
        assert await shop.shelf(staff) == (STOCK - 2, 0)
        assert shop.cursor > before
        await until(lambda: has_letters(shop, staff, bobs, 1))
        delivered = (await seckill.webhook_deliveries(webhook.id, state="delivered")).deliveries
        for delivery in delivered:
            assert (await seckill.redeliver_webhook(webhook.id, delivery.id, wait_s=20)).status == 204
        assert len(await shop.letters(staff)) == 2
        forged = {"webhook-id": "evt_1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
        answer = await bob.post("/webhooks/seckill", content=b"{}", headers=forged)
        assert answer.status_code == 401

        # The shop refunds.
        await shop.refund(staff, anns)
        await until(lambda: is_in(shop, ann, anns, "refunded"))
        await until(lambda: has_letters(shop, staff, anns, 2))
        assert await shop.shelf(staff) == (STOCK - 1, 0)
        custody = await seckill.custody(sale.id)
        assert (custody.available, custody.paid, custody.unpaid) == (STOCK - 1, 1, 0)
        assert (await seckill.audit(full=True)).verdict == "holds"


async def speaks_both_languages(shop: Shop) -> None:
    """The shop speaks the language that the browser asks for, until the visitor chooses."""
    client = shop.client()

    async def page(accepted: str) -> tuple[str, bool]:
        shown = (await client.get("/", headers={"Accept-Language": accepted})).text
        without = shown.replace("简体中文", "")  # the button that chooses it is the same in both
        return found(r'<html lang="(\w+)', shown), bool(re.search("[\u4e00-\u9fff]{4}", without))

    for accepted, spoken in (
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en,zh;q=0.5", "en"),
        ("fr;q=x, tlh", "en"),
    ):
        assert await page(accepted) == (spoken, spoken == "zh"), accepted
    form = (await client.get("/")).text
    chosen = {"language": found(r'name="language" value="(zh[^"]*)"', form), "back": "/", "next": "/"}
    hidden = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    chosen |= {"csrfmiddlewaretoken": hidden[1]} if hidden else {}
    assert 'lang="zh' in (await client.post("/language" if not hidden else "/language/", data=chosen)).text
    assert await page("en") == ("zh", True)
    assert ">English</button>" in (await client.get("/")).text, "a language is named as its readers name it"


@pytest.mark.parametrize("name", ["fastapi-shop/teashop", "django-shop/bookshop"])
def test_everything_that_a_shop_says_is_there_in_chinese(name: str) -> None:
    folder = run.HERE / name
    words = ast.parse((folder / "words.py").read_text(encoding="utf-8"))
    tables = {ast.unparse(node.targets[0]): node.value for node in words.body if isinstance(node, ast.Assign)}
    chinese: dict[str, str] = ast.literal_eval(tables["CHINESE"])
    templates = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.html"))
    code = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name != "words.py")
    said = set(re.findall(r'\bt(?:\(| )"([^"]+)"', templates))
    said |= set(re.findall(r'(?:HTTPException\(\d+, |problem=|said(?:_later)?\()"([^"]+)"', code))
    assert len(said) > 30
    assert said - chinese.keys() == set()
    for english, text in chinese.items():
        assert sorted(re.findall(r"{\w+}", english)) == sorted(re.findall(r"{\w+}", text)), english


async def is_in(shop: Shop, buyer: httpx2.AsyncClient, order_id: str, state: str) -> bool:
    return (await shop.orders(buyer)).get(order_id) == state


async def has_letters(shop: Shop, staff: httpx2.AsyncClient, order_id: str, number: int) -> bool:
    return sum(order_id in letter for letter in await shop.letters(staff)) == number


async def is_waiting(seckill: AsyncClient, webhook_id: str) -> bool:
    waiting = (await seckill.webhook_deliveries(webhook_id, state="waiting")).deliveries
    return any(delivery.tries for delivery in waiting)


def test_what_to_type_when_ports_are_taken() -> None:
    """One command that works, and not a new one for each port."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        taken = [each.getsockname()[1] for each in (one, other)]
        command = [sys.executable, str(run.HERE / "run.py"), "fastapi-shop"]
        command += ["--port", str(taken[0]), "--seckill-port", str(taken[1])]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert refused.returncode == 1
        assert f"Ports {taken[0]} and {taken[1]} are taken" in refused.stderr
        chosen = [int(port) for port in re.findall(r"port (\d+)", refused.stderr)]
        assert len({*chosen, *taken}) == 4
        assert not any(run.is_taken(port) for port in chosen)


@pytest.mark.parametrize("name", run.EXAMPLES)
async def test_one_command_starts_a_shop_and_ends_it(name: str, folder: Path) -> None:
    """It says where everything is, and Ctrl-C ends all of it."""
    port, seckill_port = free_port(), free_port()
    command = [sys.executable, str(run.HERE / "run.py"), name, "--port", str(port), "--seckill-port", str(seckill_port)]
    with (folder / "printed").open("w+") as printed:
        process = subprocess.Popen(tethered([*command, "--data", str(folder / "data")]), stdout=printed)

        async def is_open() -> bool:
            assert process.poll() is None
            return "Ctrl-C stops both" in (folder / "printed").read_text()

        await until(is_open)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert f"http://127.0.0.1:{port}/" in (folder / "printed").read_text()
    for each in (port, seckill_port):
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"http://127.0.0.1:{each}/")
