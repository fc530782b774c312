"""Operators with keys and roles of their own: what each role may call, and how a key ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from seckill.bootstrap.engine import Engine
from seckill.domain.operator import Role
from seckill.settings import Settings
from seckill.web.operators.role_check import guarded
from seckill.web.route import Route
from seckill.web.routes import ROUTES
from tests.api.conftest import OPERATOR, Node, buyer, make_node
from tests.patience import PATIENCE_S

KEYS = "/v1/admin/operators"

# The roles that may call each route. A route that is missing here fails the test below.
MAY = {
    Role.VIEWER: """
        GET /metrics
        GET /v1/admin/alarms
        GET /v1/admin/audit
        GET /v1/admin/buyers
        GET /v1/admin/dead
        GET /v1/admin/dead/{letter_id}
        GET /v1/admin/events
        GET /v1/admin/live
        GET /v1/admin/me
        GET /v1/admin/orders
        GET /v1/admin/orders.csv
        GET /v1/admin/orders.jsonl
        GET /v1/admin/overview
        GET /v1/admin/record
        GET /v1/admin/refunds
        GET /v1/admin/sales/{sale_id}/history
        GET /v1/admin/sales/{sale_id}/history.csv
        GET /v1/admin/sales/{sale_id}/line
        GET /v1/admin/sales/{sale_id}/summary
        GET /v1/admin/sales/{sale_id}/timeline
        GET /v1/admin/sales/{sale_id}/vouchers
        GET /v1/admin/system
        GET /v1/admin/vouchers/{code}
        GET /v1/admin/webhooks
        GET /v1/admin/webhooks/{webhook_id}
        GET /v1/admin/webhooks/{webhook_id}/deliveries
        GET /v1/sales/{sale_id}/custody
        GET /v1/sales/{sale_id}/rounds
        POST /v1/admin/windows
    """,
    Role.OPERATOR: """
        DELETE /v1/admin/entries/{entry_id}
        PATCH /v1/admin/sales/{sale_id}/line
        PATCH /v1/sales/{sale_id}
        POST /v1/admin/buyers/block
        POST /v1/admin/buyers/end-tokens
        POST /v1/admin/buyers/export
        POST /v1/admin/buyers/unblock
        POST /v1/admin/dead/{letter_id}/discard
        POST /v1/admin/dead/{letter_id}/replay
        POST /v1/admin/images
        POST /v1/admin/orders/{order_id}/cancel
        POST /v1/admin/orders/{order_id}/refund
        POST /v1/admin/refunds/{refund_id}/done
        POST /v1/admin/sales/{sale_id}/duplicate
        POST /v1/admin/sales/{sale_id}/vouchers
        POST /v1/admin/vouchers/{code}/redeem
        POST /v1/sales
        POST /v1/sales/{sale_id}/close
        POST /v1/sales/{sale_id}/pause
        POST /v1/sales/{sale_id}/resume
        PUT /v1/admin/sales/{sale_id}/audience
    """,
    Role.ADMIN: """
        DELETE /v1/admin/operators/{key_id}
        DELETE /v1/admin/webhooks/{webhook_id}
        GET /v1/admin/operators
        PATCH /v1/admin/webhooks/{webhook_id}
        POST /v1/admin/buyers/erase
        POST /v1/admin/operators
        POST /v1/admin/repair
        POST /v1/admin/tokens/end
        POST /v1/admin/webhooks
        POST /v1/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver
        POST /v1/admin/webhooks/{webhook_id}/rotate
        POST /v1/admin/webhooks/{webhook_id}/test
    """,
}
OF_OPERATORS = [route for route in ROUTES if route.who == "operator"]


async def make_key(node: Node, role: str, name: str = "li", **more: Any) -> dict[str, Any]:
    made = await node.http.post(KEYS, json={"name": name, "role": role, **more}, headers=OPERATOR)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def with_key(made: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {made['key']}"}


def code(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json().get("code", "") if response.content else ""


def address(route: Route) -> str:
    """Nothing is there, so what is let in changes nothing."""
    path = route.path
    for name in ("sale_id", "order_id", "letter_id", "entry_id", "refund_id", "webhook_id", "delivery_id", "key_id"):
        path = path.replace(f"{{{name}}}", "0")
    return path.replace("{code}", "none")


def test_every_route_of_operators_has_its_role_in_the_table() -> None:
    listed = {f"{route.method} {route.path}": route.role for route in OF_OPERATORS}
    assert listed == {line.strip(): role for role, lines in MAY.items() for line in lines.strip().splitlines()}
    under_admin = {route.path for route in ROUTES if route.path.startswith("/v1/admin/")}
    assert under_admin <= {route.path for route in OF_OPERATORS}, "nothing there is for anybody else"


def test_a_route_of_operators_without_a_role_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="has a role"):
        Route(method="GET", path="/v1/admin/new", summary="", handler=None, who="operator")
    with pytest.raises(ValueError, match="no other has one"):
        Route(method="GET", path="/v1/new", summary="", handler=None, who="buyer", role=Role.ADMIN)


async def test_each_role_may_call_what_it_may_and_nothing_else(node: Node) -> None:
    keys = {role: with_key(await make_key(node, role, f"the {role}")) for role in Role}
    ann = buyer("ann")  # the same all the time: another one with every second would be a guess at a key
    for route in OF_OPERATORS:
        if route.path == "/metrics":
            continue  # open to all by default; below
        assert route.role is not None
        for role, headers in keys.items():
            answer = await node.http.request(route.method, address(route), headers=headers)
            refused = answer.status_code == 403 and answer.json()["code"] == "role_too_small"
            assert refused is not role.may_act_as(route.role), (role, route.method, route.path, answer.text)
        for stranger, status in (({}, 401), (ann, 403)):
            assert (await node.http.request(route.method, address(route), headers=stranger)).status_code == status


async def test_a_role_that_is_too_small_is_told_which_it_needs(node: Node) -> None:
    headers = with_key(await make_key(node, "viewer", "Wang Fang"))
    refused = await node.http.post("/v1/sales", json={}, headers=headers)
    assert refused.status_code == 403
    assert refused.json() == {
        "type": "about:blank",
        "title": "Forbidden",
        "status": 403,
        "code": "role_too_small",
        "detail": "This needs the role operator; the key of Wang Fang has the role viewer.",
        "role": "viewer",
        "needs": "operator",
    }
    assert (await node.http.get("/v1/admin/me", headers=headers)).json() == {"name": "Wang Fang", "role": "viewer"}
    assert (await node.http.get("/v1/admin/me", headers=OPERATOR)).json() == {"name": "root", "role": "admin"}


async def test_a_key_is_shown_once_and_stored_as_a_digest(node: Node, engine: Engine) -> None:
    made = await make_key(node, "operator")
    (listed,) = (await node.http.get(KEYS, headers=OPERATOR)).json()["operators"]
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert (listed["state"], listed["created_by"], listed["expires_at"]) == ("active", "root", None)
    (stored,) = await engine.ledger.access.keys()
    assert made["key"] not in repr(stored)
    record = (await node.http.get("/v1/admin/record", headers=OPERATOR)).text
    assert made["key"] not in record
    assert stored.digest not in record


async def test_a_viewer_sees_no_codes(node: Node) -> None:
    headers = with_key(await make_key(node, "viewer"))
    assert code(await node.http.get("/v1/admin/orders?codes=true", headers=headers)) == (403, "role_too_small")
    assert code(await node.http.get("/v1/admin/orders.csv?codes=true", headers=headers)) == (403, "role_too_small")
    sale = await node.create(units=1, price_cents=0, vouchers=True)
    csv = OPERATOR | {"Content-Type": "text/csv"}
    await node.http.post(f"/v1/admin/sales/{sale['id']}/vouchers", content=b"SECRET-1\n", headers=csv)
    order_id = (await node.buy(sale, "ann")).json()["order_id"]
    await node.work()
    seen = await node.http.get(f"/v1/admin/orders?order_id={order_id}", headers=headers)
    assert seen.json()["orders"][0]["order"]["state"] == "paid"
    assert "SECRET-1" not in seen.text
    assert "SECRET-1" in (await node.http.get(f"/v1/admin/orders?order_id={order_id}", headers=OPERATOR)).text


async def test_a_hidden_sale_is_seen_with_any_key(node: Node) -> None:
    sale = await node.create(published=False)
    path = f"/v1/sales/{sale['id']}"
    assert (await node.http.get(path)).status_code == 404
    assert (await node.http.get(path, headers=with_key(await make_key(node, "viewer")))).status_code == 200


async def test_a_key_expires_by_itself(node: Node) -> None:
    made = await make_key(node, "admin", expires_in_s=60)
    assert (await node.http.get("/v1/admin/me", headers=with_key(made))).status_code == 200
    now_ms = node.api.context.access_book._now_ms
    node.api.context.access_book._now_ms = lambda: now_ms() + 61_000
    assert code(await node.http.get("/v1/admin/me", headers=with_key(made))) == (403, "key_expired")


@asynccontextmanager
async def second_node(settings: Settings, engine: Engine) -> AsyncIterator[Node]:
    """Another API process: it knows of nothing but what is in the ledger."""
    other = await make_node(settings, engine)
    yield other
    await other.http.aclose()


async def test_a_revoked_key_opens_nothing_on_any_node(node: Node, settings: Settings, engine: Engine) -> None:
    made = await make_key(node, "admin")
    async with second_node(settings, engine) as other, other.api.running():
        assert (await other.http.get("/v1/admin/me", headers=with_key(made))).status_code == 200
        revoked = await node.http.delete(f"{KEYS}/{made['id']}", headers=OPERATOR)
        assert revoked.json()["state"] == "revoked"
        assert code(await node.http.get("/v1/admin/me", headers=with_key(made))) == (403, "key_revoked")
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await other.http.get("/v1/admin/me", headers=with_key(made))).status_code == 200:
                await asyncio.sleep(0.05)
        assert code(answer) == (403, "key_revoked")
    again = await node.http.delete(f"{KEYS}/{made['id']}", headers=OPERATOR)
    assert again.json() == revoked.json(), "harmless to repeat"
    assert (await node.http.delete(f"{KEYS}/nosuchkey", headers=OPERATOR)).status_code == 404


async def test_no_request_asks_the_ledger_for_keys(node: Node, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = with_key(await make_key(node, "viewer"))

    async def not_asked(*_: object, **__: object) -> None:
        raise AssertionError("a request has asked the ledger")

    for name in ("changes", "keys", "standing", "blocked"):
        monkeypatch.setattr(engine.ledger.access, name, not_asked)
    for _ in range(3):
        assert (await node.http.get("/v1/admin/me", headers=headers)).status_code == 200


async def test_guessing_is_slowed_down_and_an_old_key_is_no_guess(node: Node) -> None:
    made = await make_key(node, "viewer")
    await node.http.delete(f"{KEYS}/{made['id']}", headers=OPERATOR)
    for _ in range(20):
        assert code(await node.http.get("/v1/admin/me", headers=with_key(made))) == (403, "key_revoked")
    beginning = made["key"][: -len("0000")]
    answers = [
        code(await node.http.get("/v1/admin/me", headers={"Authorization": f"Bearer {beginning}{number:04}"}))
        for number in range(8)
    ]
    assert (403, "forbidden") in answers
    assert answers[-1] == (429, "too_many_guesses")


@pytest.mark.parametrize("name", ["root", " Root ", "audit", "two\nlines", " "])
async def test_names_that_nobody_may_have(node: Node, name: str) -> None:
    refused = await node.http.post(KEYS, json={"name": name, "role": "viewer"}, headers=OPERATOR)
    assert code(refused) == (422, "invalid")


def test_a_guard_needs_a_role() -> None:
    async def handler(_: Any) -> Any: ...

    open_route = Route(method="GET", path="/x", summary="", handler=handler)
    with pytest.raises(AssertionError):
        guarded(open_route, handler)
