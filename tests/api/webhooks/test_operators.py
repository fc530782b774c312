"""Operators manage webhooks over HTTP, and are told what is wrong with them."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from seckill.bootstrap.engine import Engine
from seckill.engine.webhooks import desk
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, make_node
from tests.api.webhooks.conftest import Shop

URL = "/v1/admin/webhooks"
HOOK = {"url": "https://shop.example/hook"}


async def post(node: Node, path: str = "", **body: Any) -> httpx2.Response:
    return await node.http.post(f"{URL}{path}", json=body, headers=OPERATOR)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": "ftp://a.example"}, "url"),
        ({"url": "https://user:word@a.example/"}, "url"),
        ({"url": "https://a.example:22/"}, "url"),
        ({"url": 5}, "url"),
        (HOOK | {"types": []}, "types"),
        (HOOK | {"types": ["order.*", "order.sold"]}, "types[1]"),
        (HOOK | {"types": "order.*"}, "types"),
        (HOOK | {"sale_id": "NOSUCHSALE000"}, "sale_id"),
        (HOOK | {"description": "two\nlines"}, "description"),
        (HOOK | {"description": "x" * 201}, "description"),
        (HOOK | {"enabled": "yes"}, "enabled"),
        (HOOK | {"secret": "whsec_mine"}, "secret"),
        (HOOK | {"colour": "red"}, "colour"),
    ],
)
async def test_what_is_wrong_is_named(shop: Shop, body: dict[str, Any], field: str) -> None:
    response = await post(shop.node, **body)
    assert response.status_code == 422, response.text
    assert response.json()["errors"][0]["field"] == field
    assert (await shop.ask("GET"))["webhooks"] == []


async def test_where_private_addresses_are_not_allowed(settings: Settings, engine: Engine) -> None:
    node = await make_node(replace(settings, webhook_private="off"), engine)
    for url in (
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://localhost/",
        "http://10.0.0.1/",
        "https://a.example:9000/",
    ):
        response = await post(node, url=url)
        assert response.status_code == 422
        assert response.json()["errors"][0]["field"] == "url"
    assert (await post(node, **HOOK)).status_code == 201
    await node.http.aclose()


async def test_changes(shop: Shop) -> None:
    sale = await shop.node.create()
    made = await shop.hook(types=["order.*", "order.*"], sale_id=sale["id"], description=" mine ")
    assert (made["types"], made["sale_id"], made["description"]) == (["order.*"], sale["id"], "mine")
    changed = await shop.ask("PATCH", f"/{made['id']}", types=None, sale_id=None, description="yours", enabled=False)
    assert (changed["types"], changed["sale_id"], changed["enabled"]) == (None, None, False)
    assert (changed["description"], changed["disabled_by"]) == ("yours", "operator")
    for wrong, field in (
        ({"url": None}, "url"),
        ({"url": "https://a.example:22"}, "url"),
        ({"types": ["x"]}, "types[0]"),
        ({"sale_id": "x"}, "sale_id"),
        ({"id": "7"}, "id"),
    ):
        refused = await shop.ask("PATCH", f"/{made['id']}", 422, **wrong)
        assert refused["errors"][0]["field"] == field
    assert await shop.ask("GET", f"/{made['id']}") == changed
    assert "secret" not in changed
    assert (await shop.ask("PATCH", f"/{made['id']}", enabled=True))["disabled_by"] is None
    await shop.ask("DELETE", f"/{made['id']}", 204)
    for method, path in (
        ("DELETE", ""),
        ("GET", ""),
        ("PATCH", ""),
        ("POST", "/rotate"),
        ("POST", "/test"),
        ("GET", "/deliveries"),
        ("POST", "/deliveries/1/redeliver"),
    ):
        await shop.ask(method, f"/{made['id']}{path}", 404)


async def test_filters_that_are_not_known(shop: Shop) -> None:
    made = await shop.hook()
    for path, field in (
        ("?state=waiting", "state"),
        (f"/{made['id']}/deliveries?status=waiting", "status"),
        (f"/{made['id']}/deliveries?state=sent", "state"),
        (f"/{made['id']}/deliveries?limit=0", "limit"),
        (f"/{made['id']}/deliveries?after=x", "after"),
    ):
        assert (await shop.ask("GET", path, 422))["errors"][0]["field"] == field
    assert (await shop.ask("POST", f"/{made['id']}/test?wait=x", 422))["errors"][0]["field"] == "wait"
    assert (await shop.ask("POST", f"/{made['id']}/rotate", 422, overlap_hours=169))["errors"][0]["field"]
    await shop.ask("GET", "/nothing", 404)


async def test_there_are_only_so_many(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "WEBHOOKS_MAX", 1)
    await shop.hook()
    assert (await shop.ask("POST", "", 409, **HOOK))["code"] == "too_many_webhooks"


async def test_for_operators_only(shop: Shop) -> None:
    made = await shop.hook()
    for method, path in (("GET", ""), ("POST", ""), ("POST", f"/{made['id']}/test"), ("DELETE", f"/{made['id']}")):
        response = await shop.node.http.request(method, f"{URL}{path}", headers=buyer("ann"))
        assert response.status_code == 403
