"""The shops of `examples/`, each as a process of its own, and how people use them: by their pages."""

import asyncio
import contextlib
import html
import os
import re
import signal
import sqlite3
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import run

from seckill.lab.servers.ports import free_port
from seckill.local.tether import tethered
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S

STOCK = 40


class Shop(ABC):
    name: ClassVar[str]
    product: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.stack = Stack(folder, api=1, settings=run.seckill_settings(self.name, self.url))
        self.log = folder / "shop.log"
        self._running: list[subprocess.Popen[bytes]] = []
        self._clients: list[httpx2.AsyncClient] = []

    async def start(self) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("SECKILL_", "SHOP_"))}
        environ |= run.shop_settings(self.stack.data, self.url, self.stack.url)
        prepared, processes = run.shop_commands(self.name, self.port)
        folder = run.HERE / self.name
        for command in prepared:
            await asyncio.to_thread(subprocess.run, command, cwd=folder, env=environ, check=True)
        with self.log.open("ab") as log:
            for command in map(tethered, processes):
                self._running.append(subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log))
        async with httpx2.AsyncClient() as http:
            await until(lambda: self._answers(http))

    async def _answers(self, http: httpx2.AsyncClient) -> bool:
        assert all(process.poll() is None for process in self._running), self.log.read_text()[-2000:]
        with contextlib.suppress(httpx2.HTTPError):
            return (await http.get(self.url, timeout=30)).status_code == 200
        return False

    def kill(self) -> None:
        """kill -9: nothing that it was doing is finished."""
        for process in self._running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._running = []

    async def close(self) -> None:
        self.kill()
        for client in self._clients:
            await client.aclose()

    def client(self) -> httpx2.AsyncClient:
        made = httpx2.AsyncClient(base_url=self.url, timeout=PATIENCE_S, follow_redirects=True)
        made.headers["Accept"] = "text/html"
        self._clients.append(made)
        return made

    def ask_books(self, query: str) -> Any:
        """One value of the shop's own database."""
        with contextlib.closing(sqlite3.connect(self.stack.data / "shop.db", timeout=PATIENCE_S)) as database:
            return database.execute(query).fetchone()[0]

    @property
    @abstractmethod
    def cursor(self) -> int:
        """Up to which the shop has dealt with the events."""

    @abstractmethod
    async def sign_in(self, name: str) -> httpx2.AsyncClient: ...

    @abstractmethod
    async def announce(self, staff: httpx2.AsyncClient, units: int) -> httpx2.Response: ...

    @abstractmethod
    async def sale_id(self, buyer: httpx2.AsyncClient) -> str:
        """Returns the id of the sale that the product's page names."""

    @abstractmethod
    async def buy(self, buyer: httpx2.AsyncClient) -> str:
        """Buys in the flash sale and returns the id of the order."""

    @abstractmethod
    async def pay(self, buyer: httpx2.AsyncClient, order_id: str) -> None: ...

    @abstractmethod
    async def buy_from_shelf(self, buyer: httpx2.AsyncClient) -> httpx2.Response: ...

    @abstractmethod
    async def refund(self, staff: httpx2.AsyncClient, order_id: str) -> None: ...

    @abstractmethod
    async def shelf(self, staff: httpx2.AsyncClient) -> tuple[int, int]:
        """Returns how many are in stock, and how many of those are free."""

    @abstractmethod
    async def letters(self, staff: httpx2.AsyncClient) -> list[str]: ...

    async def orders(self, buyer: httpx2.AsyncClient) -> dict[str, str]:
        page = (await buyer.get("/orders/" if self.name.startswith("django") else "/orders")).text
        return dict(re.findall(r'data-order="([\w-]+)" data-state="(\w+)"', page))


class TeaShop(Shop):
    name = "fastapi-shop"
    product = "teapot"

    @property
    def cursor(self) -> int:
        return int(self.ask_books("SELECT value FROM notes WHERE name = 'cursor'"))

    async def sign_in(self, name: str) -> httpx2.AsyncClient:
        client = self.client()
        page = await client.post("/sign-in", data={"name": name, "password": name})
        assert f"Sign out {name}" in page.text
        return client

    async def announce(self, staff: httpx2.AsyncClient, units: int) -> httpx2.Response:
        form = {"key": await key_in(staff, "/staff"), "product_id": self.product, "units": units, "price_cents": 990}
        return await staff.post("/staff/sales", data=form)

    async def sale_id(self, buyer: httpx2.AsyncClient) -> str:
        page = (await buyer.get(f"/products/{self.product}")).text
        assert f'src="{self.stack.url}/embed.js"' in page
        return found(r'<seckill-sale sale="(\w+)" token-url="/seckill-token">', page)

    async def buy(self, buyer: httpx2.AsyncClient) -> str:
        """Buys as the element does: with a token of the shop's, from the buyer's browser."""
        token = (await buyer.get("/seckill-token")).json()["token"]
        headers = {"Authorization": f"Bearer {token}", "Prefer": "wait=30", "Origin": self.url}
        address = f"{self.stack.url}/v1/sales/{await self.sale_id(buyer)}"
        colours = {item["title"]: item["item_id"] for item in (await buyer.get(address)).json()["items"]}
        assert list(colours) == ["black", "jade", "rust"]
        answer = await buyer.post(f"{address}/orders", headers=headers, json={"item_id": colours["jade"]})
        assert answer.headers["access-control-allow-origin"] == self.url
        return str(answer.json()["order_id"])

    async def pay(self, buyer: httpx2.AsyncClient, order_id: str) -> None:
        assert "9.90 €" in (await buyer.get("/pay", params={"order_id": order_id})).text
        await buyer.post("/pay", data={"order_id": order_id})
        async with asyncio.timeout(PATIENCE_S):  # the shop hears of the order by a webhook
            while "Iron teapot</a>, jade × 1" not in (await buyer.get("/orders")).text:
                await asyncio.sleep(0.1)

    async def buy_from_shelf(self, buyer: httpx2.AsyncClient) -> httpx2.Response:
        return await buyer.post(f"/products/{self.product}/buy", data={"key": "a-press", "colour": "rust"})

    async def refund(self, staff: httpx2.AsyncClient, order_id: str) -> None:
        form = {"key": await key_in(staff, "/staff"), "reason": "scratched", "return_unit": "true"}
        await staff.post(f"/staff/orders/{order_id}/refund", data=form)

    async def shelf(self, staff: httpx2.AsyncClient) -> tuple[int, int]:
        page = (await staff.get("/staff")).text
        stock, free = re.findall(rf'data-product="{self.product}" data-stock="(\d+)" data-free="(-?\d+)"', page)[0]
        return int(stock), int(free)

    async def letters(self, staff: httpx2.AsyncClient) -> list[str]:
        return re.findall(r"<li data-letter=.*?>(.*?)</li>", (await staff.get("/staff")).text)


