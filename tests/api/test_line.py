"""The line of a sale, over HTTP: joining, the draw, being served, leaving, what is told to whom."""

import asyncio
import hashlib
from base64 import urlsafe_b64decode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.client.draw_check import Receipt
from seckill.domain.sale import SaleChange
from seckill.engine.rounds.opening import bring_to_gate
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, Served, buyer, keeping, sale_body, token
from tests.live import socket
from tests.patience import PATIENCE_S


def later() -> dict[str, str]:
    begins_at = datetime.now(UTC) + timedelta(hours=1)
    return {"begins_at": begins_at.isoformat(), "ends_at": (begins_at + timedelta(hours=1)).isoformat()}


async def join(node: Node, sale: dict[str, Any], user: str, **body: Any) -> httpx2.Response:
    return await node.http.post(f"/v1/sales/{sale['id']}/entries", json=body, headers=buyer(user))


async def joined(node: Node, sale: dict[str, Any], user: str, **body: Any) -> dict[str, Any]:
    response = await join(node, sale, user, **body)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


async def look(node: Node, entry: dict[str, Any], user: str) -> dict[str, Any]:
    response = await node.http.get(f"/v1/entries/{entry['entry_id']}", headers=buyer(user))
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def begin(node: Node, sale: dict[str, Any]) -> None:
    """Now, and not in an hour."""
    body = {"begins_at": datetime.now(UTC).isoformat()}
    changed = await node.http.patch(f"/v1/sales/{sale['id']}", json=body, headers=OPERATOR)
    assert changed.status_code == 200, changed.text


class Keeping:
    """A keeper that takes its steps when it is told to."""

    def __init__(self, node: Node, settings: Settings) -> None:
        self.node = node
        self.use = UseCases(node.engine, settings)

    async def draw(self) -> None:
        while not await self.use.drawing.step():
            await asyncio.sleep(0.01)

    async def serve(self) -> None:
        """Serves until no buyer can be served any more."""
        await self.use.release_desk.pass_on()
        while await self.use.serving.step():
            await self.node.work()
        await self.node.refresh()


@pytest.fixture
def keeper(node: Node, settings: Settings) -> Keeping:
    return Keeping(node, settings)


async def test_a_draw_gives_places_that_anybody_can_check_and_units_follow_them(node: Node, keeper: Keeping) -> None:
    sale = await node.create(units=3, order="draw", **later())
    assert (sale["order"], sale["lined"]) == ("draw", True)
    before = (await node.http.get(f"/v1/sales/{sale['id']}/draw")).json()
    assert before["seed"] is None
    assert before["list_hash"] is None
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob", "cid", "dan", "eve")}
    assert {(entry["place"], entry["ahead"], entry["state"]) for entry in entries.values()} == {(None, None, "waiting")}
    assert entries["eve"]["of"] == 5
    assert (await node.buy(sale, "ann")).json()["code"] == "join_the_line"
    assert (await node.http.get(f"/v1/sales/{sale['id']}/draw/entries")).json()["code"] == "not_closed"
    await begin(node, sale)
    late = await joined(node, sale, "fay")
    assert (late["place"], late["ahead"]) == (6, None), "how many are ahead is known when the draw is made"
    await keeper.draw()
    await asyncio.sleep(1.0)  # figures are a second old at most
    draw = (await node.http.get(f"/v1/sales/{sale['id']}/draw")).json()
    order = (await node.http.get(f"/v1/sales/{sale['id']}/draw/entries")).json()
    assert order["drawn"]
    assert order["next"] is None
    check_draw(draw, order["entries"], before["commitment"])
    assert sorted(order["entries"]) == sorted(entry["entry_id"] for entry in entries.values())
    await keeper.serve()
    users = {entry["entry_id"]: user for user, entry in entries.items()}
    served = [await look(node, {"entry_id": entry_id}, users[entry_id]) for entry_id in order["entries"]]
    assert [entry["place"] for entry in served] == [1, 2, 3, 4, 5]
    assert [entry["state"] for entry in served] == ["served"] * 3 + ["waiting"] * 2
    assert [entry["ahead"] for entry in served] == [None, None, None, 0, 1]
    assert (await look(node, late, "fay"))["ahead"] == 2
    first = users[order["entries"][0]]
    mine = await node.http.get(f"/v1/orders/{served[0]['order_id']}", headers=buyer(first))
    assert (mine.json()["state"], mine.json()["quantity"]) == ("unpaid", 1)


