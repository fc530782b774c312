"""The record: who has changed what, before, after, why and when; never without the change, and never changed itself."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import event

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine
from seckill.domain.sale import RoundStatus
from seckill.engine.alarms.alarm import Alarm
from seckill.errors import LedgerUnavailable
from seckill.operations.audit_pause import AuditPause
from seckill.ports.record import RecordFilter
from tests.api.conftest import OPERATOR, Node, buyer
from tests.api.test_failures import fail
from tests.api.test_operators import make_key, with_key

RECORD = "/v1/admin/record"


async def record(node: Node, **query: str) -> list[dict[str, Any]]:
    answer = await node.http.get(RECORD, params=query, headers=OPERATOR)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["entries"]
    return found


async def done(node: Node, method: str, path: str, status: int = 200, **options: Any) -> Any:
    headers = options.pop("headers", {})
    answer = await node.http.request(method, path, headers=OPERATOR | headers, **options)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def test_a_sale_from_its_announcement_to_its_end(node: Node) -> None:
    li = with_key(await make_key(node, "operator", "Li Na"))
    sale = await node.create(units=3, title="Phone")
    path = f"/v1/sales/{sale['id']}"
    await node.http.patch(path, json={"title": "Phone X", "add_units": 2}, headers=li)
    why = {"Seckill-Reason": quote("价格写错了"), "X-Request-Id": "seen-in-the-log"}
    await node.http.post(f"{path}/pause", headers=li | why)
    await node.http.patch(path, json={"title": "Phone X"}, headers=li)  # as it is: no change
    await node.http.post(f"{path}/close", headers=OPERATOR)
    closed, paused, changed, created = await record(node, sale_id=sale["id"])
    assert [entry["what"] for entry in (created, changed, paused, closed)] == [
        "sale.created",
        "sale.changed",
        "sale.paused",
        "sale.closed",
    ]
    assert [entry["who"] for entry in (created, changed, paused, closed)] == ["root", "Li Na", "Li Na", "root"]
    assert {entry["subject"] for entry in (created, changed)} == {sale["id"]}
    assert (created["before"], created["after"]["title"], created["after"]["units"]) == (None, "Phone", 3)
    assert created["after"]["begins_at"].endswith("Z")
    assert changed["before"] == {"title": "Phone", "units": 3}
    assert changed["after"] == {"title": "Phone X", "units": 5}
    assert (paused["before"], paused["after"]) == ({"status": "open"}, {"status": "paused"})
    assert (paused["why"], paused["request_id"]) == ("价格写错了", "seen-in-the-log")
    assert changed["why"] is None


async def test_everything_else_that_operators_change(node: Node, engine: Engine) -> None:
    line = await node.create(order="arrival", units=1, title="in a line")
    free = await node.create(units=2, price_cents=0, vouchers=True)
    csv = {"Content-Type": "text/csv"}
    await done(node, "POST", f"/v1/admin/sales/{free['id']}/vouchers", content=b"CODE-AB1\nCODE-AB2\n", headers=csv)
    await done(node, "PUT", f"/v1/admin/sales/{free['id']}/audience", content=b"ann\nbob\n", headers=csv)
    await done(node, "PATCH", f"/v1/admin/sales/{line['id']}/line", json={"paused": True})
    joined = await node.http.post(f"/v1/sales/{line['id']}/entries", json={}, headers=buyer("cat"))
    entry_id = joined.json()["entry_id"]
    await done(node, "DELETE", f"/v1/admin/entries/{entry_id}", json={"reason": "a bot"})
    paid = (await node.buy(free, "ann")).json()["order_id"]
    sale = await node.create(units=5, price_cents=9900)
    unpaid = (await node.buy(sale, "bob")).json()["order_id"]
    await node.work()
    await done(node, "POST", f"/v1/admin/orders/{unpaid}/cancel", json={"reason": "asked by phone"})
    await done(node, "POST", f"/v1/admin/orders/{paid}/refund", json={"reason": "faulty", "return_unit": False})
    second = (await node.buy(free, "dan")).json()["order_id"]
    await node.work()
    assert (await node.http.get(f"/v1/orders/{second}", headers=buyer("dan"))).json()["state"] == "paid"
    await done(node, "POST", "/v1/admin/vouchers/CODE-AB2/redeem")
    hook = {"url": "https://shop.example/hooks?token=very-secret", "enabled": False}
    made = await done(node, "POST", "/v1/admin/webhooks", 201, json=hook)
    path = f"/v1/admin/webhooks/{made['id']}"
    await done(node, "PATCH", path, json={"types": ["order.*"]})
    rotated = await done(node, "POST", f"{path}/rotate", json={})
    await done(node, "DELETE", path, 204)

    found = await record(node, limit="100")
    told = {entry["what"]: entry for entry in found}
    assert [entry["what"] for entry in reversed(found)] == [
        *("sale.created", "sale.created", "vouchers.uploaded", "audience.replaced", "line.changed", "entry.removed"),
        *("sale.created", "order.cancelled", "order.refunded", "voucher.redeemed"),
        *("webhook.created", "webhook.changed", "webhook.rotated", "webhook.deleted"),
    ]
    assert told["vouchers.uploaded"]["after"]["codes"] == 2
    assert told["audience.replaced"]["before"] == {"buyers": 0}
    assert told["audience.replaced"]["after"]["buyers"] == 2
    assert (told["line.changed"]["before"], told["line.changed"]["after"]) == ({"paused": False}, {"paused": True})
    assert (told["entry.removed"]["subject"], told["entry.removed"]["why"]) == (entry_id, "a bot")
    assert (told["order.cancelled"]["subject"], told["order.cancelled"]["why"]) == (unpaid, "asked by phone")
    assert told["order.cancelled"]["before"] == {"state": "unpaid"}
    assert told["order.cancelled"]["after"] == {"state": "cancelled"}
    assert told["order.refunded"]["after"] == {"state": "refunded", "return_unit": False}
    assert told["voucher.redeemed"]["after"] == {"order_id": second}
    assert (told["webhook.changed"]["before"], told["webhook.changed"]["after"]) == (
        {"types": []},
        {"types": ["order.*"]},
    )
    everything = (await node.http.get(RECORD, params={"limit": "100"}, headers=OPERATOR)).text
    for secret in ("CODE-AB", "very-secret", made["secret"], rotated["secret"], "ann"):
        assert secret not in everything


async def test_a_dead_letter_that_is_put_away(node: Node, engine: Engine, redis_url: str) -> None:
    await node.create()
    (found,) = await engine.ledger.sales()
    client: Any = connect(redis_url)
    await client.xadd(keys.orders(found.round.lane), {"order": "{garbage"})
    await client.aclose()
    await node.work()
    await fail(node, engine)
    (letter,) = (await node.http.get("/v1/admin/dead", headers=OPERATOR)).json()["dead"]
    await done(node, "POST", f"/v1/admin/dead/{letter['id']}/discard")
    (entry,) = await record(node, what="letter.*")
    assert (entry["what"], entry["subject"]) == ("letter.discarded", letter["id"])
    assert (entry["before"], entry["after"]) == ({"state": "dead"}, {"state": "discarded"})


async def test_filters_and_pages(node: Node) -> None:
    li = with_key(await make_key(node, "operator", "Li Na"))
    first, second = await node.create(), await node.create()
    await node.http.post(f"/v1/sales/{first['id']}/pause", headers=li)
    assert [entry["who"] for entry in await record(node, who="Li Na")] == ["Li Na"]
    assert len(await record(node, what="sale.*")) == 3
    assert len(await record(node, what="sale.created")) == 2
    assert len(await record(node, what="sale_*")) == 0
    assert len(await record(node, sale_id=second["id"])) == 1
    now = datetime.now(UTC)
    assert await record(node, since=(now + timedelta(hours=1)).isoformat()) == []
    assert await record(node, until=(now - timedelta(hours=1)).isoformat()) == []
    seen, after = [], None
    while True:
        query = {"limit": "2"} | ({} if after is None else {"after": after})
        page = (await node.http.get(RECORD, params=query, headers=OPERATOR)).json()
        seen += [entry["id"] for entry in page["entries"]]
        after = page["next"]
        if after is None:
            break
    assert seen == [entry["id"] for entry in await record(node, limit="100")]
    for wrong in ({"whom": "x"}, {"after": "x"}, {"since": "yesterday"}, {"sale_id": "none"}, {"limit": "0"}):
        assert (await node.http.get(RECORD, params=wrong, headers=OPERATOR)).status_code == 422


async def test_what_buyers_and_keepers_do_is_not_on_it(node: Node, engine: Engine) -> None:
    sale = await node.create(price_cents=100)
    order_id = (await node.buy(sale, "ann")).json()["order_id"]
    await node.work()
    await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer("ann"))
    assert [entry["what"] for entry in await record(node)] == ["sale.created"]


async def test_there_is_no_change_without_its_entry_and_no_entry_without_its_change(node: Node, engine: Engine) -> None:
    """The record cannot be written, so the sale stays as it was."""
    sale = await node.create()
    ledger = engine.ledger
    assert isinstance(ledger, SqlLedger)
    writers = ledger.database.writers

    def break_off(*call: Any) -> None:
        if call[2].startswith("INSERT INTO operator_record"):
            raise LedgerUnavailable("in the middle of it")

    event.listen(writers.sync_engine, "before_cursor_execute", break_off)
    try:
        broken = await node.http.post(f"/v1/sales/{sale['id']}/pause", headers=OPERATOR)
    finally:
        event.remove(writers.sync_engine, "before_cursor_execute", break_off)
    assert broken.status_code == 503
    (found,) = await ledger.sales()
    assert found.round.status is RoundStatus.OPEN, "neither of the two"
    assert [entry["what"] for entry in await record(node)] == ["sale.created"]


async def test_nothing_ever_changes_what_is_on_it(node: Node, engine: Engine) -> None:
    ledger = engine.ledger
    assert isinstance(ledger, SqlLedger)
    statements: list[str] = []
    for database_engine in (ledger.database.writers, ledger.database.readers):
        event.listen(database_engine.sync_engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    await test_everything_else_that_operators_change(node, engine)
    of_record = [statement.split()[0] for statement in statements if "operator_record" in statement]
    assert set(of_record) == {"INSERT", "SELECT"}


async def test_the_audit_is_named_when_it_pauses_a_sale(node: Node, engine: Engine) -> None:
    await node.create()
    (sale,) = await engine.ledger.sales()
    assert engine.auditor is not None
    pause = AuditPause(engine.auditor, Alarm(""), engine.ledger, node.api.context.operator_desk, pauses=True)
    pause._to_pause[sale.id, sale.round.id] = False
    await pause.begin()
    newest, *_ = await engine.ledger.book.entries(RecordFilter(), None, 10)
    assert (newest.who, newest.what, newest.request_id) == ("audit", "sale.paused", "")


@pytest.mark.parametrize("reason", ["", "two%0Alines", "%ff", "x" * 256])
async def test_a_reason_is_one_line(node: Node, reason: str) -> None:
    sale = await node.create()
    path = f"/v1/sales/{sale['id']}/pause"
    refused = await node.http.post(path, headers=OPERATOR | {"Seckill-Reason": reason})
    assert refused.status_code == 422
    assert (await node.http.get(f"/v1/sales/{sale['id']}")).json()["state"] == "open"
