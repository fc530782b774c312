"""Buyers who may not buy, and tokens that were ended: on every node, and without a question to the ledger."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from seckill.audit import Verdict, open_auditor
from seckill.bootstrap.engine import Engine
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, Served, buyer, token_with
from tests.api.test_line import Keeping, joined, look
from tests.api.test_operator_record import record
from tests.api.test_operators import second_node
from tests.patience import PATIENCE_S


async def act(node: Node, verb: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = await node.http.post(f"/v1/admin/{verb}", json={"reason": "resells", **body}, headers=OPERATOR)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def issued(user: str, ago_s: float) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_with(user, iat=int(time.time() - ago_s))}"}


async def test_a_blocked_buyer_buys_pays_and_queues_no_more(node: Node) -> None:
    sale, line = await node.create(price_cents=100), await node.create(order="arrival", units=1)
    order_id = (await node.buy(sale, "bot")).json()["order_id"]
    await node.work()
    entry = await joined(node, line, "bot")
    blocked = await act(node, "buyers/block", buyer="bot")
    assert (blocked["blocked"], blocked["blocked_by"], blocked["reason"]) == (True, "root", "resells")

    claims = [
        await node.buy(sale, "bot"),
        await node.http.post(f"/v1/sales/{line['id']}/entries", json={}, headers=buyer("bot")),
        await node.http.post(f"/v1/sales/{line['id']}/pass", json={}, headers=buyer("bot")),
        await node.http.post(f"/v1/orders/{order_id}/pay", headers=buyer("bot")),
    ]
    assert {refused(answer) for answer in claims} == {(403, "blocked")}
    assert "resells" not in claims[0].text, "why, the buyer is told by people"
    assert (await node.http.get(f"/v1/orders/{order_id}", headers=buyer("bot"))).status_code == 200
    seen = await node.http.get(f"/v1/entries/{entry['entry_id']}", headers=buyer("bot"))
    assert seen.json()["state"] == "left", "nobody serves them when their turn comes"
    assert "resells" not in seen.text
    assert (await node.buy(sale, "ann")).status_code == 202, "nobody else notices"
    assert (await node.http.post("/v1/sales/none/orders", json={}, headers=buyer("bot"))).status_code == 404

    listed = (await node.http.get("/v1/admin/buyers", headers=OPERATOR)).json()
    assert [each["buyer"] for each in listed["buyers"]] == ["bot"]
    free = await act(node, "buyers/unblock", buyer="bot")
    assert (free["blocked"], free["reason"]) == (False, None)
    assert (await node.http.post(f"/v1/orders/{order_id}/pay", headers=buyer("bot"))).json()["state"] == "paid"
    whats = [(entry["what"], entry["subject"], entry["why"]) for entry in await record(node, what="buyer.*")]
    assert whats == [("buyer.unblocked", "bot", "resells"), ("buyer.blocked", "bot", "resells")]


async def test_every_node_hears_of_it(node: Node, settings: Settings, engine: Engine) -> None:
    sale = await node.create(units=100, limit_per_buyer=100)
    async with second_node(settings, engine) as other, other.api.running():
        assert (await other.buy(sale, "bot")).status_code == 202
        await act(node, "buyers/block", buyer="bot")
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await other.buy(sale, "bot")).status_code == 202:
                await asyncio.sleep(0.05)
        assert refused(answer) == (403, "blocked")
        await act(node, "buyers/unblock", buyer="bot")
        async with asyncio.timeout(PATIENCE_S):
            while (await other.buy(sale, "bot")).status_code != 202:
                await asyncio.sleep(0.05)


async def test_a_node_that_does_not_know_yet_sells_nothing(node: Node, settings: Settings, engine: Engine) -> None:
    """Otherwise a blocked buyer could buy from any node that was started a moment ago."""
    sale = await node.create()
    fresh = type(node.api)(settings, engine)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(fresh), base_url="http://seckill")
    path = f"/v1/sales/{sale['id']}/orders"
    assert refused(await http.post(path, json={}, headers=buyer("ann"))) == (503, "not_ready")
    await fresh.context.access_book.refresh()
    assert (await http.post(path, json={}, headers=buyer("ann"))).status_code == 202
    await http.aclose()


async def test_no_claim_asks_the_ledger(node: Node, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    sale = await node.create(units=10)
    await act(node, "buyers/block", buyer="bot")

    async def not_asked(*_: object, **__: object) -> None:
        raise AssertionError("a claim has asked the ledger")

    for name in ("changes", "standing", "blocked"):
        monkeypatch.setattr(engine.ledger.access, name, not_asked)
    assert (await node.buy(sale, "ann")).status_code == 202
    assert refused(await node.buy(sale, "bot")) == (403, "blocked")


async def test_tokens_issued_before_a_moment_are_over(node: Node) -> None:
    sale = await node.create(units=10, limit_per_buyer=10)
    path = f"/v1/sales/{sale['id']}/orders"
    old, new = issued("ann", 100), issued("ann", 10)
    assert (await node.http.post(path, json={}, headers=old)).status_code == 202
    before = (datetime.now(UTC) - timedelta(seconds=50)).isoformat()
    assert (await act(node, "buyers/end-tokens", buyer="ann", before=before))["tokens_ended_before"] is not None
    over = await node.http.post(path, json={}, headers=old)
    assert refused(over) == (401, "unauthenticated")
    assert "sign in again" in over.json()["detail"]
    assert (await node.http.post(path, json={}, headers=new)).status_code == 202
    assert (await node.http.post(path, json={}, headers=issued("bob", 100))).status_code == 202, "only hers"
    earlier = (datetime.now(UTC) - timedelta(seconds=500)).isoformat()
    await act(node, "buyers/end-tokens", buyer="ann", before=earlier)
    assert (await node.http.post(path, json={}, headers=old)).status_code == 401, "nothing comes back to life"

    await act(node, "tokens/end", before=before)
    assert (await node.http.post(path, json={}, headers=issued("bob", 100))).status_code == 401
    assert (await node.http.post(path, json={}, headers=issued("bob", 10))).status_code == 202
    unsaid = {"Authorization": f"Bearer {token_with('cat', iat=0)}"}
    assert (await node.http.get("/v1/orders", headers=unsaid)).status_code == 401


async def test_who_is_blocked_and_still_in_a_line_is_passed_over(node: Node, settings: Settings) -> None:
    """They joined by a process that had not heard of it."""
    line = await node.create(order="arrival", units=1)
    entries = {user: await joined(node, line, user) for user in ("bot", "ann", "bob")}
    await node.engine.ledger.access.block("bot", "resells")
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.serve()
    states = {user: await look(node, entry, user) for user, entry in entries.items()}
    assert {user: entry["state"] for user, entry in states.items()} == {
        "bot": "passed_over",
        "ann": "served",
        "bob": "waiting",
    }
    shown = (await node.http.get(f"/v1/sales/{line['id']}/line")).json()
    assert shown["waiting"] == 1
    async with open_auditor(settings) as auditor:
        assert (await auditor.read(full=True)).verdict is Verdict.HOLDS


async def test_all_tokens_up_to_now(node: Node) -> None:
    before = issued("ann", 0)
    await act(node, "tokens/end")
    assert (await node.http.get("/v1/orders", headers=before)).status_code == 401
    assert (await node.http.get("/v1/orders", headers=issued("ann", -2))).status_code == 200
    later = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    await act(node, "tokens/end", 422, before=later)
    await act(node, "buyers/block", 422, buyer=" ")


async def test_an_open_stream_tells_nothing_more(served: Served) -> None:
    order_id = await served.order(price_cents=100)
    await served.node.work()
    async with (
        httpx2.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as http,
        http.stream("GET", f"/v1/orders/{order_id}/events", headers=issued("ann", 100)) as stream,
    ):
        lines = stream.aiter_lines()
        while not (await anext(lines)).startswith("data:"):
            pass
        await act(served.node, "buyers/end-tokens", buyer="ann")
        path = f"/v1/admin/orders/{order_id}/cancel"
        await served.node.http.post(path, json={"reason": "test"}, headers=OPERATOR)
        rest = [line async for line in lines]
    assert not any("cancelled" in line for line in rest)