def check_draw(draw: dict[str, Any], order: list[str], commitment: str) -> None:
    """Written from the description in docs/line.md alone."""

    def sha256(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    assert draw["commitment"] == commitment == sha256(draw["seed"])
    assert draw["list_hash"] == sha256("\n".join(sorted(order)))
    assert draw["entries"] == len(order)
    seed, beacon = draw["seed"], draw["beacon"] or ""
    assert order == sorted(order, key=lambda entry_id: sha256(f"{seed}:{beacon}:{draw['list_hash']}:{entry_id}"))


async def test_a_receipt_of_the_server_is_what_the_check_understands(node: Node) -> None:
    """The check knows nothing of ours: it was written from the description alone."""
    sale = await node.create(order="draw", **later())
    receipt = Receipt.read((await joined(node, sale, "ann"))["receipt"])
    draw = (await node.http.get(f"/v1/sales/{sale['id']}/draw")).json()
    [key] = (await node.http.get("/v1/line-keys")).json()["keys"]
    assert urlsafe_b64decode(key["x"] + "=").hex() == draw["receipt_key"]
    assert (key["kty"], key["crv"]) == ("OKP", "Ed25519")
    assert receipt.holds(draw["receipt_key"])
    assert receipt.round == draw["round"] == sale["round"]
    for other in (replace(receipt, joined_ms=1), replace(receipt, entry_id="x"), replace(receipt, round="9")):
        assert not other.holds(draw["receipt_key"])


async def test_a_unit_that_comes_back_goes_to_the_next_place(node: Node, keeper: Keeping) -> None:
    sale = await node.create(units=1, order="arrival")
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob", "cid")}
    assert [entry["place"] for entry in entries.values()] == [1, 2, 3]
    await keeper.draw()
    await keeper.serve()
    ann = await look(node, entries["ann"], "ann")
    assert ann["state"] == "served"
    assert (await node.buy(sale, "dan")).json()["code"] == "join_the_line"
    left = await node.http.delete(f"/v1/entries/{entries['bob']['entry_id']}", headers=buyer("bob"))
    assert left.json()["state"] == "left"
    refused = await node.http.delete(f"/v1/entries/{entries['ann']['entry_id']}", headers=buyer("ann"))
    assert (refused.status_code, refused.json()["code"]) == (409, "already_served")
    cancelled = await node.http.post(f"/v1/orders/{ann['order_id']}/cancel", headers=buyer("ann"))
    assert cancelled.status_code == 200
    await keeper.serve()
    assert (await look(node, entries["cid"], "cid"))["state"] == "served"
    assert (await look(node, entries["bob"], "bob"))["state"] == "left"
    again = await join(node, sale, "ann")
    assert (again.status_code, again.json()["state"]) == (200, "served"), "one place for each buyer and round"


async def test_a_waiting_list_begins_when_all_is_sold(node: Node, keeper: Keeping) -> None:
    sale = await node.create(units=1, waiting_list=True)
    refused = await join(node, sale, "bob")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_sold_out")
    bought = (await node.buy(sale, "ann")).json()
    await node.work()
    first, second = await joined(node, sale, "bob"), await joined(node, sale, "cid")
    assert (first["place"], first["ahead"], second["ahead"]) == (1, 0, 1)
    assert (await node.buy(sale, "eve")).json()["code"] == "join_the_line"
    cancelled = await node.http.post(f"/v1/orders/{bought['order_id']}/cancel", headers=buyer("ann"))
    assert cancelled.status_code == 200
    await keeper.use.release_desk.pass_on()
    assert (await node.buy(sale, "eve")).json()["code"] == "join_the_line", "it belongs to those who wait"
    await keeper.serve()
    assert (await look(node, first, "bob"))["state"] == "served"
    assert (await look(node, second, "cid"))["state"] == "waiting"


async def test_nobody_waits_while_units_still_go_to_whoever_presses(node: Node, keeper: Keeping) -> None:
    """As if the process that opened the line were killed before it told the gate: the next to take an entry does."""
    sale = await node.create(units=1, waiting_list=True)
    bought = (await node.buy(sale, "ann")).json()
    await node.work()
    [known] = await node.engine.ledger.sales()
    assert await node.engine.ledger.lines.open_line(known.id, known.round.id) is not None
    await node.refresh()
    first = await joined(node, sale, "bob")
    cancelled = await node.http.post(f"/v1/orders/{bought['order_id']}/cancel", headers=buyer("ann"))
    assert cancelled.status_code == 200
    await keeper.use.release_desk.pass_on()
    assert (await node.buy(sale, "eve")).json()["code"] == "join_the_line"
    await keeper.serve()
    assert (await look(node, first, "bob"))["state"] == "served"


async def test_when_no_unit_can_come_back_those_who_wait_are_told(node: Node, keeper: Keeping) -> None:
    sale = await node.create(units=1, order="arrival", price_cents=0)
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob")}
    await keeper.draw()
    await keeper.serve()
    await keeper.serve()
    bob = await look(node, entries["bob"], "bob")
    assert (bob["state"], bob["reason"]) == ("passed_over", "sold_out")
    assert (await look(node, entries["ann"], "ann"))["state"] == "served"


async def test_who_is_left_when_the_sale_is_closed_is_told(node: Node, keeper: Keeping) -> None:
    sale = await node.create(units=1, order="draw", **later())
    entry = await joined(node, sale, "ann")
    assert (await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)).status_code == 200
    await keeper.serve()
    ann = await look(node, entry, "ann")
    assert (ann["state"], ann["reason"]) == ("passed_over", "ended")
    refused = await join(node, sale, "bob")
    assert (refused.status_code, refused.json()["code"]) == (410, "ended")


