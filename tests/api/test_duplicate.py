"""A sale announced once more, as a draft: what is copied, what may differ, and never twice by one key."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import msgspec
import pytest

from seckill.client import AsyncClient
from seckill.web.schemas import NewSale, Sale
from tests.api.conftest import ADMIN_KEY, OPERATOR, Node, buyer, sale_body
from tests.public.serving import on_a_port

EVERYTHING: dict[str, Any] = {
    "limit_per_buyer": 2,
    "currency": "JPY",
    "pay_within_s": 77,
    "cool_down_s": 3,
    "confirm": "ledger",
    "external_id": "shop-1",
    "metadata": {"sku": "K-1"},
    "description": "## Warm",
    "list_price_cents": 99_000,
    "terms_url": "https://shop.example/terms",
    "delivery": "by post",
    "return_url": "https://shop.example/back",
    "pass": "work",
    "pass_work": 1234,
    "audience": {"groups": ["gold"], "early": [{"groups": ["gold"], "minutes": 5}], "list": True},
    "limit_by": "household",
    "limit_group": "autumn",
    "vouchers": True,
}
# These fields of a copy are its own.
OWN = {"id", "round", "state", "server_time", "begins_at", "ends_at", "external_id", "published"}


async def announce(node: Node, **body: Any) -> dict[str, Any]:
    made = await node.http.post("/v1/sales", json=sale_body(**body), headers=OPERATOR)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


async def duplicate(node: Node, sale_id: str, key: str | None = None, **changes: Any) -> httpx2.Response:
    headers = OPERATOR if key is None else OPERATOR | {"Idempotency-Key": key}
    return await node.http.post(f"/v1/admin/sales/{sale_id}/duplicate", json=changes or None, headers=headers)


async def copy(node: Node, sale: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = await duplicate(node, sale["id"], **changes)
    assert made.status_code == 201, made.text
    assert made.headers["location"] == f"/v1/sales/{made.json()['id']}"
    found: dict[str, Any] = made.json()
    return found


def same(sale: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sale.items() if name not in OWN}


def test_operators_see_all_that_a_new_sale_can_say() -> None:
    """A copy is made of what they see: nothing can be forgotten."""
    said = {each.encode_name for each in msgspec.structs.fields(NewSale)}
    assert said <= {each.encode_name for each in msgspec.structs.fields(Sale)}


@pytest.mark.parametrize(
    "rules",
    [
        {},
        EVERYTHING,
        {"order": "draw", "beacon": True, "serve_per_s": 7, "lanes": 2},
        {"waiting_list": True},
        {"timezone": "Europe/Berlin"},
        {"repeat": "0 10 * * MON", "timezone": "Asia/Shanghai"},
    ],
)
async def test_a_copy_has_all_but_window_and_own_id_and_nobody_sees_it(node: Node, rules: dict[str, Any]) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=30)
    window = {"begins_at": begins.isoformat(), "ends_at": (begins + timedelta(hours=1)).isoformat()}
    sale = await announce(node, **(window | rules))
    made = await copy(node, sale)
    assert same(made) == same(sale)
    assert (made["published"], made["external_id"], made["id"] == sale["id"]) == (False, None, False)
    assert (await node.http.get(f"/v1/sales/{made['id']}")).status_code == 404, "a draft"
    if "repeat" not in rules:
        assert (made["begins_at"], made["ends_at"]) == (sale["begins_at"], sale["ends_at"]), "it is still to come"


async def test_a_copy_of_what_has_begun_comes_on_the_first_day_to_come(node: Node) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    sale = await node.create(begins_at=(now - timedelta(days=3, hours=1)).isoformat(), ends_at=_in(hours=1))
    made = await copy(node, sale)
    begins, ends = (datetime.fromisoformat(made[name]) for name in ("begins_at", "ends_at"))
    assert begins == now + timedelta(hours=23)
    assert ends - begins == datetime.fromisoformat(sale["ends_at"]) - datetime.fromisoformat(sale["begins_at"])
    wanted = _in(days=9)
    later = await copy(node, sale, begins_at=wanted)
    assert datetime.fromisoformat(later["begins_at"]) == datetime.fromisoformat(wanted)
    assert datetime.fromisoformat(later["ends_at"]) - datetime.fromisoformat(wanted) == ends - begins


@pytest.mark.parametrize("month", [1, 7])  # whatever day it is, the clocks were put since one of them
async def test_a_copy_comes_at_the_same_time_by_the_clocks_of_its_zone(node: Node, month: int) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    began = datetime(2025, month, 1, 10, tzinfo=berlin)
    sale = await node.create(timezone="Europe/Berlin", begins_at=began.isoformat(), ends_at=_in(hours=1))
    begins = datetime.fromisoformat((await copy(node, sale))["begins_at"]).astimezone(berlin)
    assert (begins.hour, begins.minute) == (10, 0)
    assert timedelta() < begins - datetime.now(UTC) <= timedelta(hours=25)


async def test_neither_orders_nor_codes_come_along(node: Node) -> None:
    sale = await node.create(units=3)
    await node.buy(sale, "ann")
    await node.work()
    made = await copy(node, sale, published=True, begins_at=_in(hours=-1), ends_at=_in(hours=1))
    await node.refresh()
    orders = await node.http.get("/v1/admin/orders", params={"sale_id": made["id"]}, headers=OPERATOR)
    assert orders.json()["orders"] == []
    assert (await node.buy(made, "ann")).status_code == 202, "whoever has bought there may buy here"
    assert made["units"] == 3


async def test_items_are_new_and_may_be_others(node: Node) -> None:
    body = sale_body(items=[{"title": "S", "units": 1, "price_cents": 5, "external_id": "s"}, _m(2)])
    del body["units"], body["price_cents"]
    sale = (await node.http.post("/v1/sales", json=body, headers=OPERATOR)).json()
    made = await copy(node, sale)
    assert [facts(each) for each in made["items"]] == [facts(each) for each in sale["items"]]
    assert not {each["item_id"] for each in made["items"]} & {each["item_id"] for each in sale["items"]}
    others = await copy(node, sale, items=[_m(9)])
    assert [(each["title"], each["units"]) for each in others["items"]] == [("M", 9)]
    plain = await copy(node, sale, items=None, units=4)
    assert ("items" in plain, plain["units"], plain["price_cents"]) == (False, 4, 0)


async def test_what_is_said_is_different_and_null_leaves_it_out(node: Node) -> None:
    sale = await announce(node, **EVERYTHING)
    changes = {"title": "Again", "external_id": "shop-2", "price_cents": 1, "description": None, "audience": None}
    made = await copy(node, sale, **changes)
    assert {name: made[name] for name in changes} == changes | {"description": ""}
    assert made["metadata"] == sale["metadata"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"titel": "x"}, "titel"),
        ({"titel": None}, "titel"),
        ({"units": 0}, "units"),
        ({"metadata": {"x": "y" * 5000}}, "metadata"),
        ({"begins_at": "9999-12-31T23:59:59Z"}, "begins_at"),
        ({"ends_at": "2001-01-01T00:00:00Z"}, "ends_at"),
        ({"ends_at": "tomorrow"}, "ends_at"),
        ({"repeat": "61 * * * *"}, "repeat"),
        ({"timezone": "Asia/Shangai"}, "timezone"),
        ({"units": None}, "units"),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_is_made(node: Node, changes: dict[str, Any], field: str) -> None:
    sale = await announce(node)
    refused = await duplicate(node, sale["id"], **changes)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["field"] == field
    listed = await node.http.get("/v1/sales", headers=OPERATOR)
    assert len(listed.json()["sales"]) == 1


async def test_who_may_not_and_what_is_not_there(node: Node) -> None:
    sale = await announce(node, external_id="shop-1")
    path = f"/v1/admin/sales/{sale['id']}/duplicate"
    assert (await node.http.post(path)).status_code == 401
    assert (await node.http.post(path, headers=buyer("ann"))).status_code == 403
    unknown = await duplicate(node, "NOTHING")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_sale")
    for body in (b"[]", b'"x"', b"{", b'{"title": "a", "title": "b"}'):
        refused = await node.http.post(path, content=body, headers=OPERATOR)
        assert refused.status_code in (400, 422), body
    taken = await duplicate(node, sale["id"], external_id="shop-1")
    assert (taken.status_code, taken.json()["code"]) == (409, "external_id_taken")


async def test_one_key_makes_one_sale_however_many_ask(node: Node) -> None:
    sale = await announce(node)
    answers = await asyncio.gather(*(duplicate(node, sale["id"], "once") for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    other = await announce(node)
    for reused in (
        await duplicate(node, sale["id"], "once", title="Other"),
        await duplicate(node, other["id"], "once"),
        await node.http.post("/v1/sales", json=sale_body(), headers=OPERATOR | {"Idempotency-Key": "once"}),
    ):
        assert (reused.status_code, reused.json()["code"]) == (422, "key_reused")
    without = [await duplicate(node, sale["id"]) for _ in range(2)]
    assert len({answer.json()["id"] for answer in without}) == 2, "without a key, each is another"


async def test_the_client_makes_copies(node: Node) -> None:
    sale = await announce(node)
    async with on_a_port(node.api) as url, AsyncClient(url, ADMIN_KEY) as shop:
        made = await shop.duplicate_sale(sale["id"], {"title": "Again"}, key="k")
        assert (made.title, made.units, made.published) == ("Again", sale["units"], False)
        assert (await shop.duplicate_sale(sale["id"], {"title": "Again"}, key="k")).id == made.id


def facts(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "item_id"}


def _in(**period: float) -> str:
    return (datetime.now(UTC).replace(microsecond=0) + timedelta(**period)).isoformat()


def _m(units: int) -> dict[str, Any]:
    return {"title": "M", "units": units, "price_cents": 7}
