"""Sales over HTTP."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from seckill.backends.redis.gate import RedisGate
from seckill.bootstrap.engine import Engine
from seckill.engine.rounds.opening import bring_to_gate
from seckill.engine.sale_cache import SaleCache
from seckill.errors import LedgerUnavailable
from seckill.settings import Settings
from seckill.web.app import Api
from seckill.web.sales import sales as web_sales
from tests.api.conftest import OPERATOR, Node, buyer, make_node, sale_body
from tests.backends.sql.making import draft


async def test_a_sale_is_created_and_shown(node: Node) -> None:
    response = await node.http.post("/v1/sales", json=sale_body(units=7, limit_per_buyer=2), headers=OPERATOR)
    assert response.status_code == 201
    sale = response.json()
    assert response.headers["location"] == f"/v1/sales/{sale['id']}"
    assert (sale["units"], sale["limit_per_buyer"], sale["price_cents"], sale["currency"]) == (7, 2, 9900, "CNY")
    assert (sale["state"], sale["pay_within_s"]) == ("open", 900)
    assert isinstance(sale["id"], str)
    assert isinstance(sale["round"], str)
    assert sale["begins_at"].endswith("Z")
    shown = (await node.http.get(f"/v1/sales/{sale['id']}", headers=OPERATOR)).json()
    assert shown | {"server_time": ""} == sale | {"server_time": ""}
    assert [listed["id"] for listed in (await node.http.get("/v1/sales")).json()["sales"]] == [sale["id"]]


async def test_a_sale_can_be_bought_as_soon_as_it_is_created(node: Node) -> None:
    """The key that is preloaded is the key that is read (F4)."""
    assert (await node.buy(await node.create(), "ann")).status_code == 202


async def test_another_node_knows_a_sale_at_once(node: Node, settings: Settings, engine: Engine) -> None:
    other = await make_node(settings, engine)
    sale = await node.create()
    assert (await other.http.get(f"/v1/sales/{sale['id']}")).status_code == 200
    assert (await other.buy(sale, "ann")).status_code == 202
    await other.http.aclose()


async def test_a_node_that_has_just_started_does_not_say_that_there_are_no_sales(
    node: Node, settings: Settings, engine: Engine
) -> None:
    """It takes requests before it has looked for the first time. Caches on the way would keep that for seconds."""
    sale = await node.create(title="Only this one")
    for path, headers in (("/v1/sales", {}), ("/v1/sales", OPERATOR), ("/", {}), ("/v1/admin/overview", OPERATOR)):
        other = await make_node_with_gate(settings, engine, engine.gate)
        assert sale["id"] in (await other.http.get(path, headers=headers)).text, path
        await other.http.aclose()


async def test_a_node_that_cannot_read_the_sales_does_not_say_that_there_are_none(
    node: Node, settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise LedgerUnavailable("away")

    await node.create()
    monkeypatch.setattr(type(engine.ledger), "sales", away)
    other = await make_node_with_gate(settings, engine, engine.gate)
    assert (await other.http.get("/v1/sales")).status_code == 503
    assert (await other.http.get("/v1/sales", headers=OPERATOR)).status_code == 503
    page = await other.http.get("/")
    assert page.status_code == 200
    assert page.text == (await other.http.get("/orders")).text, "the script asks again"
    await other.http.aclose()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"units": 0}, "units"),
        ({"units": -5}, "units"),
        ({"units": 1.5}, "units"),
        ({"units": "10"}, "units"),
        ({"units": True}, "units"),
        ({"units": 2**53}, "units"),
        ({"title": ""}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"limit_per_buyer": 0}, "limit_per_buyer"),
        ({"price_cents": -1}, "price_cents"),
        ({"price_cents": 10**12, "units": 9008}, "price_cents"),
        ({"currency": "yuan"}, "currency"),
        ({"currency": "CNY\n"}, "currency"),
        ({"currency": "XYZ"}, "currency"),
        ({"currency": "XXX"}, "currency"),  # no currency, says ISO
        ({"currency": "DEM"}, "currency"),  # was one
        ({"begins_at": "tomorrow"}, "begins_at"),
        ({"begins_at": "2026-11-15T10:00:00"}, "begins_at"),
        ({"begins_at": "2030-01-01T00:00:00.0001Z", "ends_at": "2030-01-01T00:00:00.0009Z"}, "ends_at"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
        ({"begins_at": "2020-01-01T00:00:00Z", "ends_at": "2020-01-02T00:00:00Z"}, "ends_at"),
        ({"pay_within_s": 0}, "pay_within_s"),
        ({"ends_at": "9999-12-31T23:59:59-12:00"}, "ends_at"),
        ({"begins_at": "0001-01-01T00:00:00+14:00"}, "begins_at"),
        ({"timezone": "Asia/Shangai"}, "timezone"),
        ({"timezone": "../../etc/passwd"}, "timezone"),
        ({"repeat": "daily", "timezone": "../../etc/passwd"}, "timezone"),
        ({"repeat": "daily", "timezone": "Mars/Olympus"}, "timezone"),
        ({"repeat": "daily", "timezone": "Europe"}, "timezone"),
        ({"repeat": "daily", "timezone": ""}, "timezone"),
        ({"repeat": "daily", "timezone": "localtime"}, "timezone"),
        ({"repeat": "daily", "timezone": "x" * 100}, "timezone"),
        ({"repeat": "0 0 30 2 *"}, "repeat"),
        ({"repeat": "0 0 31 4,6,9,11 *"}, "repeat"),
        ({"repeat": "0 12 * * * *"}, "repeat"),
        ({"repeat": "@daily"}, "repeat"),
        ({"repeat": "weekly"}, "repeat"),
        ({"repeat": ""}, "repeat"),
        ({"repeat": " " * 5}, "repeat"),
        ({"repeat": "60 24 * * *"}, "repeat"),
        ({"repeat": "0 10 * * *" + " " * 60}, "repeat"),
        ({"repeat": "daily", "ends_at": "2999-01-01T00:00:00Z"}, "ends_at"),
        ({"repeat": "*/5 * * * *"}, "ends_at"),
        ({"repeat": "daily", "pay_within_s": 0}, "pay_within_s"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_bad_fields_are_named(node: Node, change: dict[str, Any], field: str) -> None:
    response = await node.http.post("/v1/sales", json=sale_body(**change), headers=OPERATOR)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["code"] == "invalid"
    assert problem["errors"][0]["field"] == field
    assert (await node.http.get("/v1/sales")).json()["sales"] == []


@pytest.mark.parametrize("missing", ["title", "units", "begins_at", "ends_at"])
async def test_missing_fields_are_named(node: Node, missing: str) -> None:
    body = {name: value for name, value in sale_body().items() if name != missing}
    response = await node.http.post("/v1/sales", json=body, headers=OPERATOR)
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, missing)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/sales"),
        ("PATCH", "/v1/sales/{id}"),
        ("POST", "/v1/sales/{id}/pause"),
        ("POST", "/v1/sales/{id}/resume"),
        ("POST", "/v1/sales/{id}/close"),
    ],
)
async def test_only_operators_may_act(node: Node, method: str, path: str) -> None:
    sale = await node.create()
    url = path.format(id=sale["id"])
    assert (await node.http.request(method, url, json={})).status_code == 401
    assert (await node.http.request(method, url, json={}, headers=buyer("ann"))).status_code == 403
    wrong = {"Authorization": "Bearer an-admin-key-for-tests-onlY"}
    assert (await node.http.request(method, url, json={}, headers=wrong)).status_code in (401, 403)
    shown = (await node.http.get(f"/v1/sales/{sale['id']}")).json()
    assert shown["state"] == "open"


async def test_the_admin_key_is_no_buyer(node: Node) -> None:
    sale = await node.create()
    response = await node.http.post(f"/v1/sales/{sale['id']}/orders", headers=OPERATOR)
    assert response.status_code == 401


async def test_pause_resume_close(node: Node) -> None:
    sale = await node.create()
    url = f"/v1/sales/{sale['id']}"
    assert (await node.http.post(f"{url}/pause", headers=OPERATOR)).json()["state"] == "paused"
    assert (await node.buy(sale, "ann")).json()["code"] == "paused"
    assert (await node.http.post(f"{url}/resume", headers=OPERATOR)).json()["state"] == "open"
    assert (await node.buy(sale, "ann")).status_code == 202
    assert (await node.http.post(f"{url}/close", headers=OPERATOR)).json()["state"] == "ended"
    assert (await node.buy(sale, "bob")).status_code == 410
    refused = await node.http.post(f"{url}/resume", headers=OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_possible")
    assert (await node.http.post(f"{url}/close", headers=OPERATOR)).status_code == 200


async def test_units_are_added_during_the_sale(node: Node) -> None:
    sale = await node.create(units=1)
    assert (await node.buy(sale, "ann")).status_code == 202
    assert (await node.buy(sale, "bob")).json()["code"] == "sold_out"
    changed = await node.http.patch(f"/v1/sales/{sale['id']}", json={"add_units": 1}, headers=OPERATOR)
    assert changed.json()["units"] == 2
    await node.refresh()
    assert (await node.buy(sale, "bob")).status_code == 202
    assert (await node.buy(sale, "cid")).json()["code"] == "sold_out"


async def test_title_limit_and_window_can_be_changed(node: Node) -> None:
    sale = await node.create(limit_per_buyer=1)
    later = (datetime.now(UTC) + timedelta(hours=5)).isoformat(timespec="milliseconds")
    patch = {"title": "Better phone", "limit_per_buyer": 2, "ends_at": later}
    changed = (await node.http.patch(f"/v1/sales/{sale['id']}", json=patch, headers=OPERATOR)).json()
    assert (changed["title"], changed["limit_per_buyer"]) == ("Better phone", 2)
    assert datetime.fromisoformat(changed["ends_at"]) == datetime.fromisoformat(later)
    assert (await node.buy(sale, "ann", quantity=2)).status_code == 202


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        ({"add_units": 0}, 422),
        ({"add_units": -1}, 422),
        ({"units": 5}, 422),
        ({"ends_at": "2020-01-01T00:00:00Z"}, 422),
        ({"begins_at": "2030-01-01T00:00:00Z"}, 422),
        ({"begins_at": "2021-01-01T00:00:00Z"}, 409),
        ({"title": "two\nlines"}, 422),
        ({"state": "open"}, 422),
    ],
)
async def test_bad_changes_change_nothing(node: Node, patch: dict[str, Any], status: int) -> None:
    sale = await node.create()
    response = await node.http.patch(f"/v1/sales/{sale['id']}", json=patch, headers=OPERATOR)
    assert response.status_code == status, response.text
    shown = (await node.http.get(f"/v1/sales/{sale['id']}", headers=OPERATOR)).json()
    assert shown | {"server_time": ""} == sale | {"server_time": ""}


async def test_a_sale_that_did_not_change_is_not_sent_again(node: Node) -> None:
    sale = await node.create(units=1)
    for url in (f"/v1/sales/{sale['id']}", "/v1/sales"):
        first = await node.http.get(url)
        assert "max-age" in first.headers["cache-control"]
        again = await node.http.get(url, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    first = await node.http.get(f"/v1/sales/{sale['id']}")
    await node.buy(sale, "ann")
    await node.refresh()
    changed = await node.http.get(f"/v1/sales/{sale['id']}", headers={"If-None-Match": first.headers["etag"]})
    assert (changed.status_code, changed.json()["state"]) == (200, "sold_out")


async def test_the_states_of_a_sale(node: Node) -> None:
    now = datetime.now(UTC)
    scheduled = await node.create(
        begins_at=(now + timedelta(hours=1)).isoformat(), ends_at=(now + timedelta(hours=2)).isoformat()
    )
    assert scheduled["state"] == "scheduled"
    response = await node.buy(scheduled, "ann")
    assert (response.status_code, response.json()["code"]) == (409, "not_started")
    assert response.json()["begins_at"] == scheduled["begins_at"]


async def test_unknown_sales_cost_neither_gate_nor_ledger(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand random ids: the node asks no server about them and makes no key for them (F71, M20)."""
    calls: list[str] = []

    class Counting:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            calls.append(name)
            return getattr(self._inner, name)

    context = node.api.context
    monkeypatch.setattr(context.sale_cache, "_ledger", Counting(node.engine.ledger))
    monkeypatch.setattr(context.sale_cache, "_gate", Counting(node.engine.gate))
    monkeypatch.setattr(context.desk, "_gate", Counting(node.engine.gate))

    chance = random.Random(5)
    headers = buyer("ann")
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    for _ in range(500):
        for _ in range(20):
            sale_id = "".join(chance.choices(alphabet, k=13))
            assert await context.sale_cache.find(sale_id) is None
        response = await node.http.post(f"/v1/sales/{sale_id}/orders", headers=headers)
        assert response.status_code == 404
    assert response.json()["code"] == "unknown_sale"
    assert (await node.http.get(f"/v1/sales/{sale_id}")).status_code == 404
    assert calls == []
    control = await node.create()
    await node.buy(control, "ann")
    assert "admit" in calls, "the counting works"