async def test_who_waits_stays_when_the_end_was_moved_and_the_gate_has_not_heard(node: Node, keeper: Keeping) -> None:
    """As if the API process were killed between the two: the ledger has the entry, and the gate gets it a moment
    later."""
    sale = await node.create(units=1, order="arrival", **later())
    entry = await joined(node, sale, "ann")
    now = datetime.now(UTC)
    over = {"begins_at": (now - timedelta(minutes=2)).isoformat(), "ends_at": (now - timedelta(minutes=1)).isoformat()}
    changed = await node.http.patch(f"/v1/sales/{sale['id']}", json=over, headers=OPERATOR)
    assert changed.status_code == 200, changed.text
    [known] = await node.engine.ledger.sales()
    ends_ms = int(1000 * (now + timedelta(hours=1)).timestamp())
    moved = await node.engine.ledger.change_sale(known.id, SaleChange(ends_ms=ends_ms), known.round.id)
    assert moved is not None
    await keeper.draw()
    await keeper.serve()
    assert (await look(node, entry, "ann"))["state"] == "waiting", "the gate says that it is over"
    await bring_to_gate(moved.round, node.engine.gate, node.engine.ledger)
    await keeper.serve()
    assert (await look(node, entry, "ann"))["state"] == "served"


async def test_what_an_operator_does_to_a_line(node: Node, keeper: Keeping) -> None:
    sale = await node.create(units=2, order="arrival", serve_per_s=7)
    address = f"/v1/admin/sales/{sale['id']}/line"
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob", "cid")}
    paused = await node.http.patch(address, json={"paused": True, "serve_per_s": None}, headers=OPERATOR)
    assert (paused.json()["line"]["paused"], paused.json()["serve_per_s"]) == (True, None)
    await keeper.draw()
    await keeper.serve()
    assert (await look(node, entries["ann"], "ann"))["state"] == "waiting"
    removal = {"reason": "a bot"}
    removed = await node.http.request(
        "DELETE", f"/v1/admin/entries/{entries['ann']['entry_id']}", json=removal, headers=OPERATOR
    )
    assert (removed.json()["state"], removed.json()["reason"], removed.json()["buyer"]) == ("left", "a bot", "ann")
    assert (await join(node, sale, "ann")).json()["state"] == "left", "and stays so"
    resumed = await node.http.patch(address, json={"paused": False}, headers=OPERATOR)
    assert resumed.status_code == 200
    await keeper.serve()
    shown = (await node.http.get(address, headers=OPERATOR, params={"limit": "2"})).json()
    assert [(entry["buyer"], entry["state"]) for entry in shown["entries"]] == [("ann", "left"), ("bob", "served")]
    rest = (await node.http.get(address, headers=OPERATOR, params={"after": shown["next"]})).json()
    assert [entry["buyer"] for entry in rest["entries"]] == ["cid"]
    served = (await node.http.get(address, headers=OPERATOR, params={"state": "served"})).json()
    assert [entry["buyer"] for entry in served["entries"]] == ["bob", "cid"]
    assert (await node.http.get(address, headers=buyer("ann"))).status_code == 403


