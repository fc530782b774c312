"""Whatever an operator changes is on the record: each route with which something can be changed is called here."""

from typing import Any

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import dead_letters, rounds
from seckill.bootstrap.engine import Engine
from seckill.ports.queue_entry import write_entry
from seckill.ports.transport import Delivery
from seckill.web.routes import ROUTES
from tests.api.conftest import OPERATOR, Node, buyer, sale_body
from tests.api.test_images import written
from tests.api.test_operator_record import record
from tests.backends.sql.making import admission

WHY = "the shop has called"
# These change nothing.
ONLY_READ = {"POST /v1/admin/windows", "POST /v1/admin/buyers/export"}
ON_RECORD = {
    "DELETE /v1/admin/entries/{entry_id}": {"entry.removed"},
    "DELETE /v1/admin/operators/{key_id}": {"key.revoked"},
    "DELETE /v1/admin/webhooks/{webhook_id}": {"webhook.deleted"},
    "GET /v1/admin/orders": {"vouchers.shown"},  # from then on a code is its buyer's
    "GET /v1/admin/orders.jsonl": {"vouchers.shown"},
    "PATCH /v1/admin/sales/{sale_id}/line": {"line.changed"},
    "PATCH /v1/admin/webhooks/{webhook_id}": {"webhook.changed"},
    "PATCH /v1/sales/{sale_id}": {"sale.changed"},
    "POST /v1/admin/buyers/block": {"buyer.blocked"},
    "POST /v1/admin/buyers/end-tokens": {"buyer.tokens_ended"},
    "POST /v1/admin/buyers/erase": {"buyer.erased"},
    "POST /v1/admin/buyers/unblock": {"buyer.unblocked"},
    "POST /v1/admin/dead/{letter_id}/discard": {"letter.discarded"},
    "POST /v1/admin/dead/{letter_id}/replay": {"letter.replayed"},
    "POST /v1/admin/images": {"image.uploaded"},
    "POST /v1/admin/operators": {"key.created"},
    "POST /v1/admin/orders/{order_id}/cancel": {"order.cancelled"},
    "POST /v1/admin/orders/{order_id}/refund": {"order.refunded"},
    "POST /v1/admin/refunds/{refund_id}/done": {"refund.done"},
    "POST /v1/admin/repair": {"repair.applied"},
    "POST /v1/admin/sales/{sale_id}/duplicate": {"sale.created"},
    "POST /v1/admin/sales/{sale_id}/vouchers": {"vouchers.uploaded"},
    "POST /v1/admin/tokens/end": {"tokens.ended"},
    "POST /v1/admin/vouchers/{code}/redeem": {"voucher.redeemed"},
    "POST /v1/admin/webhooks": {"webhook.created"},
    "POST /v1/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": {"webhook.redelivered"},
    "POST /v1/admin/webhooks/{webhook_id}/rotate": {"webhook.rotated"},
    "POST /v1/admin/webhooks/{webhook_id}/test": {"webhook.tested"},
    "POST /v1/sales": {"sale.created"},
    "POST /v1/sales/{sale_id}/close": {"sale.closed"},
    "POST /v1/sales/{sale_id}/pause": {"sale.paused"},
    "POST /v1/sales/{sale_id}/resume": {"sale.resumed"},
    "PUT /v1/admin/sales/{sale_id}/audience": {"audience.replaced"},
}