class Bookshop(Shop):
    name = "django-shop"
    product = "sea"

    @property
    def cursor(self) -> int:
        return int(self.ask_books("SELECT value FROM bookshop_note WHERE name = 'cursor'"))

    async def sign_in(self, name: str) -> httpx2.AsyncClient:
        client = self.client()
        await client.get("/sign-in/")
        page = await self._post(client, "/sign-in/", {"username": name, "password": name, "next": "/"})
        assert f"Sign out {name}" in page.text
        return client

    async def _post(self, client: httpx2.AsyncClient, path: str, form: Mapping[str, Any]) -> httpx2.Response:
        return await client.post(path, data={**form, "csrfmiddlewaretoken": client.cookies["csrftoken"]})

    async def announce(self, staff: httpx2.AsyncClient, units: int) -> httpx2.Response:
        codes = "\n".join(f"AUDIO-{place}" for place in range(units + 2))
        form: dict[str, Any] = {"book": self.product, "units": units, "price_cents": 990, "codes": codes}
        now = datetime.now(UTC)
        for name, at in (("begins_at", now), ("ends_at", now + timedelta(hours=1))):
            form |= {f"{name}_0": at.strftime("%Y-%m-%d"), f"{name}_1": at.strftime("%H:%M:%S")}
        return await self._post(staff, "/admin/bookshop/flashsale/add/", form)

    async def sale_id(self, buyer: httpx2.AsyncClient) -> str:
        page = (await buyer.get(f"/books/{self.product}/")).text
        assert self.stack.url not in page, "the browser does not know of seckill"
        return found(r'data-sale="(\w+)" data-state="open"', page)

    async def buy(self, buyer: httpx2.AsyncClient) -> str:
        key = await key_in(buyer, f"/books/{self.product}/")
        pages = [await self._post(buyer, f"/books/{self.product}/claim", {"key": key}) for _ in range(2)]
        first, second = (found(r"/orders/(\w+)/$", str(page.url)) for page in pages)
        assert first == second, "pressed twice, it is one order"
        return first

    async def pay(self, buyer: httpx2.AsyncClient, order_id: str) -> None:
        assert "Pay 9.90 €" in (await buyer.get(f"/orders/{order_id}/")).text
        assert "AUDIO-" not in (await buyer.get(f"/orders/{order_id}/")).text
        paid = (await self._post(buyer, f"/orders/{order_id}/pay", {})).text
        assert 'data-state="paid"' in paid
        assert re.search(r"<code>AUDIO-\d+</code>", paid)

    async def buy_from_shelf(self, buyer: httpx2.AsyncClient) -> httpx2.Response:
        await buyer.get(f"/books/{self.product}/")
        return await self._post(buyer, f"/books/{self.product}/buy", {"key": "a-press"})

    async def refund(self, staff: httpx2.AsyncClient, order_id: str) -> None:
        form = {"action": "refund_and_sell_again", "_selected_action": order_id}
        await self._post(staff, "/admin/bookshop/order/", form)

    async def shelf(self, staff: httpx2.AsyncClient) -> tuple[int, int]:
        page = (await staff.get("/admin/bookshop/book/")).text
        row = page[page.index(f"/book/{self.product}/") :]
        return int(found(r'field-stock">(\d+)', row)), int(found(r'field-free">(-?\d+)', row))

    async def letters(self, staff: httpx2.AsyncClient) -> list[str]:
        page = (await staff.get("/admin/bookshop/letter/")).text
        return [html.unescape(text) for text in re.findall(r'field-text">(.*?)</td>', page)]


async def key_in(client: httpx2.AsyncClient, path: str) -> str:
    return found(r'name="key" value="([^"]+)"', (await client.get(path)).text)


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, text
    return match[1]


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not await condition():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.1)


@asynccontextmanager
async def open_shop(kind: type[Shop], folder: Path) -> AsyncIterator[Shop]:
    shop = kind(folder)
    async with running(shop.stack):
        try:
            await shop.start()
            yield shop
        finally:
            await shop.close()