async def test_no_more_are_served_in_a_second_than_the_pace_allows(node: Node, keeper: Keeping) -> None:
    sale = await node.create(units=50, order="arrival", serve_per_s=5)
    address, clock = f"/v1/admin/sales/{sale['id']}/line", [1000.0]
    keeper.use.serving._monotonic = lambda: clock[0]
    for number in range(30):
        await joined(node, sale, f"user-{number}")
    await keeper.draw()

    async def served_after(seconds: float) -> int:
        clock[0] += seconds
        await keeper.serve()
        return int((await node.http.get(address, headers=OPERATOR)).json()["line"]["served"])

    assert [await served_after(seconds) for seconds in (0, 0, 1, 0.5, 0.25, 60)] == [1, 1, 6, 8, 9, 14], (
        "and none saved up"
    )
    await node.http.patch(address, json={"serve_per_s": 2}, headers=OPERATOR)
    assert [await served_after(seconds) for seconds in (1, 1)] == [16, 18]
    await node.http.patch(address, json={"serve_per_s": None}, headers=OPERATOR)
    assert await served_after(0) == 30


async def test_an_operator_sees_who_is_in_a_draw_before_it_is_made(node: Node) -> None:
    sale = await node.create(units=2, order="draw", serve_per_s=7, beacon=True, **later())
    address = f"/v1/admin/sales/{sale['id']}/line"
    for user in ("ann", "bob", "cid"):
        await joined(node, sale, user)

    async def shown(**params: str) -> dict[str, Any]:
        answer = await node.http.get(address, headers=OPERATOR, params=params)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    first = await shown(limit="2")
    assert [(entry["buyer"], entry["place"]) for entry in first["entries"]] == [("ann", None), ("bob", None)]
    rest = await shown(limit="2", after=str(first["next"]), state="waiting")
    assert ([entry["buyer"] for entry in rest["entries"]], rest["next"]) == (["cid"], None)
    assert [entry["buyer"] for entry in (await shown(buyer="bob"))["entries"]] == ["bob"]
    assert (await shown(buyer="nobody"))["entries"] == []
    operators = (await node.http.get(f"/v1/sales/{sale['id']}", headers=OPERATOR)).json()
    assert (operators["serve_per_s"], operators["beacon"]) == (7, True)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("order", {"order": "lottery", **later()}),
        ("waiting_list", {"order": "draw", "waiting_list": True, **later()}),
        ("serve_per_s", {"serve_per_s": 5}),
        ("serve_per_s", {"order": "arrival", "serve_per_s": 0}),
        ("beacon", {"beacon": True}),
        ("begins_at", {"order": "draw"}),
        ("audience.early", {"order": "draw", "audience": {"early": [{"groups": ["a"], "minutes": 5}]}, **later()}),
    ],
)
async def test_rules_that_make_no_sense_are_refused(node: Node, field: str, wrong: dict[str, Any]) -> None:
    refused = await node.http.post("/v1/sales", json=sale_body(**wrong), headers=OPERATOR)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)