class Hand:
    """An operator's. It notes what each route leaves on the record."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.left: dict[str, set[str]] = {}

    async def __call__(
        self, route: str, body: object = None, *, content: bytes | None = None, query: str = "", **ids: str
    ) -> Any:
        method, path = route.split()
        before = {entry["id"] for entry in await record(self.node, limit="1000")}
        headers = OPERATOR | {"Seckill-Reason": WHY} | ({} if content is None else {"Content-Type": "text/csv"})
        answer = await self.node.http.request(
            method, path.format(**ids) + query, json=body, content=content, headers=headers
        )
        assert answer.is_success, (route, answer.text)
        entries = [entry for entry in await record(self.node, limit="1000") if entry["id"] not in before]
        for entry in entries:
            assert (entry["who"], entry["why"]) == ("root", WHY), entry
        self.left.setdefault(route, set()).update(entry["what"] for entry in entries)
        is_json = answer.headers.get("content-type", "") == "application/json"
        return answer.json() if is_json else answer.text


async def sales(hand: Hand, engine: Engine) -> None:
    sale = await hand("POST /v1/sales", sale_body())
    of = {"sale_id": sale["id"]}
    await hand("PATCH /v1/sales/{sale_id}", {"title": "Tablet"}, **of)
    await hand("POST /v1/sales/{sale_id}/pause", **of)
    await hand("POST /v1/sales/{sale_id}/resume", **of)
    await hand("POST /v1/admin/sales/{sale_id}/duplicate", {}, **of)
    await hand("PUT /v1/admin/sales/{sale_id}/audience", content=b"ann\nbob\n", **of)
    await hand("POST /v1/admin/images", content=written())
    ledger = engine.ledger
    assert isinstance(ledger, SqlLedger)
    async with ledger.database.writers.begin() as connection:
        await connection.execute(rounds.update().values(sold=rounds.c.sold + 1))
    await hand("POST /v1/admin/repair", {"apply": True})
    await hand("POST /v1/sales/{sale_id}/close", **of)


async def orders(hand: Hand) -> None:
    node = hand.node
    sale = await node.create(units=2)
    placed = [(await node.buy(sale, user)).json()["order_id"] for user in ("ann", "bob")]
    await node.work()
    paid = await node.http.post(f"/v1/orders/{placed[1]}/pay", headers=buyer("bob"))
    assert paid.status_code == 200, paid.text
    await hand("POST /v1/admin/orders/{order_id}/cancel", {"reason": WHY}, order_id=placed[0])
    refund = {"reason": WHY, "return_unit": True}
    await hand("POST /v1/admin/orders/{order_id}/refund", refund, order_id=placed[1])
    (owed,) = (await node.http.get("/v1/admin/refunds", headers=OPERATOR)).json()["refunds"]
    await hand("POST /v1/admin/refunds/{refund_id}/done", refund_id=owed["id"])


async def codes(hand: Hand) -> None:
    node = hand.node
    sale = await node.create(units=2, price_cents=0, vouchers=True)
    await hand("POST /v1/admin/sales/{sale_id}/vouchers", content=b"CODE-A1\nCODE-B2\n", sale_id=sale["id"])
    placed = [(await node.buy(sale, user)).json()["order_id"] for user in ("ann", "bob")]
    await node.work()
    for _ in range(2):  # the second time, nothing changes
        await hand("GET /v1/admin/orders", query=f"?order_id={placed[0]}")
        assert "CODE-" in await hand("GET /v1/admin/orders.jsonl", query=f"?codes=true&sale_id={sale['id']}")
    shown = await record(node, what="vouchers.shown")
    assert [(entry["after"], entry["sale_id"]) for entry in shown] == 2 * [({"codes": 1}, sale["id"])]
    await hand("POST /v1/admin/vouchers/{code}/redeem", code="CODE-A1")


async def letters(hand: Hand, engine: Engine) -> None:
    await hand.node.create()
    ledger = engine.ledger
    assert isinstance(ledger, SqlLedger)
    round_ = max(await ledger.sales(), key=lambda sale: sale.id).round
    for number in (8, 9):
        lost = admission(round_, number)
        await ledger.set_aside(Delivery(round_.lane, f"1-{number}", write_entry(lost), lost), "too late", 0.0)
    async with ledger.database.writers.begin() as connection:
        await connection.execute(dead_letters.update().values(state="dead", next_ms=None))
    for letter, verb in zip((await hand("GET /v1/admin/dead"))["dead"], ("replay", "discard"), strict=True):
        await hand(f"POST /v1/admin/dead/{{letter_id}}/{verb}", letter_id=letter["id"])


async def people(hand: Hand) -> None:
    key = await hand("POST /v1/admin/operators", {"name": "Li Na", "role": "viewer"})
    await hand("DELETE /v1/admin/operators/{key_id}", key_id=key["id"])
    for verb in ("block", "unblock", "end-tokens"):
        await hand(f"POST /v1/admin/buyers/{verb}", {"buyer": "eve", "reason": WHY})
    await hand("POST /v1/admin/tokens/end", {"before": "2026-01-01T00:00:00Z", "reason": WHY})
    await hand("POST /v1/admin/buyers/erase", {"buyer": "eve"})
    line = await hand.node.create(order="arrival", units=1)
    await hand("PATCH /v1/admin/sales/{sale_id}/line", {"paused": True}, sale_id=line["id"])
    joined = await hand.node.http.post(f"/v1/sales/{line['id']}/entries", json={}, headers=buyer("cat"))
    entry_id = joined.json()["entry_id"]
    await hand("DELETE /v1/admin/entries/{entry_id}", {"reason": WHY}, entry_id=entry_id)


async def webhooks(hand: Hand) -> None:
    made = await hand("POST /v1/admin/webhooks", {"url": "https://shop.example/hook", "enabled": False})
    of = {"webhook_id": made["id"]}
    await hand("PATCH /v1/admin/webhooks/{webhook_id}", {"types": ["order.*"]}, **of)
    tried = await hand("POST /v1/admin/webhooks/{webhook_id}/test", **of)
    again = "POST /v1/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver"
    await hand(again, delivery_id=tried["id"], **of)
    await hand("POST /v1/admin/webhooks/{webhook_id}/rotate", {}, **of)
    await hand("DELETE /v1/admin/webhooks/{webhook_id}", **of)


async def test_each_leaves_its_entry_with_who_and_why(node: Node, engine: Engine) -> None:
    hand = Hand(node)
    await sales(hand, engine)
    await orders(hand)
    await codes(hand)
    await letters(hand, engine)
    await people(hand)
    await webhooks(hand)
    assert {route: left for route, left in hand.left.items() if route in ON_RECORD or left} == ON_RECORD


def test_none_is_forgotten() -> None:
    changing = {f"{route.method} {route.path}" for route in ROUTES if route.who == "operator" and route.method != "GET"}
    assert changing - ONLY_READ == {route for route in ON_RECORD if not route.startswith("GET ")}
    assert changing > ONLY_READ