async def test_a_change_is_stored_when_the_gate_is_away(node: Node, settings: Settings, engine: Engine) -> None:
    """It is in the ledger, and the keeper passes it on (F44)."""

    nowhere = RedisGate("unix:///nowhere/at.all", timeout_s=0.5, backlog_max=1)
    cut_off = await make_node_with_gate(settings, engine, nowhere)
    response = await cut_off.http.post("/v1/sales", json=sale_body(), headers=OPERATOR)
    assert (response.status_code, response.json()["code"]) == (503, "not_in_force")
    assert "retry-after" not in response.headers, "to repeat it would do it twice"
    stored = response.json()["sale"]
    await node.refresh()
    assert (await node.buy(stored, "ann")).json()["code"] == "not_ready"
    (round_,) = await engine.ledger.rounds_to_sync()

    await bring_to_gate(round_, engine.gate, engine.ledger)
    assert (await node.buy(stored, "ann")).status_code == 202
    await cut_off.http.aclose()
    await nowhere.close()


async def make_node_with_gate(settings: Settings, engine: Engine, gate: Any) -> Node:

    api = Api(settings, replace(engine, gate=gate))

    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://seckill")
    return Node(http, api, engine, None)  # type: ignore[arg-type]


async def test_the_list_shows_the_last_past_sales_and_the_way_to_the_rest(
    node: Node, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seckill.web.sales.sales.ENDED_MAX", 2)
    titles = ["on", "old", "older", "oldest", "ancient", "primeval"]
    for hours, title in enumerate(titles):
        begins = (datetime.now(UTC) - timedelta(hours=hours + 1)).isoformat()
        sale = await node.create(title=title, begins_at=begins)
        if title != "on":
            await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    await node.create(title="coming", begins_at=(datetime.now(UTC) + timedelta(minutes=9)).isoformat())
    first = (await node.http.get("/v1/sales")).json()
    assert [sale["title"] for sale in first["sales"]] == ["older", "old", "on", "coming"]
    second = (await node.http.get("/v1/sales", params={"before": first["older"]})).json()
    assert [sale["title"] for sale in second["sales"]] == ["ancient", "oldest"]
    third = (await node.http.get("/v1/sales", params={"before": second["older"]})).json()
    assert ([sale["title"] for sale in third["sales"]], third["older"]) == (["primeval"], None)
    refused = await node.http.get("/v1/sales", params={"before": "NOTHING"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "before")


async def test_the_windows_of_a_repetition_before_it_is_announced(node: Node) -> None:
    body = {"begins_at": "2030-01-04T10:00:00+08:00", "ends_at": "2030-01-04T11:00:00+08:00"}

    async def windows(**changes: str) -> httpx2.Response:
        return await node.http.post("/v1/admin/windows", json=body | changes, headers=OPERATOR)

    weekdays = (await windows(repeat="0 10 * * MON-FRI", timezone="Asia/Shanghai")).json()["windows"]
    assert [window["begins_at"][:13] for window in weekdays] == [f"2030-01-{day:02}T02" for day in (4, 7, 8, 9, 10)]
    assert weekdays[0]["ends_at"] == "2030-01-04T03:00:00.000Z"
    for changes, field in (
        ({"repeat": "now and then"}, "repeat"),
        ({"repeat": "daily", "timezone": "Middle/Earth"}, "timezone"),
        ({"repeat": "*/30 * * * *"}, "ends_at"),
        ({"repeat": "daily", "ends_at": body["begins_at"]}, "ends_at"),
        ({"repeat": "daily", "ends_at": "9999-01-01T00:00:00Z"}, "ends_at"),
    ):
        refused = await windows(**changes)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)
    assert (await node.http.post("/v1/admin/windows", json=body, headers=buyer("ann"))).status_code == 403
    assert (await node.http.get("/v1/sales")).json()["sales"] == []


async def test_amounts_are_in_minor_units_and_the_description_says_so(node: Node) -> None:
    sale = await node.create(price_cents=19_850, currency="JPY")
    assert (sale["price_cents"], sale["currency"]) == (19_850, "JPY")
    schemas = (await node.http.get("/openapi.json")).json()["components"]["schemas"]
    for name, field in [("NewSale", "price_cents"), ("Sale", "price_cents"), ("Order", "price_cents")]:
        assert "9900 is 99.00 CNY, 9900 JPY or 9.900 KWD" in schemas[name]["properties"][field]["description"]


async def test_a_sale_in_a_currency_that_is_not_known_any_more_goes_on(node: Node, engine: Engine) -> None:
    """It was announced before unknown ones were refused, or its currency was abolished."""
    made = await engine.ledger.create_sale(replace(draft(price_cents=100), currency="XYZ"), lane=0)
    sale = {"id": engine.sale_ids.encode(made.id)}
    shown = (await node.http.get(f"/v1/sales/{sale['id']}")).json()
    assert (shown["price_cents"], shown["currency"]) == (100, "XYZ")


async def test_what_is_left_is_told_in_steps_and_only_while_it_is_known(node: Node) -> None:
    sale = await node.create(units=10)
    now = datetime.now(UTC)
    coming = await node.create(
        begins_at=(now + timedelta(hours=1)).isoformat(), ends_at=(now + timedelta(hours=2)).isoformat()
    )

    async def told(of: dict[str, Any]) -> Any:
        await node.refresh()
        return (await node.http.get(f"/v1/sales/{of['id']}")).json()["left_percent"]

    assert (await told(sale), await told(coming)) == (100, None)
    for buyers, percent in ((3, 75), (5, 25), (2, 0)):
        for number in range(buyers):
            assert (await node.buy(sale, f"buyer-{percent}-{number}")).status_code == 202
        assert await told(sale) == percent


async def test_the_list_is_made_once_for_all_who_ask_and_anew_when_anything_changes(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every buyer asks again and again, and each of a hundred sales takes time to write down."""
    now_ms, made = node.api.context.sale_cache.now_ms(), 0
    sales = [await node.create(title=f"Phone {number}", units=1) for number in range(3)]

    def counting(*args: Any, **facts: Any) -> Any:
        nonlocal made
        made += 1
        return view(*args, **facts)

    view = web_sales.view
    monkeypatch.setattr(web_sales, "view", counting)
    monkeypatch.setattr(SaleCache, "now_ms", lambda _: now_ms)
    for _ in range(20):
        for address in ("/v1/sales", "/", "/v1/sales"):
            assert (await node.http.get(address)).status_code == 200
    assert made == len(sales), "written down once"
    await node.http.patch(f"/v1/sales/{sales[0]['id']}", json={"title": "Kettle"}, headers=OPERATOR)
    await node.http.patch(f"/v1/sales/{sales[1]['id']}", json={"published": False}, headers=OPERATOR)
    listed = (await node.http.get("/v1/sales")).json()["sales"]
    assert [sale["title"] for sale in listed] == ["Kettle", "Phone 2"]
    assert (await node.buy(sales[2], "ann")).status_code == 202
    await node.refresh()
    listed = (await node.http.get("/v1/sales")).json()["sales"]
    assert [sale["state"] for sale in listed] == ["open", "sold_out"]
    now_ms += 2 * 3600 * 1000
    assert {sale["state"] for sale in (await node.http.get("/v1/sales")).json()["sales"]} == {"ended"}
