"""Operators say over HTTP what a sale sells, keep drafts, and repeat announcements."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from seckill.bootstrap.engine import Engine
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, make_node, sale_body

GOODS = {
    "external_id": "货号 K-1",
    "metadata": {"sku": "K-1", "tags": ["a", {"b": None}], "weight": 1.5},
    "description": "Warm **socks**.\n\n- wool\n- <b>red</b>",
    "images": ["https://cdn.example.com/a.png", "https://x.img.example.com/b.jpg?w=1#c"],
    "list_price_cents": 19900,
    "terms_url": "https://shop.example.com/terms",
    "delivery": "In two days",
    "return_url": "http://localhost:8080/back",
}
FOR_OPERATORS = ("external_id", "metadata", "published")
NOT_IN_LISTS = ("description", "terms_url", "delivery", "return_url")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, image_hosts=("cdn.example.com", "*.img.example.com"))


async def change(node: Node, sale: dict[str, Any], **changes: Any) -> Any:
    response = await node.http.patch(f"/v1/sales/{sale['id']}", json=changes, headers=OPERATOR)
    assert response.status_code == 200, response.text
    return response.json()


async def test_buyers_are_shown_the_goods_and_operators_everything(node: Node) -> None:
    sale = await node.create(**GOODS)
    assert {name: sale[name] for name in GOODS} == GOODS
    assert sale["published"] is True
    path = f"/v1/sales/{sale['id']}"
    public = (await node.http.get(path)).json()
    assert {name: public[name] for name in GOODS if name not in FOR_OPERATORS} == {
        name: value for name, value in GOODS.items() if name not in FOR_OPERATORS
    }
    assert not any(name in public for name in FOR_OPERATORS)
    [listed] = (await node.http.get("/v1/sales")).json()["sales"]
    assert (listed["images"], listed["list_price_cents"]) == (GOODS["images"], 19900)
    assert not any(name in listed for name in (*FOR_OPERATORS, *NOT_IN_LISTS))
    [to_operator] = (await node.http.get("/v1/sales", headers=OPERATOR)).json()["sales"]
    assert {name: to_operator[name] for name in GOODS} == GOODS


async def test_no_cache_gives_an_operators_answer_to_buyers(node: Node) -> None:
    sale = await node.create(metadata={"cost": 1})
    for path in ("/v1/sales", f"/v1/sales/{sale['id']}"):
        to_operator = await node.http.get(path, headers=OPERATOR)
        public = await node.http.get(path)
        assert to_operator.headers["cache-control"] == "no-store"
        assert (public.headers["cache-control"], public.headers["vary"]) == (
            "public, max-age=1",
            "Authorization, Seckill-Console",
        )
        assert "cost" not in (await node.http.get(path, headers=buyer("ann"))).text


async def test_reading_sales_does_not_help_to_guess_the_key(node: Node) -> None:
    await node.create(published=False)
    for guess in range(20):
        answer = await node.http.get("/v1/sales", headers={"Authorization": f"Bearer guess-{guess}"})
        assert (answer.status_code, answer.json()["sales"]) == (200, [])
    refused = await node.http.get("/v1/admin/refunds", headers=OPERATOR)
    assert refused.status_code == 429, "what guesses is not heard for a while, whatever it says"


async def test_a_patch_changes_what_it_names_and_null_takes_away(node: Node) -> None:
    sale = await node.create(**GOODS)
    changed = await change(node, sale, description="Cold.", images=None, metadata=None, external_id=None)
    assert (changed["description"], changed["images"], changed["metadata"], changed["external_id"]) == (
        "Cold.",
        [],
        None,
        None,
    )
    assert (changed["delivery"], changed["terms_url"], changed["title"]) == (
        GOODS["delivery"],
        GOODS["terms_url"],
        "Phone",
    )


async def test_what_a_sale_shows_can_change_when_it_is_over(node: Node) -> None:
    sale = await node.create()
    await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    assert (await change(node, sale, description="It was nice."))["description"] == "It was nice."
    assert (await change(node, sale, published=False))["state"] == "ended"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"external_id": ""}, "external_id"),
        ({"external_id": "x" * 129}, "external_id"),
        ({"external_id": "a\nb"}, "external_id"),
        ({"external_id": "a "}, "external_id"),
        ({"external_id": 7}, "external_id"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"a": "x" * 4090}}, "metadata"),
        ({"description": "x" * 10_001}, "description"),
        ({"description": "a\0b"}, "description"),
        ({"delivery": "x" * 501}, "delivery"),
        ({"images": ["https://elsewhere.example.com/a.png"]}, "images[0]"),
        ({"images": ["https://cdn.example.com.evil.example/a.png"]}, "images[0]"),
        ({"images": ["https://img.example.com/a.png"]}, "images[0]"),
        ({"images": ["https://evilimg.example.com/a.png"]}, "images[0]"),
        ({"images": ["https://cdn.example.com:8443/a.png"]}, "images[0]"),
        ({"images": ["https://user@cdn.example.com/a.png"]}, "images[0]"),
        ({"images": ["http://cdn.example.com/a.png"]}, "images[0]"),
        ({"images": ["https://cdn.example.com/a.png", "javascript:alert(1)"]}, "images[1]"),
        ({"images": ["https://cdn.example.com/a.png"] * 11}, "images"),
        ({"images": "https://cdn.example.com/a.png"}, "images"),
        ({"list_price_cents": 9899}, "list_price_cents"),
        ({"list_price_cents": 0}, "list_price_cents"),
        ({"terms_url": "javascript:alert(1)"}, "terms_url"),
        ({"terms_url": "https://"}, "terms_url"),
        ({"terms_url": "https://shop.example.com:port/"}, "terms_url"),
        ({"terms_url": 'https://shop.example.com/"onclick='}, "terms_url"),
        ({"return_url": "//shop.example.com"}, "return_url"),
        ({"return_url": "https://" + "x" * 2048}, "return_url"),
        ({"published": "no"}, "published"),
    ],
)
async def test_what_is_wrong_is_named(node: Node, wrong: dict[str, Any], field: str) -> None:
    refused = await node.http.post("/v1/sales", json=sale_body(**wrong), headers=OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert [each["field"] for each in refused.json()["errors"]] == [field]
    sale = await node.create()
    changed = await node.http.patch(f"/v1/sales/{sale['id']}", json=wrong, headers=OPERATOR)
    assert (changed.status_code, changed.json()["errors"][0]["field"]) == (422, field)


async def test_without_the_setting_no_host_is_allowed(settings: Settings, engine: Engine) -> None:
    node = await make_node(replace(settings, image_hosts=()), engine)
    refused = await node.http.post("/v1/sales", json=sale_body(images=GOODS["images"]), headers=OPERATOR)
    assert "SECKILL_IMAGE_HOSTS" in refused.json()["detail"]
    await node.http.aclose()


async def test_a_taken_id_names_the_other_sale(node: Node) -> None:
    first = await node.create(external_id="K-1")
    second = await node.create(external_id="K-2")
    again = await node.http.post("/v1/sales", json=sale_body(external_id="K-1"), headers=OPERATOR)
    patched = await node.http.patch(f"/v1/sales/{second['id']}", json={"external_id": "K-1"}, headers=OPERATOR)
    for refused in (again, patched):
        assert (refused.status_code, refused.json()["code"]) == (409, "external_id_taken")
        assert refused.json()["sale_id"] == first["id"]
    await node.http.post(f"/v1/sales/{first['id']}/close", headers=OPERATOR)
    assert (await change(node, second, external_id="K-1"))["external_id"] == "K-1"


# Drafts


async def test_buyers_do_not_know_of_a_draft(node: Node, settings: Settings, engine: Engine) -> None:
    draft = await node.create(published=False)
    other = await make_node(settings, engine)
    for each in (node, other):
        for headers in ({}, buyer("ann")):
            shown = await each.http.get(f"/v1/sales/{draft['id']}", headers=headers)
            assert (shown.status_code, shown.json()["code"]) == (404, "unknown_sale")
        assert (await each.http.get("/v1/sales")).json()["sales"] == []
        claimed = await each.buy(draft, "ann")
        assert (claimed.status_code, claimed.json()["code"]) == (404, "unknown_sale")
    assert (draft["published"], draft["state"]) == (False, "paused")
    shown = await node.http.get(f"/v1/sales/{draft['id']}", headers=OPERATOR)
    assert shown.json()["published"] is False
    custody = await node.http.get(f"/v1/sales/{draft['id']}/custody", headers=OPERATOR)
    assert custody.json()["available"] == 3
    await other.http.aclose()


async def test_a_draft_is_published_and_hidden_again(node: Node) -> None:
    sale = await node.create(published=False, price_cents=0)
    assert (await change(node, sale, published=True))["state"] == "open"
    order = (await node.buy(sale, "ann")).json()
    await node.work()
    assert (await change(node, sale, published=False))["state"] == "paused"
    assert (await node.buy(sale, "ben")).status_code == 404
    mine = await node.http.get(f"/v1/orders/{order['order_id']}", headers=buyer("ann"))
    assert mine.json()["state"] == "paid", "who has an order keeps it"
    assert (await change(node, sale, published=True))["state"] == "open"
    assert (await node.buy(sale, "ben")).status_code == 202


async def test_a_node_that_has_not_heard_yet_sells_nothing_of_a_hidden_sale(
    node: Node, settings: Settings, engine: Engine
) -> None:
    sale = await node.create()
    late = await make_node(settings, engine)
    await change(node, sale, published=False)
    refused = await late.buy(sale, "ann")
    assert (refused.status_code, refused.json()["code"]) == (409, "paused"), "the gate knows"
    await late.refresh()
    assert (await late.buy(sale, "ann")).status_code == 404
    await late.http.aclose()


async def test_a_hidden_sale_is_paused_and_resumed_as_any_other(node: Node) -> None:
    sale = await node.create(published=False)
    await node.http.post(f"/v1/sales/{sale['id']}/pause", headers=OPERATOR)
    assert (await change(node, sale, published=True))["state"] == "paused", "the pause is the operator's"
    resumed = await node.http.post(f"/v1/sales/{sale['id']}/resume", headers=OPERATOR)
    assert resumed.json()["state"] == "open"


# Announcing once


async def announce(node: Node, key: str, **body: Any) -> Any:
    return await node.http.post("/v1/sales", json=body, headers=OPERATOR | {"Idempotency-Key": key})


async def test_the_same_key_and_body_is_the_same_sale(node: Node) -> None:
    body = sale_body(metadata={"a": 1, "b": 2})
    first = await announce(node, "k", **body)
    again = await announce(node, "k", **dict(reversed(body.items())))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first.headers["location"] == again.headers["location"]
    other = await announce(node, "k", **body | {"units": 4})
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert (await announce(node, "l", **body)).status_code == 201
    assert (await announce(node, "\x7f", **body)).status_code == 422


async def test_a_repeat_is_answered_when_the_window_is_over(node: Node) -> None:
    body = sale_body()
    sale = (await announce(node, "k", **body)).json()
    node.api.context.sale_cache.now_ms = lambda: 2**41  # type: ignore[method-assign]
    assert (await announce(node, "l", **body)).json()["errors"][0]["field"] == "ends_at"
    again = await announce(node, "k", **body)
    assert (again.status_code, again.json()["id"], again.json()["state"]) == (200, sale["id"], "ended")


async def test_many_at_once_with_one_key_make_one_sale(node: Node, settings: Settings, engine: Engine) -> None:
    other = await make_node(settings, engine)
    body = sale_body()
    told = await asyncio.gather(*[announce((node, other)[copy % 2], "k", **body) for copy in range(8)])
    assert sorted(answer.status_code for answer in told) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in told}) == 1
    await node.refresh()
    assert len((await node.http.get("/v1/sales")).json()["sales"]) == 1
    await other.http.aclose()
