"""Operators look back at figures and alarms that the keeper keeps and the API shows."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec
import pytest

from seckill.bootstrap.use_cases import UseCases
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.notes import AlarmNotes
from seckill.engine.orders.releases import ReleaseDesk
from seckill.engine.rounds.report_memory import REMEMBERED_S
from seckill.operations.presence import identify, present
from seckill.ports.board import NodeReport
from seckill.ports.figures import RoundReading
from tests.api.conftest import OPERATOR, Node, buyer

DAY_MS = 24 * 3600 * 1000


class Keeping:
    """A keeper of figures whose clock goes as the test wants it to."""

    def __init__(self, node: Node) -> None:
        self.at_s = 1_000.0
        self.node = node
        self.use = UseCases(node.engine, node.api.context.settings, monotonic=lambda: self.at_s)
        self.use.sale_cache.now_ms = lambda: self._gate_ms  # type: ignore[method-assign]
        # Some minutes ago, so that all of it has happened; and no minute ends while a test counts seconds.
        self._gate_ms = (node.api.context.sale_cache.now_ms() // 60_000 - 5) * 60_000

    async def second(self, seconds: int = 1) -> None:
        self.at_s += seconds
        self._gate_ms += 1000 * seconds
        await self.use.sale_cache.refresh_sales()
        await self.use.sale_cache.refresh_pulses()
        await self.use.sale_figures.look()
        await self.use.figure_keeping.step()

    async def kept(self, sale: dict[str, Any]) -> list[RoundReading]:
        await self.use.figure_keeping.write()
        found = await self.use.sale_cache.find_any(sale["id"])
        assert found is not None
        read = await self.node.engine.ledger.figures.read(found.id, None, 0, 2**40, 1, 999)
        return list(read)


@asynccontextmanager
async def reported(node: Node, sale: dict[str, Any]) -> AsyncIterator[None]:
    """Until the end of the block, the board has what the API process reports each second."""
    figures = node.api.context.desk.figures

    def told() -> dict[str, object]:
        return {"refused": figures.refused(), "answers": figures.answers()}

    async with present(node.engine.board, "api", told):
        while True:
            _, seen = await node.engine.board.reports()
            if any(one.report.answers for one in seen):
                break
            await asyncio.sleep(0.02)
        yield


async def sold_out(node: Node, sale: dict[str, Any], *users: str) -> list[str]:
    ids = [(await node.buy(sale, user)).json()["order_id"] for user in users]
    await node.work()
    await node.refresh()
    return ids


async def get(node: Node, sale: dict[str, Any], what: str, **query: str) -> dict[str, Any]:
    answer = await node.http.get(f"/v1/admin/sales/{sale['id']}/{what}", params=query, headers=OPERATOR)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_what_changes_is_kept_and_a_minute_in_any_case(node: Node) -> None:
    sale = await node.create(units=2)
    keeping = Keeping(node)
    for _ in range(3):
        await keeping.second()
    await sold_out(node, sale, "ann", "bob")
    for _ in range(3):
        await keeping.second()
    await keeping.second(60)
    kept = await keeping.kept(sale)
    told = [(each.at_s - kept[0].at_s, each.accepted, each.available, each.persisted) for each in kept]
    assert told == [(0, 0, 2, 0), (2, 0, 2, 0), (3, 2, 0, 2), (65, 2, 0, 2)], "with the second before the change"
    assert [each.fine for each in kept] == [False] * 4, "a minute, the sell-out, and a minute"
    assert (kept[2].unpaid, kept[2].paid, kept[2].waiting) == (2, 0, 0)


async def test_seconds_before_the_sell_out_stay_and_others_are_fine(node: Node) -> None:
    sale = await node.create(units=4)
    keeping = Keeping(node)
    await keeping.second(60)
    for user in ("ann", "bob", "cid"):
        await sold_out(node, sale, user)
        await keeping.second()
    before = await keeping.kept(sale)
    assert [each.fine for each in before][-2:] == [True, True]
    await sold_out(node, sale, "dan")
    await keeping.second()
    assert not any(each.fine for each in await keeping.kept(sale))


async def test_two_keepers_and_one_that_was_started_anew_double_nothing(node: Node) -> None:
    sale = await node.create(units=9)
    keepers = [Keeping(node), Keeping(node)]
    keepers[1]._gate_ms = keepers[0]._gate_ms
    for n in range(4):
        await sold_out(node, sale, f"buyer-{n}")
        for each in keepers:
            await each.second()
    another = Keeping(node)
    another._gate_ms = keepers[0]._gate_ms - 1000
    await another.second()
    kept = [await each.kept(sale) for each in (*keepers, another)][-1]
    assert [each.accepted for each in kept] == [1, 2, 3, 4]
    assert len({each.at_s for each in kept}) == 4


async def test_a_board_that_was_lost_doubles_no_refusal(node: Node) -> None:
    sale = await node.create(units=9)
    keeping = Keeping(node)
    await keeping.second()
    round_id = (await keeping.kept(sale))[0].round_id
    board = node.engine.board

    def report(name: str, refused: int) -> NodeReport:
        counted = {str(round_id): {"sold_out": refused}}
        return msgspec.structs.replace(identify("api"), node=name, refused=counted)

    for told, lost in (((40, 60), False), ((41, None), True), ((42, 61), False)):
        if lost:
            await board.remove("one")
            await board.remove("other")
        for name, refused in zip(("one", "other"), told, strict=True):
            if refused is not None:
                await board.post(report(name, refused))
        await keeping.second()
    kept = await keeping.kept(sale)
    assert [each.refused.get("sold_out") for each in kept] == [None, 100, 101, 103]
    assert await node.engine.ledger.figures.refusals(round_id) == {"sold_out": 103}
    await board.remove("other")
    await keeping.second(REMEMBERED_S)
    assert (await keeping.kept(sale))[-1].refused == {"sold_out": 42}, "one that has gone is not waited for any more"
    assert await node.engine.ledger.figures.refusals(round_id) == {"sold_out": 103}


async def test_history_in_the_api_and_for_a_spreadsheet(node: Node) -> None:
    sale = await node.create(units=1)
    keeping = Keeping(node)
    await keeping.second()
    await sold_out(node, sale, "ann")
    for user in ("bob", "cid"):
        assert (await node.buy(sale, user)).json()["code"] == "sold_out"
    async with reported(node, sale):
        await keeping.second()
    await keeping.kept(sale)
    told = await get(node, sale, "history", step="1")
    assert (told["step_s"], told["currency"], told["sale_id"]) == (1, "CNY", sale["id"])
    first, last = told["points"]
    assert (first["accepted_units"], last["accepted_units"], last["persisted_units"]) == (0, 1, 1)
    assert (first["refused"], last["refused"]) == ({}, {"sold_out": 2})
    assert (first["system_p99_ms"], last["available"]) == (None, 0)
    assert last["system_p99_ms"] > 0
    answer = await node.http.get(f"/v1/admin/sales/{sale['id']}/history.csv", headers=OPERATOR)
    [row] = csv.DictReader(io.StringIO(answer.text))  # all of it in one step
    assert (row["refused_sold_out"], row["accepted_units"], row["available"]) == ("2", "1", "0")
    assert "history-" in answer.headers["content-disposition"]
    whole = await get(node, sale, "history", step="86400")
    assert len(whole["points"]) == 1, "a day in one step"
    for query, field in (
        ({"from": "2020-01-01T00:00:00Z", "step": "1"}, "step"),
        ({"step": "0"}, "step"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "to"),
        ({"since": "2020-01-01T00:00:00Z"}, "since"),
        ({"from": "9999-12-31T23:00:00-14:00"}, "from"),  # in UTC, it is a year that no calendar has
        ({"to": "0001-01-01T00:00:00+14:00"}, "to"),
    ):
        refused = await node.http.get(f"/v1/admin/sales/{sale['id']}/history", params=query, headers=OPERATOR)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)


async def test_what_came_of_it(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seckill.engine.rounds.summary.FRESH_S", 0.0)
    sale = await node.create(
        units=4,
        price_cents=None,
        items=[{"title": "S", "units": 2, "price_cents": 1000}, {"title": "M", "units": 2, "price_cents": 1500}],
    )
    sizes = [item["item_id"] for item in sale["items"]]
    made = []
    for n, item in enumerate([sizes[0], sizes[0], sizes[1]]):
        made.append((await node.buy(sale, f"buyer-{n}", item_id=item)).json()["order_id"])
    await node.work()
    for n in (0, 2):
        await node.http.post(f"/v1/orders/{made[n]}/pay", headers=buyer(f"buyer-{n}"))
    await node.http.post(f"/v1/orders/{made[1]}/cancel", headers=buyer("buyer-1"))
    refund = {"amount_cents": 400, "reason": "torn", "return_unit": False}
    await node.http.post(f"/v1/admin/orders/{made[2]}/refund", json=refund, headers=OPERATOR)
    told = await get(node, sale, "summary")
    assert (told["units"], told["sold_units"], told["paid_units"], told["sell_through"]) == (4, 2, 2, 0.5)
    assert (told["lapsed"], told["lapse_rate"], told["returned_units"]) == (1, 0.3333, 1)
    [money] = told["money"]
    assert money == {
        "currency": "CNY",
        "taken_cents": 2500,
        "refunded_cents": 400,
        "refunding_cents": 400,
        "net_cents": 2100,
    }
    assert told["money_of_all_rounds"] == [money]
    way = told["conversion"]
    assert (way["viewers"], way["presses"], way["orders"], way["paid_orders"]) == (None, 3, 3, 2)
    assert (way["orders_per_press"], way["paid_per_order"]) == (1.0, 0.6667)
    small, medium = told["items"]
    assert (small["title"], small["sold_units"], small["net_cents"], small["sell_through"]) == ("S", 1, 1000, 0.5)
    assert (medium["sold_units"], medium["net_cents"]) == (1, 1100)
    assert told["sold_out_at"] is told["seconds_to_sell_out"] is None


async def test_what_is_not_there_yet_is_none_or_nothing(node: Node) -> None:
    sale = await node.create(units=4)
    told = await get(node, sale, "summary")
    assert (told["money"], told["first_order_at"], told["lapse_rate"]) == ([], None, 0.0)
    assert told["conversion"]["orders_per_press"] is None
    assert (await get(node, sale, "history"))["points"] == []
    for what in ("history", "summary", "timeline"):
        assert (await node.http.get(f"/v1/admin/sales/nope/{what}", headers=OPERATOR)).status_code == 404


async def test_a_sell_out_that_no_figures_show_is_in_the_timeline(node: Node) -> None:
    """Everything was back within the second, before the keeper looked."""
    sale = await node.create(units=1)
    [order] = await sold_out(node, sale, "ann")
    await node.http.post(f"/v1/orders/{order}/cancel", headers=buyer("ann"))
    told = (await get(node, sale, "timeline"))["entries"]
    [gone] = [each for each in told if each["kind"] == "stock.sold_out"]
    assert gone["at"] == (await get(node, sale, "summary"))["sold_out_at"]
    hidden = await get(node, sale, "timeline", to=gone["at"])
    assert "stock.sold_out" not in [each["kind"] for each in hidden["entries"]]


async def test_a_timeline_has_the_rounds_of_its_time_however_many_came_later(node: Node) -> None:
    """A sale that repeats every minute has sixty rounds more an hour later."""
    made = await node.create(repeat="daily")
    sale = newest = await node.api.context.sale_cache.find_any(made["id"])
    for _ in range(60):
        assert newest is not None
        after = newest.round
        newest = await node.engine.ledger.add_round(after, after.begins_ms + DAY_MS, after.ends_ms + DAY_MS, after.lane)
    assert sale is not None
    told = (await get(node, made, "timeline"))["entries"]
    assert [each["round"] for each in told if each["kind"] == "round.began"] == [str(sale.round.id)]


async def test_a_sale_has_a_timeline_with_who_did_what(node: Node) -> None:
    sale = await node.create(units=1)
    keeping = Keeping(node)
    await keeping.second()
    [order] = await sold_out(node, sale, "ann")
    await keeping.second()
    await node.http.post(f"/v1/orders/{order}/cancel", headers=buyer("ann"))
    await ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger).pass_on()
    await keeping.second()
    await keeping.kept(sale)
    why = OPERATOR | {"Seckill-Reason": "wrong%20price"}
    await node.http.post(f"/v1/sales/{sale['id']}/pause", headers=why)
    alarm = Alarm("", notes=AlarmNotes(node.engine.ledger.alarm_book))
    await alarm.raise_("something is broken", {"round": int(sale["round"])}, lasting=True)
    await alarm.drain(5.0)
    keeping_on = (await node.http.get("/v1/admin/overview", headers=OPERATOR)).json()
    assert [each["what"] for each in keeping_on["alarms"]] == ["something is broken"]
    [standing] = keeping_on["sales"]
    assert (standing["alarms"], standing["sold_units"], standing["units"]) == (1, 0, 1)
    assert standing["net_cents"] == 0
    await node.refresh()
    told = (await get(node, sale, "timeline"))["entries"]
    kinds = [each["kind"] for each in told]
    assert kinds[-1] == "round.began"
    assert {"sale.created", "stock.sold_out", "stock.returned", "sale.paused", "alarm.raised"} <= set(kinds)
    assert kinds.count("sale.paused") == kinds.count("sale.created") == 1, "in the feed and on the record, told once"
    paused = next(each for each in told if each["kind"] == "sale.paused")
    assert (paused["who"], paused["why"]) == ("root", "wrong price")
    times = [datetime.fromisoformat(each["at"]) for each in told]
    assert times == sorted(times, reverse=True)
    before = await get(node, sale, "timeline", to=told[-1]["at"])
    assert before["entries"] == []
    [one] = (await node.http.get("/v1/admin/alarms?on=true", headers=OPERATOR)).json()["alarms"]
    assert (one["sale_id"], one["facts"]["round"], one["on"]) == (sale["id"], sale["round"], True)
    await alarm.resolve("it is mended", {"round": int(sale["round"])}, ends="something is broken")
    await alarm.drain(5.0)
    assert (await node.http.get("/v1/admin/alarms?on=true", headers=OPERATOR)).json() == {"alarms": []}
