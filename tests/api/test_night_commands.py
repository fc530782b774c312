"""The commands that an operator on call types, against an API on a port: they stop everything, look after the line and
refunds, take back a sale, and try whether alarms arrive."""

import asyncio
import csv
import io
import json
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from seckill.backends.door.beacon_reader import HttpBeacon
from seckill.backends.sql import sqlite
from seckill.bootstrap.engine import Engine
from seckill.domain.sale import RoundStatus, SaleChange
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.alarms.notes import AlarmNotes
from seckill.engine.line.beacons import Beacons
from seckill.engine.line.drawing import Drawing
from seckill.ports.record import Actor, acting_as
from seckill.settings import Settings
from tests.api.conftest import ADMIN_KEY, OPERATOR, Node, buyer
from tests.api.test_line import begin, joined, later
from tests.cli.test_command_line import seckill
from tests.patience import PATIENCE_S
from tests.public.serving import on_a_port
from tests.receiver import Received, Receiver

Said = Callable[..., Awaitable[str]]


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A database that others have locked is given up soon."""
    monkeypatch.setattr(sqlite, "BUSY_WAIT_S", 0.5)
    return settings


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Said:
    """Returns what a command prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECKILL_ADMIN_KEY", ADMIN_KEY)

    async def command(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()  # what the node has logged
        done = await asyncio.to_thread(seckill, monkeypatch, *arguments)
        told = capsys.readouterr()
        assert (done or 0) == code, told
        return told.out + told.err

    return command


async def states(node: Node, *sales: dict[str, Any]) -> list[str]:
    found = [await node.http.get(f"/v1/sales/{sale['id']}", headers=OPERATOR) for sale in sales]
    return [each.json()["state"] for each in found]


async def repeating(node: Node) -> dict[str, Any]:
    begins_at = datetime.now(UTC) - timedelta(minutes=1)
    window = {"begins_at": begins_at.isoformat(), "ends_at": (begins_at + timedelta(hours=1)).isoformat()}
    return await node.create(title="Daily", repeat="daily", **window)


async def test_all_are_stopped_and_only_those_go_on_again(node: Node, engine: Engine, said: Said) -> None:
    on, to_come, daily = await node.create(), await node.create(**later()), await repeating(node)
    paused, by_audit = await node.create(), await node.create()
    over = await node.create()
    async with on_a_port(node.api) as url:
        assert "Name one sale, or say --all." in await said("sale", "pause", "--url", url, code=1)
        await said("sale", "close", over["id"], "--url", url)
        await said("sale", "pause", paused["id"], "--reason", "its price", "--url", url)
        with acting_as(Actor("audit")):
            known = await engine.ledger.sale(engine.sale_ids.decode(by_audit["id"]) or 0, int(by_audit["round"]))
            assert known is not None
            change = SaleChange(status=RoundStatus.PAUSED, by_audit=True)
            await node.api.context.operator_desk.change(known, change)
        await node.refresh()

        told = await said("sale", "pause", "--all", "--reason", "the shop is down", "--url", url)
        assert await states(node, on, to_come, daily, paused, by_audit, over) == 5 * ["paused"] + ["ended"]
        assert over["id"] not in told
        assert "The next round, at" in told, "of the one that repeats"
        assert (await node.buy(on, "ann")).json()["code"] == "paused"
        assert await engine.ledger.rounds_of_audit() == [], "no audit lets it go on by itself"
        why = (await node.http.get(f"/v1/admin/record?sale_id={on['id']}", headers=OPERATOR)).json()["entries"][0]
        assert (why["what"], why["why"]) == ("sale.paused", "all sales are stopped: the shop is down")

        await said("sale", "resume", to_come["id"], "--url", url)
        await said("sale", "pause", to_come["id"], "--reason", "once more", "--url", url)
        told = await said("sale", "resume", "--all", "--url", url)
        assert await states(node, on, daily, to_come, paused, by_audit) == 2 * ["open"] + 3 * ["paused"]
        assert {each["id"] for each in (on, daily) if each["id"] in told} == {on["id"], daily["id"]}
        assert "No sale is paused that" in await said("sale", "resume", "--all", "--url", url)


async def test_a_pause_says_what_it_does_not_stop(node: Node, said: Said) -> None:
    daily, once = await repeating(node), await node.create()
    async with on_a_port(node.api) as url:
        told = await said("sale", "pause", daily["id"], "--url", url)
        tomorrow = datetime.fromisoformat(daily["next_rounds"][0])
        assert f"The next round, at {tomorrow:%Y-%m-%d %H:%M:%S}Z, will open all the same" in told
        assert f"seckill sale hide {daily['id']}" in told
        assert "next round" not in await said("sale", "pause", once["id"], "--url", url)


async def test_a_database_that_cannot_be_written_to_stops_nothing_and_that_is_said(
    node: Node, settings: Settings, said: Said
) -> None:
    sale = await node.create()
    async with on_a_port(node.api) as url:
        with sqlite3.connect(settings.database_url.partition(":///")[2]) as other:
            other.execute("BEGIN IMMEDIATE")
            for command in (["pause", sale["id"]], ["pause", "--all"], ["close", sale["id"]]):
                told = await said("sale", *command, "--url", url, code=1)
                assert "Nothing was stopped: the database cannot be written to, and buyers are admitted" in told
            assert (await node.buy(sale, "ann")).status_code == 202, "which is true"
            other.rollback()
        await said("sale", "pause", "--all", "--url", url)
    assert (await node.buy(sale, "bob")).json()["code"] == "paused"


class Told(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.all: list[tuple[str, Any]] = []

    async def raise_(self, what: str, facts: Any, *, lasting: bool = False) -> None:
        assert lasting
        self.all.append((what, facts["round"]))

    async def resolve(self, what: str, facts: Any, *, ends: str = "") -> None:
        self.all.append((f"over: {ends}", facts["round"]))


class Draws:
    """A keeper that draws, whose clock the test moves."""

    def __init__(self, engine: Engine) -> None:
        self.alarm, self.ahead_ms = Told(), 0.0
        lines = engine.ledger.lines

        def now_ms() -> float:
            return 1000 * datetime.now(UTC).timestamp() + self.ahead_ms

        self.drawing = Drawing(lines, engine.entry_ids, Beacons(lines, HttpBeacon(), self.alarm, now_ms))


async def test_a_draw_that_waits_for_an_operator_is_told_of_and_the_command_ends_it(
    node: Node, engine: Engine, said: Said
) -> None:
    sale = await node.create(units=1, order="draw", beacon=True, **later())
    for user in ("ann", "bob"):
        await joined(node, sale, user)
    draws, round_id = Draws(engine), int(sale["round"])
    async with on_a_port(node.api) as url:
        assert "its list is open" in await said("line", "show", sale["id"], "--url", url)
        await begin(node, sale)
        for _ in range(3):
            assert not await draws.drawing.step()
        assert draws.alarm.all == [], "a minute is the operator's"
        assert f"seckill line beacon {sale['id']} VALUE" in await said("line", "show", sale["id"], "--url", url)
        draws.ahead_ms = 61_000
        for _ in range(3):
            assert not await draws.drawing.step()
        assert draws.alarm.all == [(AlarmCause.DRAW_WAITS, round_id)], "once"
        await said("line", "beacon", sale["id"], "0xlottery", "--reason", "the numbers of tonight", "--url", url)
        await said("line", "beacon", sale["id"], "another", "--url", url, code=1)
        while not await draws.drawing.step():
            pass
        assert draws.alarm.all[1:] == [(f"over: {AlarmCause.DRAW_WAITS}", round_id)]
        told = await said("line", "show", sale["id"], "--url", url)
        assert "made at" in told
        assert "ann" in told
    record = (await node.http.get(f"/v1/admin/record?sale_id={sale['id']}", headers=OPERATOR)).json()["entries"]
    assert (record[0]["what"], record[0]["why"]) == ("line.changed", "the numbers of tonight")


async def test_nobody_is_called_for_a_draw_in_which_nobody_waits(node: Node, engine: Engine) -> None:
    sale = await node.create(units=1, order="draw", beacon=True, **later())
    await begin(node, sale)
    draws = Draws(engine)
    draws.ahead_ms = 3_600_000
    for _ in range(3):
        await draws.drawing.step()
    assert draws.alarm.all == []


async def test_the_line_is_paused_paced_and_resumed(node: Node, said: Said) -> None:
    sale = await node.create(units=1, order="arrival")
    async with on_a_port(node.api) as url:

        async def line(*arguments: str) -> dict[str, Any]:
            verb, *rest = arguments
            found: dict[str, Any] = json.loads(await said("line", verb, sale["id"], *rest, "--json", "--url", url))
            return found

        assert (await line("pause", "--reason", "broken"))["line"]["paused"]
        assert (await line("pace", "7"))["serve_per_s"] == 7
        assert (await line("pace", "max"))["serve_per_s"] is None
        assert not (await line("resume"))["line"]["paused"]
        told = await said("line", "pace", sale["id"], "fast", "--url", url, code=1)
        assert '"fast" is neither a whole number nor max.' in told
        press = await node.create()
        assert "This sale has no line" in await said("line", "show", press["id"], "--url", url, code=1)


async def bought(node: Node, sale: dict[str, Any], *users: str, pay: bool = False) -> list[str]:
    orders = [(await node.buy(sale, user)).json()["order_id"] for user in users]
    await node.work()
    for user, order_id in zip(users, orders, strict=True) if pay else ():
        paid = await node.http.post(f"/v1/orders/{order_id}/pay", headers=buyer(user))
        assert paid.status_code == 200, paid.text
    return orders


async def state_of(node: Node, order_id: str) -> str:
    found = (await node.http.get(f"/v1/admin/orders?order_id={order_id}", headers=OPERATOR)).json()
    return str(found["orders"][0]["order"]["state"])


async def test_a_whole_sale_is_taken_back_and_again_is_nothing(node: Node, said: Said) -> None:
    sale, other = await node.create(units=9), await node.create(units=9)
    paid = await bought(node, sale, "ann", "bob", pay=True)
    unpaid = await bought(node, sale, "cid", "dan", "eve")
    spared = await bought(node, other, "ann", pay=True) + await bought(node, other, "bob")
    cancel = ["orders", "cancel", "--sale", sale["id"], "--all", "--reason", "wrong price"]
    refund = ["orders", "refund", "--sale", sale["id"], "--all", "--no-return-unit", "--reason", "wrong price"]
    async with on_a_port(node.api) as url:
        told = await said(*cancel, "--url", url)
        assert "3 of 3 orders that were unpaid are cancelled." in told
        assert f"seckill sale pause {sale['id']}" in told, "it sells on"
        assert {await state_of(node, order_id) for order_id in unpaid} == {"cancelled"}
        assert {await state_of(node, order_id) for order_id in paid} == {"paid"}
        await said("sale", "pause", sale["id"], "--url", url)
        assert json.loads(await said(*refund, "--json", "--url", url))["done"] == 2
        assert {await state_of(node, order_id) for order_id in paid} == {"refunded"}
        assert [await state_of(node, order_id) for order_id in spared] == ["paid", "unpaid"]
        for command in (cancel, refund):
            assert (await said(*command, "--url", url)).startswith("0 of 0 orders")
        refunds = (await node.http.get("/v1/admin/refunds", headers=OPERATOR)).json()["refunds"]
        assert sorted(each["order_id"] for each in refunds) == sorted(paid), "once each"
        for wrong in (["--sale", sale["id"]], ["--all"], [paid[0], "--sale", sale["id"], "--all"]):
            told = await said("orders", "cancel", *wrong, "--reason", "x", "--url", url, code=1)
            assert "Name one order, or all of a sale" in told
        told = await said(*refund, "--amount-cents", "5", "--url", url, code=1)
        assert "leave --amount-cents out" in told


async def test_an_order_that_is_paid_meanwhile_is_named_and_holds_up_no_other(
    node: Node, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = await node.create(units=9)
    orders = await bought(node, sale, "ann", "bob", "cid")
    desk, act = node.api.context.operator_actions, node.api.context.operator_actions.cancel

    async def cancel(number: Any, **wish: Any) -> Any:
        await node.http.post(f"/v1/orders/{orders[1]}/pay", headers=buyer("bob"))
        return await act(number, **wish)

    async with on_a_port(node.api) as url:
        with monkeypatch.context() as planted:
            planted.setattr(desk, "cancel", cancel)
            command = ["orders", "cancel", "--sale", sale["id"], "--all", "--reason", "x", "--url", url]
            told = await said(*command, code=1)
    assert "2 of 3 orders that were unpaid are cancelled." in told
    assert f"1 orders were not cancelled: {orders[1]}: Only an unpaid order can be cancelled" in told


async def test_refunds_are_listed_and_noted(node: Node, said: Said) -> None:
    sale = await node.create(units=9)
    (order_id,) = await bought(node, sale, "ann", pay=True)
    async with on_a_port(node.api) as url:
        assert await said("refunds", "list", "--url", url) == "No refunds.\n"
        refund = ["orders", "refund", order_id, "--reason", "lost in the post", "--return-unit"]
        await said(*refund, "--url", url)
        told = await said("refunds", "list", "--waiting", "--url", url)
        assert (order_id in told, "lost in the post" in told, "99.00 CNY" in told) == (True, True, True)
        (waiting,) = json.loads(await said("refunds", "list", "--json", "--url", url))["refunds"]
        assert "is made." in await said("refunds", "done", waiting["id"], "--url", url)
        assert await said("refunds", "list", "--waiting", "--url", url) == "No refunds.\n"
        assert "made 20" in await said("refunds", "list", "--url", url)
        assert "There is no refund 999" in await said("refunds", "done", "999", "--url", url, code=1)


async def test_exports_name_the_payments_for_the_providers_books(node: Node, said: Said) -> None:
    sale = await node.create(units=9)
    (paid,) = await bought(node, sale, "ann", pay=True)
    (unpaid,) = await bought(node, sale, "bob")
    known = (await node.http.get(f"/v1/admin/orders?order_id={paid}", headers=OPERATOR)).json()["orders"][0]
    ids = [each["payment_id"] for each in known["payments"]]
    assert len(ids) == 1
    async with on_a_port(node.api) as url:
        exported = await said("orders", "export", "--format", "jsonl", "--sale", sale["id"], "--url", url)
        rows = {row["order_id"]: row["payment_ids"] for row in map(json.loads, exported.splitlines())}
        assert rows == {paid: ids, unpaid: []}
        table = list(csv.reader(io.StringIO(await said("orders", "export", "--sale", sale["id"], "--url", url))))
        assert table[0][-2:] == ["buyer", "payment_ids"], "after all that was there before"
        assert {row[0]: row[-1] for row in table[1:]} == {paid: ids[0], unpaid: ""}


async def test_an_alarm_can_be_tried_and_those_that_were_are_listed(
    node: Node, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "SECKILL_ALARM_URL is not set here" in await said("alarm", "test", code=1)
    async with Receiver().running() as people:
        monkeypatch.setenv("SECKILL_ALARM_URL", people.url("/hook/a-secret-token"))
        told = await said("alarm", "test")
        assert told.startswith("127.0.0.1 has accepted the alarm.")
        (message,) = [each.event for each in people.taken]
        assert (message["alarm"], message["test"]) == (AlarmCause.TEST, True)
        assert message["runbook"] == "docs/operations.md#alarms"

        async def no(_: Received) -> int:
            return 500

        people.answer = no
        told = await said("alarm", "test", code=1)
        assert told.startswith("seckill: 127.0.0.1 did not accept the alarm (HTTP Error 500")
        assert "a-secret-token" not in told
        assert not json.loads((await said("alarm", "test", "--json", code=1)).splitlines()[0])["taken"]
        assert len(people.got) == 3, "once each"
    async with on_a_port(node.api) as url:
        assert await said("alarm", "list", "--url", url) == "No alarms.\n"
        alarm = Alarm("", notes=AlarmNotes(node.engine.ledger.alarm_book))
        await alarm.raise_(AlarmCause.UNFIT, {"server": "a"}, lasting=True)
        await alarm.drain(PATIENCE_S)
        told = await said("alarm", "list", "--now", "--url", url)
        assert AlarmCause.UNFIT in told
        assert "docs/operations.md#if-gate-unfit" in told
