"""The API as an application for other people's servers, and under a path of their own applications."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from seckill import Settings, create_app
from seckill.asgi import Application
from seckill.errors import SettingsError
from seckill.settings import Secret
from seckill.web.connections.listening_socket import bind
from tests.api.conftest import ADMIN_KEY, JWT_SECRET, OPERATOR, buyer, sale_body

SETTINGS = Settings(redis_url="memory://", admin_key=Secret(ADMIN_KEY), jwt_secret=JWT_SECRET)


@pytest.fixture
def sale_app() -> Application:
    return create_app(SETTINGS)


def in_fastapi(sale_app: Application) -> Any:
    shop = FastAPI(lifespan=sale_app.lifespan)
    shop.mount("/flash/sale", sale_app)

    @shop.get("/hello")
    def hello() -> str:
        return "shop"

    return shop


def in_starlette(sale_app: Application) -> Any:
    @asynccontextmanager
    async def lifespan(shop: Starlette) -> AsyncIterator[None]:
        async with sale_app.lifespan(shop):
            yield

    async def hello(_: Any) -> Any:
        raise AssertionError("nobody asks for it")

    inner = Mount("/sale", sale_app)
    return Starlette(lifespan=lifespan, routes=[Route("/hello", hello), Mount("/flash", routes=[inner])])


@asynccontextmanager
async def asked(app: Any, lifespan: AbstractAsyncContextManager[None]) -> AsyncIterator[httpx2.AsyncClient]:
    async with lifespan, httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://shop") as http:
        yield http


@pytest.mark.parametrize("mount", [in_fastapi, in_starlette])
async def test_buy_look_and_pay_under_a_path(mount: Callable[[Application], Any], sale_app: Application) -> None:
    async with asked(mount(sale_app), sale_app.lifespan()) as http:
        made = await http.post("/flash/sale/v1/sales", json=sale_body(), headers=OPERATOR)
        assert made.status_code == 201, made.text
        sale = made.json()
        assert made.headers["location"] == f"/flash/sale/v1/sales/{sale['id']}"
        bought = await http.post(f"/flash/sale/v1/sales/{sale['id']}/orders", headers=buyer("ann", "k"))
        assert bought.status_code == 202, bought.text
        order_url = bought.headers["location"]
        assert order_url == f"/flash/sale/v1/orders/{bought.json()['order_id']}"
        order = await http.get(order_url, params={"wait": 10}, headers=buyer("ann"))
        assert order.json()["state"] == "unpaid", "the worker runs in it"
        assert (await http.post(f"{order_url}/pay", headers=buyer("ann"))).json()["state"] == "paid"
        assert (await http.get(f"/v1/orders/{bought.json()['order_id']}", headers=buyer("ann"))).status_code == 404


@pytest.mark.parametrize("mount", [in_fastapi, in_starlette])
async def test_what_names_a_path_names_the_whole(mount: Callable[[Application], Any], sale_app: Application) -> None:
    async with asked(mount(sale_app), sale_app.lifespan()) as http:
        described = (await http.get("/flash/sale/openapi.json")).json()
        assert described["servers"] == [{"url": "/flash/sale"}]
        for page in ("/", "/orders", "/console"):
            shell = (await http.get(f"/flash/sale{page}")).text
            assert '<meta name="seckill-base" content="/flash/sale">' in shell
            for address in [part.partition('"')[0] for part in shell.split('href="')[1:]]:
                assert address.startswith("/flash/sale/")
                assert (await http.get(address)).status_code == 200, address
        nowhere = await http.get("/flash/sale/nowhere", headers={"Accept": "text/html"})
        assert nowhere.status_code == 404
        assert 'href="/flash/sale/"' in nowhere.text
        assert (await http.get("/flash/sale//v1/sales")).status_code == 404, "one spelling here as well"


async def test_it_serves_itself(sale_app: Application) -> None:
    """The server knows nothing of us, and speaks the lifespan protocol."""
    config = uvicorn.Config(sale_app, lifespan="on", log_config=None)
    server, listener = uvicorn.Server(config), bind("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}") as http:
        assert (await http.get("/readyz")).json()["status"] == "ready"
        assert "servers" not in (await http.get("/openapi.json")).json()
        assert '<meta name="seckill-base" content="">' in (await http.get("/")).text
    server.should_exit = True
    await serving
    assert server.lifespan.should_exit is False


async def test_a_server_with_a_root_path_of_its_own(sale_app: Application) -> None:
    """Some put it before the path, others do not."""
    async with sale_app.lifespan():
        transport = httpx2.ASGITransport(sale_app, root_path="/v1")
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop") as http:
            assert (await http.get("/v1/v1/time")).status_code == 200
            assert (await http.get("/readyz")).status_code == 200
            assert (await http.get("/openapi.json")).json()["servers"] == [{"url": "/v1"}]


async def test_a_websocket_under_a_path(sale_app: Application) -> None:
    async with sale_app.lifespan():
        said = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": "nonsense"}]
        heard: list[Any] = []

        async def receive() -> Any:
            return said.pop(0)

        async def send(message: Any) -> None:
            heard.append(message)

        scope = {"type": "websocket", "path": "/sale/v1/ws", "root_path": "/sale", "query_string": b"", "headers": []}
        await sale_app(scope, receive, send)
        assert heard[0]["type"] == "websocket.accept"


async def test_without_its_lifespan_it_says_what_to_do(sale_app: Application) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(sale_app), base_url="http://shop") as http:
        with pytest.raises(RuntimeError, match="give the `lifespan` of create_app's result to your application"):
            await http.get("/")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"admin_key": None}, "Set SECKILL_ADMIN_KEY and SECKILL_JWT_SECRET"),
        ({"database_url": "sqlite:///x.db"}, "leave SECKILL_DATABASE_URL empty"),
        ({"redis_url": "redis://x"}, "Set SECKILL_DATABASE_URL"),
        ({"redis_url": "redis://x", "database_url": "sqlite:///x.db"}, "The payment provider is a sandbox"),
    ],
)
def test_what_a_role_refuses_is_refused_here(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        create_app(replace(SETTINGS, **changes))
