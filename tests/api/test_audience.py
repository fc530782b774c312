"""A sale for some: groups of the token, early access by the gate's clock, a list that an operator uploads."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from seckill.backends.sql.audience import SqlAudience
from seckill.bootstrap.engine import Engine
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, Served, make_node, sale_body, token_with
from tests.api.repeating import stop_clock
from tests.making import HOUR_MS

BUYERS = "/v1/admin/sales/{}/audience"


async def press(http: httpx2.AsyncClient, sale: dict[str, Any], user: str, **claims: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token_with(user, **claims)}"}
    return await http.post(f"/v1/sales/{sale['id']}/orders", headers=headers)


async def said(http: httpx2.AsyncClient, sale: dict[str, Any], user: str, **claims: Any) -> str:
    answer = (await press(http, sale, user, **claims)).json()
    return str(answer.get("code", answer.get("state")))


async def upload(node: Node, sale: dict[str, Any], body: str | bytes, kind: str = "text/csv") -> httpx2.Response:
    headers = OPERATOR | {"Content-Type": kind}
    return await node.http.put(BUYERS.format(sale["id"]), content=body, headers=headers)


def soon(minutes: float) -> dict[str, str]:
    begins_at = datetime.now(UTC) + timedelta(minutes=minutes)
    return {"begins_at": begins_at.isoformat(), "ends_at": (begins_at + timedelta(hours=1)).isoformat()}


@pytest.mark.usefixtures("way")
async def test_only_its_groups_are_let_in(served: Served, over_the_wire: httpx2.AsyncClient) -> None:
    sale = await served.node.create(units=50, audience={"groups": ["gold", "staff"]})
    for place, groups in enumerate((["gold"], ["silver", "staff"], "gold")):
        assert await said(over_the_wire, sale, f"in-{place}", groups=groups) == "queued"
    no_groups: tuple[Any, ...] = ([], ["silver"], ["Gold"], "golden", {"gold": True}, [1], None, [["gold"]])
    for other in no_groups:
        refused = await press(over_the_wire, sale, "eve", groups=other)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_invited"), other
    assert (await press(over_the_wire, sale, "eve")).json()["code"] == "not_invited", "a token without groups"


async def test_groups_come_from_the_claim_that_the_settings_name(settings: Settings, engine: Engine) -> None:
    node = await make_node(replace(settings, jwt_groups_claim="https://shop.example/tiers"), engine)
    sale = await node.create(audience={"groups": ["gold"]})
    assert await said(node.http, sale, "ann", groups=["gold"]) == "not_invited"
    assert await said(node.http, sale, "ann", **{"https://shop.example/tiers": ["gold"]}) == "queued"
    await node.http.aclose()


@pytest.mark.usefixtures("way")
async def test_early_groups_begin_earlier_and_all_others_are_told_when(
    served: Served, over_the_wire: httpx2.AsyncClient
) -> None:
    early = [{"groups": ["vip"], "minutes": 10}, {"groups": ["vip", "press"], "minutes": 5}]
    sale = await served.node.create(units=50, audience={"early": early}, **soon(minutes=7))
    begins_at = datetime.fromisoformat(sale["begins_at"])
    assert await said(over_the_wire, sale, "ann", groups=["vip"]) == "queued"
    too_early = (await press(over_the_wire, sale, "bob", groups=["press"])).json()
    assert too_early["code"] == "not_started"
    assert datetime.fromisoformat(too_early["begins_at"]) == begins_at - timedelta(minutes=5), "their own beginning"
    others = (await press(over_the_wire, sale, "eve")).json()
    assert (others["code"], datetime.fromisoformat(others["begins_at"])) == ("not_started", begins_at)


async def test_the_gates_clock_decides_about_early_access_too(node: Node) -> None:
    """A node whose clock is hours ahead lets no buyer in before their time, and one that is behind holds no buyer up
    for longer than a look at the gate takes."""
    sale = await node.create(units=50, audience={"early": [{"groups": ["vip"], "minutes": 10}]}, **soon(minutes=30))
    now_ms = node.api.context.sale_cache.now_ms()
    for hours in (0, 1):
        stop_clock(node, now_ms + hours * HOUR_MS)
        assert await said(node.http, sale, "ann", groups=["vip"]) == "not_started"
        assert await said(node.http, sale, "eve") == "not_started"
    on = await node.create(units=50, audience={"early": [{"groups": ["vip"], "minutes": 10}]}, **soon(minutes=5))
    assert await said(node.http, on, "ann", groups=["vip"]) == "queued"
    assert await said(node.http, on, "eve") == "not_started", "although the node believes that it has begun"


async def test_orders_of_early_buyers_are_there_like_any_other(node: Node) -> None:
    """Even before the beginning, they are shown while queued, written, cancelled, and rebuilt with the round."""
    sale = await node.create(units=3, audience={"early": [{"groups": ["vip"], "minutes": 60}]}, **soon(minutes=30))
    order_id = (await press(node.http, sale, "ann", groups=["vip"])).json()["order_id"]
    headers = {"Authorization": f"Bearer {token_with('ann')}"}
    assert (await node.http.get(f"/v1/orders/{order_id}", headers=headers)).json()["state"] == "queued"
    assert len((await node.http.get("/v1/orders", headers=headers)).json()["orders"]) == 1
    await node.work()
    assert (await node.http.get(f"/v1/orders/{order_id}", headers=headers)).json()["state"] == "unpaid"
    ctx = node.api.context
    assert [round_.id for round_ in ctx.sale_cache.watched()] == [int(sale["round"])], "its gate is looked after"
    moved = await node.http.patch(f"/v1/sales/{sale['id']}", json={"begins_at": sale["ends_at"]}, headers=OPERATOR)
    assert moved.status_code in (409, 422), "somebody may have bought"


async def test_a_list_lets_in_whom_it_names(node: Node) -> None:
    sale = await node.create(units=50, audience={"list": True, "groups": ["staff"]})
    assert await said(node.http, sale, "ann") == "not_invited", "nobody is on it yet"
    taken = await upload(node, sale, 'buyer\nann\nbob\r\nann\n用户\n"o,hara"\n')
    assert (taken.status_code, taken.json()) == (200, {"buyers": 4, "repeated": 1})
    for user in ("ann", "bob", "用户", "o,hara"):
        assert await said(node.http, sale, user) == "queued"
    assert await said(node.http, sale, "eve") == "not_invited"
    assert await said(node.http, sale, "eve", groups=["staff"]) == "queued", "in a group, and not on the list"
    shown = (await node.http.get(f"/v1/sales/{sale['id']}", headers=OPERATOR)).json()
    assert (shown["list_buyers"], shown["audience"]["list"]) == (4, True)
    replaced = await upload(node, sale, '{"buyer": "cid"}\n{"buyer": "dan"}', "application/jsonl")
    assert replaced.json() == {"buyers": 2, "repeated": 0}
    assert await said(node.http, sale, "cid") == "queued"
    assert await said(node.http, sale, "bob") == "not_invited", "no longer, although there is an order"


@pytest.mark.parametrize(
    ("body", "kind", "named"),
    [
        ("ann\nb b \nzed", "text/csv", ("line 2", "begins or ends with a space")),
        ("ann\n\nzed", "text/csv", ("line 2", "is empty")),
        ("ann\nbob,cid\n", "text/csv", ("line 2", "columns")),
        ("ann\n" + "x" * 129, "text/csv", ("line 2", "more than 128 bytes")),
        ("ann\n" + "x" * 5000, "text/csv", ("line 2", "too long")),
        (b"ann\n\xff\n", "text/csv", ("line 2", "UTF-8")),
        ('{"buyer": "ann"}\n{"name": "bob"}', "application/jsonl", ("line 2", "is not like")),
        ('{"buyer": "ann"}\nbob', "application/jsonl", ("line 2", "is not like")),
        ("", "text/csv", ("body", "no buyers")),
        ("buyer\n", "text/csv", ("body", "no buyers")),
        ("ann", "application/json", ("Content-Type", "must be")),
    ],
)
async def test_a_broken_line_is_named_and_changes_nothing(
    node: Node, body: str | bytes, kind: str, named: tuple[str, str]
) -> None:
    sale = await node.create(units=50, audience={"list": True})
    assert (await upload(node, sale, "old")).status_code == 200
    refused = await upload(node, sale, body, kind)
    assert refused.status_code == 422, refused.text
    error = refused.json()["errors"][0]
    assert error["field"] == named[0]
    assert named[1] in error["message"]
    assert await said(node.http, sale, "ann") == "not_invited"
    assert await said(node.http, sale, "old") == "queued"


async def test_only_operators_upload_and_only_to_a_sale(node: Node) -> None:
    sale = await node.create(audience={"list": True})
    path = BUYERS.format(sale["id"])
    assert (await node.http.put(path, content="ann")).status_code == 401
    buyers = {"Authorization": f"Bearer {token_with('ann')}"}
    assert (await node.http.put(path, content="ann", headers=buyers)).status_code == 403
    unknown = await node.http.put(BUYERS.format("0" * 13), content="ann", headers=OPERATOR)
    assert unknown.json()["code"] == "unknown_sale"


async def test_a_large_list_comes_over_the_wire_in_pieces(served: Served, over_the_wire: httpx2.AsyncClient) -> None:
    sale = await served.node.create(units=10, audience={"list": True})

    async def lines() -> AsyncIterator[bytes]:
        for start in range(0, 60_000, 1000):
            yield "".join(f"buyer-{number:06}\n" for number in range(start, start + 1000)).encode()

    path = BUYERS.format(sale["id"])
    taken = await over_the_wire.put(path, content=lines(), headers=OPERATOR | {"Content-Type": "text/csv"})
    assert taken.json() == {"buyers": 60_000, "repeated": 0}
    assert await said(over_the_wire, sale, "buyer-059999") == "queued"
    assert await said(over_the_wire, sale, "buyer-060000") == "not_invited"


async def test_while_a_node_reads_the_list_nobody_is_told_anything(
    settings: Settings, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another node, which has just been started: 503, to be tried again, and neither yes nor no. When the list is
    replaced, the one that it knows counts until the new one is there."""
    sale = await node.create(units=10, audience={"list": True})
    await upload(node, sale, "ann")
    other = await make_node(settings, node.engine)
    other.api.context.lists._lists.clear()
    refused = await press(other.http, sale, "ann")
    assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (503, "not_ready", "1")
    go_on = asyncio.Event()
    read = SqlAudience.read_list

    async def slow(self: SqlAudience, sale_id: int) -> Any:
        await go_on.wait()
        return await read(self, sale_id)

    monkeypatch.setattr(SqlAudience, "read_list", slow)
    reading = asyncio.create_task(other.refresh())
    await asyncio.sleep(0)
    assert await said(other.http, sale, "ann") == "not_ready"
    go_on.set()
    await reading
    assert await said(other.http, sale, "ann") == "queued"
    go_on.clear()
    replacing = asyncio.create_task(upload(node, sale, "bob"))
    await other.api.context.sale_cache.refresh_sales()
    assert await said(other.http, sale, "bob") == "not_invited", "by the list before"
    go_on.set()
    assert (await replacing).status_code == 200
    await other.refresh()
    assert await said(other.http, sale, "bob") == "queued"
    await other.http.aclose()