async def test_joining_is_refused_with_a_reason(node: Node) -> None:
    press, draw = await node.create(), await node.create(order="draw", **later())
    refused = await join(node, press, "ann")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_line")
    refused = await join(node, draw, "ann", quantity=2)
    assert (refused.status_code, refused.json()["code"]) == (409, "limit_reached")
    refused = await join(node, draw, "ann", quantity=0)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "quantity")
    refused = await join(node, draw, "ann", item_id="x")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "item_id")
    refused = await node.http.post(f"/v1/sales/{draw['id']}/entries")
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    refused = await join(node, {"id": "nope"}, "ann")
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown_sale")
    entry = await joined(node, draw, "ann")
    others = await node.http.get(f"/v1/entries/{entry['entry_id']}", headers=buyer("bob"))
    assert others.status_code == 404, "nobody sees another's"
    others = await node.http.delete(f"/v1/entries/{entry['entry_id']}", headers=buyer("bob"))
    assert others.status_code == 404
    assert (await node.http.get(f"/v1/sales/{press['id']}/line")).json()["code"] == "no_line"
    private = await node.create(order="draw", audience={"groups": ["gold"]}, **later())
    assert (await join(node, private, "ann")).json()["code"] == "not_invited"
    guarded = await node.create(order="draw", **{"pass": "work"}, **later())
    assert (await join(node, guarded, "ann")).json()["code"] == "pass_required"
    challenge = await node.http.post(f"/v1/sales/{guarded['id']}/pass", json={}, headers=buyer("ann"))
    assert challenge.status_code == 200, "a pass can be had as soon as the line can be joined"


async def own(node: Node, sale: dict[str, Any], user: str, **query: str) -> list[dict[str, Any]]:
    response = await node.http.get(f"/v1/sales/{sale['id']}/entries", params=query, headers=buyer(user))
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store"), response.text
    found: list[dict[str, Any]] = response.json()["entries"]
    return found


async def test_who_does_not_know_the_id_of_their_entry_is_told_and_nobody_else(node: Node) -> None:
    """For example, a buyer who signs in with another browser."""
    press, sale, other = await node.create(), await node.create(order="draw", **later()), await node.create()
    assert await own(node, sale, "ann") == []
    entry = await joined(node, sale, "ann", metadata={"size": "M"})
    [found] = await own(node, sale, "ann")
    assert found == await look(node, entry, "ann")
    assert await own(node, sale, "ann", round=sale["round"]) == [found]
    assert await own(node, sale, "bob") == [], "another's"
    assert await own(node, press, "ann") == [], "there is no line to be in"
    await joined(node, sale, "bob")
    assert [each["entry_id"] for each in await own(node, sale, "ann")] == [entry["entry_id"]]
    await node.http.delete(f"/v1/entries/{entry['entry_id']}", headers=buyer("ann"))
    assert [each["state"] for each in await own(node, sale, "ann")] == ["left"]
    address = f"/v1/sales/{sale['id']}/entries"
    refused = await node.http.get(address)
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    refused = await node.http.get("/v1/sales/nope/entries", headers=buyer("ann"))
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown_sale")
    for query in ({"round": other["round"]}, {"round": "x"}, {"buyer": "bob"}):
        refused = await node.http.get(address, params=query, headers=buyer("ann"))
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, *query)


