"""The audit notices what is wrong with a line, and finds no fault with one that is in order."""

import asyncio
from typing import Any

import pytest

from seckill.audit import Verdict, line_checks
from seckill.bootstrap.use_cases import UseCases
from tests.api.conftest import OPERATOR, buyer
from tests.audit.conftest import World


async def join(world: World, *users: str) -> None:
    for user in users:
        answer = await world.node.http.post(f"/v1/sales/{world.sale['id']}/entries", headers=buyer(user))
        assert answer.status_code == 201, answer.text


@pytest.fixture
async def lined(world: World) -> World:
    """ann and bob are served, cid and dan wait."""
    world.sale = await world.node.create(units=2, order="arrival")
    await join(world, "ann", "bob", "cid", "dan")
    use = UseCases(world.engine, world.settings)
    while not await use.drawing.step():
        await asyncio.sleep(0.01)
    while await use.serving.step():
        await world.node.work()
    return world


async def about_line(world: World) -> list[tuple[str, str | None]]:
    return [(finding.kind, finding.user) for finding in (await world.found()).get("line", [])]


async def test_a_line_in_order_is_found_to_be(lined: World) -> None:
    report = await lined.auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, (report.findings, report.reasons())
    assert await about_line(lined) == []


FLAWS: dict[str, tuple[str, dict[str, Any], tuple[str, str | None]]] = {
    "served without an order": (
        "UPDATE line_entries SET order_id = 1 WHERE user_id = 'ann'",
        {},
        ("served", "ann"),
    ),
    "served for less than it was": (
        "UPDATE line_entries SET quantity = 2 WHERE user_id = 'bob'",
        {},
        ("served", "bob"),
    ),
    "an order and no entry that was served": (
        "UPDATE line_entries SET state = 3 WHERE user_id = 'ann'",
        {},
        ("order", "ann"),
    ),
    "a place that two have": ("UPDATE line_entries SET place = 3 WHERE user_id = 'dan'", {}, ("place", None)),
    "more wait than are counted": ("UPDATE round_lines SET waiting = 1", {}, ("counters", None)),
    "overtaken": ("UPDATE line_entries SET place = 9 WHERE user_id = 'bob'", {}, ("overtaken", "bob")),
}


@pytest.mark.parametrize("flaw", FLAWS)
async def test_what_is_wrong_with_a_line_is_named(lined: World, flaw: str) -> None:
    statement, parameters, wanted = FLAWS[flaw]
    await lined.sql(statement, **parameters)
    assert wanted in await about_line(lined)


async def test_units_that_lie_idle_while_people_wait_are_noticed(lined: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No keeper serves the line any more."""
    orders = await lined.query("SELECT id FROM orders WHERE user_id = 'ann'")
    lined.numbers["ann"] = orders[0][0]
    await lined.act("cancel", "ann")
    await lined.release_desk.pass_on()
    assert "progress" not in await lined.found(), "it may have come back a moment ago"
    monkeypatch.setattr(line_checks, "IDLE_MS", -1)
    assert [finding.kind for finding in (await lined.found())["progress"]] == ["idle"]
    await lined.sql("UPDATE round_lines SET paused = 1")
    assert "progress" not in await lined.found(), "the operator wants it so"


async def test_a_line_that_goes_on_is_not_idle(lined: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long line, or a slow one, has units left and people who wait for much longer than a minute."""
    monkeypatch.setattr(line_checks, "IDLE_MS", 0)
    await lined.node.http.patch(f"/v1/sales/{lined.sale['id']}", json={"add_units": 2}, headers=OPERATOR)
    await join(lined, "eve")
    assert "progress" not in await lined.found()
    await lined.node.http.patch(f"/v1/admin/sales/{lined.sale['id']}/line", json={"serve_per_s": 1}, headers=OPERATOR)
    await lined.sql("UPDATE round_lines SET lease = NULL")  # the keeper that served the others is no more
    use = UseCases(lined.engine, lined.settings)
    assert await use.serving.step()
    await lined.node.work()
    await use.serving.step()
    [line] = await lined.query("SELECT waiting, served FROM round_lines WHERE waiting > 0")
    assert tuple(line) == (2, 3), "cid is served, and there is a unit for dan"
    assert "progress" not in await lined.found(), "somebody was served meanwhile"
    await asyncio.sleep(0.01)
    assert [finding.kind for finding in (await lined.found())["progress"]] == ["idle"]