async def test_an_audience_that_cannot_be(node: Node) -> None:
    async def field(audience: Any, **changes: Any) -> str:
        response = await node.http.post("/v1/sales", json=sale_body(audience=audience, **changes), headers=OPERATOR)
        assert response.status_code == 422, response.text
        return str(response.json()["errors"][0]["field"])

    assert await field({"groups": []}) == await field({}) == await field({"list": False}) == "audience"
    assert await field({"groups": [""]}) == "audience.groups[0]"
    assert await field({"groups": ["a\nb"]}) == "audience.groups"
    assert await field({"early": [{"groups": [], "minutes": 5}]}) == "audience.early[0].groups"
    assert await field({"early": [{"groups": ["vip"], "minutes": 0}]}) == "audience.early[0].minutes"
    assert await field({"early": [{"groups": [" vip"], "minutes": 5}]}) == "audience.early[0].groups"
    assert await field({"lists": True}) == "audience.lists"
    assert await field(["gold"]) == "audience"
    daily = {"repeat": "daily", "begins_at": "2030-01-01T00:00:00Z", "ends_at": "2030-01-01T23:00:00Z"}
    assert await field({"early": [{"groups": ["vip"], "minutes": 90}]}, **daily) == "audience.early"
    fits = sale_body(audience={"early": [{"groups": ["vip"], "minutes": 60}]}, **daily)
    assert (await node.http.post("/v1/sales", json=fits, headers=OPERATOR)).status_code == 201