async def test_a_buyer_is_told_when_it_is_their_turn(node: Node, settings: Settings, engine: Engine) -> None:
    sale = await node.create(units=1, order="arrival")
    entry = await joined(node, sale, "ann")
    stop = asyncio.Event()

    async def work() -> None:
        while not stop.is_set():
            await node.work()
            await node.api.context.line.watches.look()
            await asyncio.sleep(0.01)

    working = asyncio.create_task(work())
    async with keeping(settings, engine):
        async with asyncio.timeout(PATIENCE_S):
            address, found = f"/v1/entries/{entry['entry_id']}?wait=30", entry
            while found["state"] != "served":
                found = (await node.http.get(address, headers=buyer("ann"))).json()
            events = await node.http.get(f"/v1/entries/{entry['entry_id']}/events", headers=buyer("ann"))
    stop.set()
    await working
    assert "event: state" in events.text
    assert found["order_id"] in events.text, "the stream ends when nothing more can happen"


async def test_an_entry_is_sent_over_the_socket_at_once_and_at_each_change(served: Served, settings: Settings) -> None:
    node = served.node
    keeper = Keeping(node, settings)
    sale = await node.create(units=1, order="draw", **later())
    entry = await joined(node, sale, "ann")
    async with socket(served.url, token("ann")) as opened, socket(served.url, token("bob")) as other:
        await opened.say({"watch": entry["entry_id"]})
        assert (await opened.hear())["state"] == "waiting"
        await other.say({"watch": entry["entry_id"]})
        assert (await other.hear())["error"] == "not_found", "it is somebody else's"
        await begin(node, sale)
        await keeper.draw()
        drawn = await opened.hear()
        assert (drawn["place"], drawn["state"]) == (1, "waiting")
        await keeper.serve()
        told = await opened.hear()
        assert told == await look(node, entry, "ann")
        assert told["state"] == "served"
        await opened.say({"watch": told["order_id"]})
        assert (await opened.hear())["order_id"] == told["order_id"], "orders are watched over the same socket"


async def test_what_was_told_of_an_entry_stays_when_its_buyer_joins_again(node: Node) -> None:
    sale = await node.create(units=3, limit_per_buyer=3, order="draw", **later())
    entry = await joined(node, sale, "ann", quantity=2, metadata={"size": "M"})
    assert entry["metadata"] == {"size": "M"}
    await node.http.delete(f"/v1/entries/{entry['entry_id']}", headers=buyer("ann"))

    async def told() -> list[dict[str, Any]]:
        found = await node.http.get("/v1/admin/events", params={"types": "entry.joined,entry.left"}, headers=OPERATOR)
        events: list[dict[str, Any]] = found.json()["events"]
        return [event for event in events if event["data"]["entry_id"] == entry["entry_id"]]

    before = await told()
    assert [(event["type"], event["data"]["quantity"]) for event in before] == [("entry.joined", 2), ("entry.left", 2)]
    assert [event["data"].pop("metadata") for event in before] == [{"size": "M"}] * 2
    await joined(node, sale, "ann", quantity=1, metadata={"size": "L"})
    again = await told()
    assert again[:2] == before, "a feed that is read again says the same, and never the metadata of another stay"
    assert (again[2]["data"]["quantity"], again[2]["data"]["metadata"]) == (1, {"size": "L"})
    line = await node.http.get(f"/v1/admin/sales/{sale['id']}/line", headers=OPERATOR)
    assert [(each["buyer"], each["metadata"]) for each in line.json()["entries"]] == [("ann", {"size": "L"})]
    kept = await node.http.post("/v1/admin/buyers/export", json={"buyer": "ann"}, headers=OPERATOR)
    assert [each["metadata"] for each in kept.json()["entries"]] == [{"size": "L"}]
