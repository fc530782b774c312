"""Codes over HTTP: uploaded, given, shown to whom they belong, redeemed."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from structlog.testing import capture_logs

from seckill.domain.voucher import CODES_MAX
from seckill.engine.vouchers import IDLE_S
from seckill.web.sales import voucher_file
from tests.api.conftest import OPERATOR, Node, buyer, token

CSV = OPERATOR | {"Content-Type": "text/csv"}


async def upload(
    node: Node, sale: dict[str, Any], content: str | bytes, item_id: str | None = None, **headers: str
) -> httpx2.Response:
    body = content.encode() if isinstance(content, str) else content
    path = f"/v1/admin/sales/{sale['id']}/vouchers"
    query = {} if item_id is None else {"item_id": item_id}
    return await node.http.post(path, content=body, params=query, headers=CSV | headers)


async def make_sale(node: Node, content: str | None = None, **changes: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"units": 3, "price_cents": 0, "limit_per_buyer": 3, "vouchers": True}
    sale = await node.create(**(facts | changes))
    added = await upload(node, sale, "A-1\nA-2\nA-3\n" if content is None else content)
    assert added.status_code == 200, added.text
    return sale


async def counts(node: Node, sale: dict[str, Any]) -> dict[str, Any]:
    answer = await node.http.get(f"/v1/admin/sales/{sale['id']}/vouchers", headers=OPERATOR)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


async def bought(node: Node, sale: dict[str, Any], user: str, **body: Any) -> str:
    accepted = await node.buy(sale, user, **body)
    assert accepted.status_code == 202, accepted.text
    await node.work()
    order_id: str = accepted.json()["order_id"]
    return order_id


async def order(node: Node, order_id: str, user: str) -> dict[str, Any]:
    found = await node.http.get(f"/v1/orders/{order_id}", headers=buyer(user))
    assert found.status_code == 200, found.text
    content: dict[str, Any] = found.json()
    return content


async def redeem(node: Node, code: str, headers: dict[str, str] = OPERATOR) -> httpx2.Response:
    return await node.http.post(f"/v1/admin/vouchers/{quote(code, safe='')}/redeem", headers=headers)


async def test_codes_of_items(node: Node) -> None:
    """Cards of 10 and of 50: a buyer gets a code for exactly the card that they bought."""
    kinds = [{"title": "10", "units": 1}, {"title": "50", "units": 2}]
    sale = await node.create(units=None, price_cents=0, limit_per_buyer=3, vouchers=True, items=kinds)
    ten, fifty = (item["item_id"] for item in sale["items"])
    await upload(node, sale, "F-1\nF-2\nF-3\n", fifty)
    waits = await counts(node, sale)
    assert waits["missing"] == 1
    assert waits["items"] == [
        {"item_id": ten, "title": "10", "free": 0, "needed": 1},
        {"item_id": fifty, "title": "50", "free": 3, "needed": 2},
    ]
    assert (await node.buy(sale, "ann", item_id=fifty)).json()["code"] == "paused"
    assert (await upload(node, sale, "T-1\n", ten)).json()["missing"] == 0
    await node.refresh()
    for user, item, code in (("ann", fifty, "F-1"), ("bob", ten, "T-1")):
        mine = await order(node, await bought(node, sale, user, item_id=item), user)
        assert (mine["item_id"], mine["codes"]) == (item, [code])
    more = {"items": [{"item_id": ten, "add_units": 1}]}
    refused = await node.http.patch(f"/v1/sales/{sale['id']}", json=more, headers=OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (422, "codes_missing")
    more = {"items": [{"item_id": fifty, "add_units": 1}]}
    assert (await node.http.patch(f"/v1/sales/{sale['id']}", json=more, headers=OPERATOR)).status_code == 200


async def test_codes_for_an_item_that_the_sale_does_not_have(node: Node) -> None:
    sale = await node.create(units=3, price_cents=0, vouchers=True)
    other = await node.create(units=None, vouchers=True, items=[{"title": "S", "units": 1}])
    for item_id in (other["items"][0]["item_id"], "NOTHING", ""):
        refused = await upload(node, sale, "A-1\n", item_id)
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == "item_id"
    assert (await counts(node, sale))["codes"] == 0


async def test_from_the_upload_to_the_till(node: Node) -> None:
    sale = await node.create(units=3, price_cents=0, limit_per_buyer=2, vouchers=True)
    assert (sale["vouchers"], sale["waits_for_codes"], sale["state"]) == (True, True, "paused")
    assert (await node.buy(sale, "ann")).json()["code"] == "paused"
    assert (await counts(node, sale))["missing"] == 3
    too_few = await upload(node, sale, "A-1\r\nA-2\r\n")
    assert too_few.json() == {
        "added": 2, "codes": 2, "free": 2, "given": 0, "redeemed": 0, "void": 0, "missing": 1,
    }  # fmt: skip
    enough = await upload(node, sale, 'code\n"A-3"')
    assert (enough.json()["added"], enough.json()["missing"]) == (1, 0)
    await node.refresh()
    shown = (await node.http.get(f"/v1/sales/{sale['id']}", headers=OPERATOR)).json()
    assert (shown["waits_for_codes"], shown["state"]) == (False, "open")
    order_id = await bought(node, sale, "ann", quantity=2)
    mine = await order(node, order_id, "ann")
    assert (mine["state"], mine["codes"]) == ("paid", ["A-1", "A-2"])
    first, second = await redeem(node, "A-1"), await redeem(node, "A-1")
    assert (first.status_code, first.json()["order_id"], first.json()["buyer"]) == (200, order_id, "ann")
    assert (second.status_code, second.json()["code"]) == (409, "voucher_redeemed")
    assert second.json()["voucher"]["redeemed_at"] == first.json()["redeemed_at"]
    assert (await redeem(node, "A-3")).json()["code"] == "voucher_not_given"
    assert (await redeem(node, "A-4")).status_code == 404
    assert await counts(node, sale) == {
        "codes": 3, "free": 1, "given": 1, "redeemed": 1, "void": 0, "missing": 0,
    }  # fmt: skip


async def test_codes_are_shown_to_their_buyer_and_to_operators_only(node: Node) -> None:
    sale = await make_sale(node, "SECRET-1\nSECRET-2\nSECRET-3\n")
    order_id = await bought(node, sale, "ann")
    await redeem(node, "SECRET-2")
    [listed] = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    assert listed["codes"] == ["SECRET-1"]
    [found] = (await node.http.get(f"/v1/admin/orders?order_id={order_id}", headers=OPERATOR)).json()["orders"]
    assert found["order"]["codes"] == ["SECRET-1"]
    assert [(each["code"], each["state"], each["buyer"]) for each in found["vouchers"]] == [
        ("SECRET-1", "given", "ann")
    ]
    for path in ("/v1/admin/orders", "/v1/admin/orders.csv", "/v1/admin/orders.jsonl"):
        assert "SECRET" not in (await node.http.get(path, headers=OPERATOR)).text
        assert "SECRET-1" in (await node.http.get(f"{path}?codes=true", headers=OPERATOR)).text
        assert (await node.http.get(f"{path}?codes=no", headers=OPERATOR)).status_code == 422
    assert (await node.http.get(f"/v1/orders/{order_id}", headers=buyer("bob"))).status_code == 404
    for path in ("/v1/sales", f"/v1/sales/{sale['id']}", "/v1/admin/events", "/v1/admin/audit?full=true", "/metrics"):
        assert "SECRET" not in (await node.http.get(path, headers=OPERATOR)).text
    for path in (f"/v1/admin/sales/{sale['id']}/vouchers", "/v1/admin/vouchers/SECRET-1"):
        assert (await node.http.get(path)).status_code == 401
        assert (await node.http.get(path, headers=buyer("ann"))).status_code == 403
    assert (await redeem(node, "SECRET-1", headers=buyer("ann"))).status_code == 403


async def test_no_code_goes_into_a_log(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(code: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(node.api.context.vouchers, "redeem", fail)
    with capture_logs() as logs, pytest.raises(ZeroDivisionError):
        await redeem(node, "SECRET/1")
    [entry] = [each for each in logs if each["event"] == "a request failed"]
    assert "SECRET" not in repr({**entry, "exc_info": None})


async def test_events_tell_of_codes_and_not_which(node: Node) -> None:
    sale = await make_sale(node)
    order_id = await bought(node, sale, "ann", quantity=2)
    await redeem(node, "A-2")
    refund = {"return_unit": False, "reason": "broken"}
    await node.http.post(f"/v1/admin/orders/{order_id}/refund", json=refund, headers=OPERATOR)
    answer = await node.http.get("/v1/admin/events?types=voucher.*,round.covered", headers=OPERATOR)
    told = [(event["type"], event["data"]) for event in answer.json()["events"]]
    assert [type_ for type_, _ in told] == ["round.covered", "voucher.given", "voucher.redeemed", "voucher.voided"]
    assert all(data["sale_id"] == sale["id"] for _, data in told)
    assert [data.get("order_id") for _, data in told[1:]] == [order_id] * 3
    assert (told[1][1]["codes"], told[3][1]["void"], told[3][1]["returned"]) == (2, 2, 0)
    assert "A-2" not in answer.text


async def test_a_sale_without_codes_says_nothing_of_them(node: Node) -> None:
    sale = await node.create(price_cents=0)
    order_id = await bought(node, sale, "ann")
    assert "codes" not in await order(node, order_id, "ann")
    assert sale["vouchers"] is False
    refused = await upload(node, sale, "A-1\n")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_vouchers")


BROKEN = {
    "an empty line": ("A-1\n\nA-3\n", 2, "is empty"),
    "a code twice": ("A-1\nA-2\nA-1\n", 3, "has the same code as line 1"),
    "two columns": ("A-1\nA-2,9\n", 2, "has 2 columns: only the code may be there"),
    "an open quotation mark": ('A-1\n"A-2\n', 2, "has quotation marks that do not belong together"),
    "a tab in it": ("A-1\nA\t2\n", 2, "has a character that cannot be printed"),
    "nothing that can be seen": ("A-1\n\u200b\n", 2, "has a character that cannot be printed"),
    "too long": (f"{'x' * 128}\n{'y' * 129}\n", 2, "has a code of more than 128 bytes"),
    "too long in bytes": (f"{'中' * 43}\n", 1, "has a code of more than 128 bytes"),
    "no end of the line": (f"A-1\n{'y' * 100_000}", 2, "has a code of more than 128 bytes"),
    "a space behind it": ("A-1 \n", 1, "has a space before or after the code"),
    "no UTF-8": (b"A-1\n\xff\xfe\n", 2, "is not UTF-8"),
}


@pytest.mark.parametrize(("content", "line", "why"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_line_is_named_and_nothing_is_there(node: Node, content: Any, line: int, why: str) -> None:
    sale = await node.create(vouchers=True)
    refused = await upload(node, sale, content)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert refused.json()["errors"] == [{"field": f"line {line}", "message": why}]
    assert (await counts(node, sale))["codes"] == 0
    assert (await upload(node, sale, "A-1\nA-2\n")).status_code == 200  # nothing is left that would be in the way


async def test_a_code_that_the_pool_has_is_named(node: Node) -> None:
    sale = await make_sale(node)
    other = await node.create(vouchers=True)
    refused = await upload(node, other, "B-1\nA-2\nA-3\n")
    assert [error["field"] for error in refused.json()["errors"]] == ["line 2", "line 3"]
    assert (await counts(node, other))["codes"] == 0
    assert (await counts(node, sale))["codes"] == 3


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"content": "", "type": "text/csv"}, 422, "body"),
        ({"content": "A\n", "type": "application/json"}, 422, "Content-Type"),
    ],
)
async def test_what_is_no_upload_of_codes(node: Node, changes: dict[str, str], status: int, field: str) -> None:
    sale = await node.create(vouchers=True)
    refused = await upload(node, sale, changes["content"], **{"Content-Type": changes["type"]})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (status, field)
    path = f"/v1/admin/sales/{sale['id']}/vouchers"
    assert (await node.http.post(f"{path}?item=1", content=b"A\n", headers=CSV)).status_code == 422
    assert (await node.http.post(path, content=b"A\n")).status_code == 401
    assert (await node.http.post("/v1/admin/sales/nothing/vouchers", content=b"A\n", headers=CSV)).status_code == 404


async def test_too_many_codes_for_one_upload(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CODES_MAX == 1_000_000
    monkeypatch.setattr(voucher_file, "CODES_MAX", 3)
    sale = await node.create(vouchers=True)
    refused = await upload(node, sale, "code\nA-1\nA-2\nA-3\nA-4\n")
    assert refused.json()["errors"][0]["field"] == "line 5"


async def test_what_a_sale_with_codes_cannot_do(node: Node) -> None:
    too_many = {"title": "x", "units": 1, "vouchers": True, "limit_per_buyer": 101}
    now = datetime.now(UTC)
    window = {"begins_at": now.isoformat(), "ends_at": (now + timedelta(hours=1)).isoformat()}
    refused = await node.http.post("/v1/sales", json=too_many | window, headers=OPERATOR)
    assert refused.json()["errors"][0]["field"] == "limit_per_buyer"
    draft = await node.create(units=2, vouchers=True, published=False)
    path = f"/v1/sales/{draft['id']}"
    hasty = await node.http.patch(path, json={"published": True}, headers=OPERATOR)
    assert (hasty.status_code, hasty.json()["code"], hasty.json()["missing"]) == (422, "codes_missing", 2)
    await upload(node, draft, "A-1\nA-2\nA-3\n")
    assert (await node.http.patch(path, json={"published": True}, headers=OPERATOR)).status_code == 200
    for units, status in ((2, 422), (1, 200), (1, 422)):
        more = await node.http.patch(path, json={"add_units": units}, headers=OPERATOR)
        assert more.status_code == status, more.text
    assert (await node.http.patch(path, json={"limit_per_buyer": 200}, headers=OPERATOR)).status_code == 422


async def test_a_refund_voids_the_code_that_was_seen(node: Node) -> None:
    sale = await make_sale(node)
    order_id = await bought(node, sale, "ann")
    unseen = await bought(node, sale, "bob")
    assert (await order(node, order_id, "ann"))["codes"] == ["A-1"]
    back = {"return_unit": True, "reason": "r"}
    refused = await node.http.post(f"/v1/admin/orders/{order_id}/refund", json=back, headers=OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (409, "out_of_codes")
    done = await node.http.post(f"/v1/admin/orders/{unseen}/refund", json=back, headers=OPERATOR)
    assert done.status_code == 200
    keeping = {"return_unit": False, "reason": "r"}
    done = await node.http.post(f"/v1/admin/orders/{order_id}/refund", json=keeping, headers=OPERATOR)
    assert done.status_code == 200
    assert (await order(node, order_id, "ann"))["codes"] == []
    assert (await redeem(node, "A-1")).json()["code"] == "voucher_void"
    assert (await counts(node, sale))["free"] == 2


@pytest.mark.parametrize(
    "code", ["A B/C", "50%", "a+b=c&d", "中文-1", "..", "x/redeem", "~!$'()*,;:@", "#?[]{}|\\^`<>"]
)
async def test_any_code_can_be_redeemed_by_its_address(node: Node, code: str) -> None:
    sale = await make_sale(node, f'"{code}"\nB\nC\n')
    order_id = await bought(node, sale, "ann")
    assert (await order(node, order_id, "ann"))["codes"] == [code]
    done = await redeem(node, code)
    if code == "..":  # no address can have it
        assert done.status_code == 404
        return
    assert done.status_code == 200, done.text
    seen = await node.http.get(f"/v1/admin/vouchers/{quote(code, safe='')}", headers=OPERATOR)
    assert (seen.json()["code"], seen.json()["state"]) == (code, "redeemed")


async def test_fifty_tills_redeem_one_code_at_once(node: Node) -> None:
    sale = await make_sale(node)
    await bought(node, sale, "ann")
    answers = await asyncio.gather(*[redeem(node, "A-1") for _ in range(50)])
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 49


async def test_who_breaks_off_leaves_nothing(node: Node) -> None:
    sale = await node.create(vouchers=True)

    async def half() -> AsyncIterator[bytes]:
        yield b"A-1\nA-2\n"
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError):
        await node.http.post(f"/v1/admin/sales/{sale['id']}/vouchers", content=half(), headers=CSV)
    assert (await counts(node, sale))["codes"] == 0
    await node.engine.ledger.vouchers.clear_uploads(IDLE_S, 100)
    assert (await upload(node, sale, "A-1\nA-2\n")).status_code == 200


async def test_a_token_of_a_buyer_uploads_nothing(node: Node) -> None:
    sale = await node.create(vouchers=True)
    refused = await upload(node, sale, "A-1\n", Authorization=f"Bearer {token('ann')}")
    assert refused.status_code == 403
    assert (await counts(node, sale))["codes"] == 0