async def test_an_operator_changes_the_audience_and_takes_it_away(node: Node) -> None:
    sale = await node.create(units=10, audience={"groups": ["gold"]})
    path = f"/v1/sales/{sale['id']}"
    assert (await node.http.get(path)).json()["audience"] == {"groups": ["gold"], "early": [], "list": False}
    await node.http.patch(path, json={"audience": {"groups": ["silver"]}}, headers=OPERATOR)
    assert await said(node.http, sale, "ann", groups=["gold"]) == "not_invited"
    assert await said(node.http, sale, "ann", groups=["silver"]) == "queued"
    refused = await node.http.patch(path, json={"audience": {"groups": []}}, headers=OPERATOR)
    assert refused.status_code == 422
    assert await said(node.http, sale, "bob") == "not_invited", "nobody is let in by a list that came out empty"
    assert (await node.http.patch(path, json={"audience": None}, headers=OPERATOR)).json()["audience"] is None
    assert await said(node.http, sale, "bob") == "queued"


async def test_a_pass_is_for_the_invited_only_and_earlier_for_the_early(node: Node, settings: Settings) -> None:
    early = {"groups": ["vip"], "minutes": 20}
    minutes = settings.pass_s / 60 + 10
    sale = await node.create(audience={"groups": ["gold"], "early": [early]}, **{"pass": "work"}, **soon(minutes))

    async def ask(user: str, *groups: str) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token_with(user, groups=groups)}"}
        return await node.http.post(f"/v1/sales/{sale['id']}/pass", headers=headers)

    assert (await ask("eve")).json()["code"] == "not_invited"
    assert (await ask("ann", "vip")).json()["kind"] == "work"
    assert (await ask("bob", "gold")).json()["code"] == "not_started"
