"""Repeating sales as operators see them: announced, shown, changed, closed."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from seckill.bootstrap.engine import Engine
from seckill.settings import Settings
from seckill.web.schemas import rfc3339
from tests.api.conftest import OPERATOR, Node, buyer
from tests.api.repeating import (
    DAY_MS,
    add,
    announce,
    custody,
    ended_and_next,
    look,
    make_keeper,
    now_ms,
    shown,
    stop_clock,
)
from tests.backends.sql.making import HOUR_MS


@pytest.fixture
def settings(settings: Settings, ledger_url: str) -> Settings:
    """Settings for each database in turn."""
    return replace(settings, database_url=ledger_url)


async def test_operators_find_the_rounds_of_a_sale(node: Node) -> None:
    now_ms = node.api.context.sale_cache.now_ms()
    first = await announce(node, now_ms - DAY_MS - HOUR_MS, now_ms - DAY_MS + HOUR_MS, units=5)
    second = await add(node, first, now_ms - HOUR_MS, now_ms + HOUR_MS)
    other = await announce(node, now_ms - HOUR_MS, now_ms + HOUR_MS)
    await node.refresh()
    url = f"/v1/sales/{shown(node, first)['id']}/rounds"
    answer = await node.http.get(url, headers=OPERATOR)
    assert answer.headers["cache-control"] == "no-store"
    newest, oldest = answer.json()["rounds"]
    assert (newest["round"], newest["state"]) == (str(second.round.id), "open")
    assert oldest == {
        "round": str(first.round.id),
        "units": 5,
        "limit_per_buyer": first.round.limit_per_buyer,
        "cool_down_s": 0,
        "begins_at": rfc3339(first.round.begins_ms),
        "ends_at": rfc3339(first.round.ends_ms),
        "state": "ended",
    }
    for query in (f"round={first.round.id}", f"before={second.round.id}"):
        found = await node.http.get(f"{url}?{query}", headers=OPERATOR)
        assert found.json()["rounds"] == [oldest], query
    for text in (str(other.round.id), "x"):
        refused = await node.http.get(f"{url}?round={text}", headers=OPERATOR)
        assert (refused.status_code, refused.json()["detail"]) == (404, f"This sale has no round {text}.")
    assert (await node.http.get(url)).status_code == 401
    assert (await node.http.get(url, headers=buyer("ann"))).status_code == 403


async def test_a_daily_sale_is_announced_and_shown(node: Node) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
    sale = await node.create(
        repeat="daily",
        timezone="Asia/Shanghai",
        begins_at=begins.isoformat(),
        ends_at=(begins + timedelta(hours=1)).isoformat(),
    )
    assert (sale["repeat"], sale["timezone"], sale["state"]) == ("daily", "Asia/Shanghai", "open")
    days = [(begins + timedelta(days=day)).timestamp() for day in range(1, 6)]
    assert [datetime.fromisoformat(text).timestamp() for text in sale["next_rounds"]] == days
    first = await node.http.get(f"/v1/sales/{sale['id']}")
    again = await node.http.get(f"/v1/sales/{sale['id']}", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    once = await node.create()
    assert (once["repeat"], once["timezone"], once["next_rounds"]) == (None, "UTC", [])
    elsewhere = await node.create(timezone="Asia/Shanghai")
    assert (elsewhere["repeat"], elsewhere["timezone"]) == (None, "Asia/Shanghai")


async def test_a_sale_that_repeats_since_long_begins_with_the_window_that_is_on(node: Node) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) - timedelta(days=100, minutes=10)
    window = {"begins_at": begins.isoformat(), "ends_at": (begins + timedelta(hours=1)).isoformat()}
    sale = await node.create(repeat="daily", **window)
    assert datetime.fromisoformat(sale["begins_at"]) == begins + timedelta(days=100)
    assert sale["state"] == "open"
    assert (await node.buy(sale, "ann")).status_code == 202


async def test_cron_begins_at_its_first_time_after_the_announced_beginning(node: Node) -> None:
    window = {"begins_at": "2036-02-01T10:07:00+08:00", "ends_at": "2036-02-01T10:37:00+08:00"}
    sale = await node.create(repeat=" 0  12 * * MON ", timezone="Asia/Shanghai", **window)
    assert (sale["repeat"], sale["state"]) == ("0 12 * * MON", "scheduled")
    assert (sale["begins_at"], sale["ends_at"]) == ("2036-02-04T04:00:00.000Z", "2036-02-04T04:30:00.000Z")
    assert sale["next_rounds"][:2] == ["2036-02-11T04:00:00.000Z", "2036-02-18T04:00:00.000Z"]


async def test_the_keeper_makes_the_next_round_and_opens_it_before_its_time(node: Node, engine: Engine) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
    window = {"begins_at": begins.isoformat(), "ends_at": (begins + timedelta(hours=1)).isoformat()}
    sale = await node.create(repeat="daily", units=7, **window)
    keepers = [make_keeper(engine) for _ in range(3)]
    made = await asyncio.gather(*[keeper.repeater.step() for keeper in keepers])
    assert sum(made) == 1
    assert await keepers[1].opener.step() == 1
    (newest,) = await engine.ledger.sales()
    assert newest.round.begins_ms == int((begins + timedelta(days=1)).timestamp() * 1000)
    view = await engine.gate.inspect(newest.round.ref)
    assert view is not None
    assert (view.status, view.available, view.begins_ms) == ("open", 7, newest.round.begins_ms)
    assert sum([await keeper.repeater.step() for keeper in keepers]) == 0
    await node.refresh()
    assert (await look(node, newest))["round"] == sale["round"], "the one that is on is still the one"


async def test_an_operator_changes_the_round_that_is_on(node: Node, engine: Engine) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
    window = {"begins_at": begins.isoformat(), "ends_at": (begins + timedelta(hours=1)).isoformat()}
    sale = await node.create(repeat="daily", units=1, **window)
    keeper = make_keeper(engine)
    await keeper.repeater.step()
    url = f"/v1/sales/{sale['id']}"
    patch = {"add_units": 2, "limit_per_buyer": 2, "title": "More"}
    changed = (await node.http.patch(url, json=patch, headers=OPERATOR)).json()
    assert (changed["units"], changed["limit_per_buyer"], changed["round"]) == (3, 2, sale["round"])
    over = (begins + timedelta(days=2)).isoformat()
    refused = await node.http.patch(url, json={"ends_at": over}, headers=OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_possible")
    (newest,) = await engine.ledger.sales()
    assert (newest.title, newest.round.total, newest.round.limit_per_buyer) == ("More", 1, 2)
    closed = (await node.http.post(f"{url}/close", headers=OPERATOR)).json()
    assert (closed["state"], closed["next_rounds"]) == ("ended", [])
    await keeper.opener.step()
    (newest,) = await engine.ledger.sales()
    view = await engine.gate.inspect(newest.round.ref)
    assert view is not None
    assert view.status == "closed"
    await node.refresh()
    stop_clock(node, newest.round.begins_ms + 1)
    assert (await look(node, newest))["state"] == "ended"


async def test_closing_a_sale_closes_the_next_round_in_the_same_moment(node: Node, engine: Engine) -> None:
    """At the edge of two rounds the next one is open already. No keeper passes it on here."""
    started_ms = await now_ms(node)
    first = await announce(node, started_ms - HOUR_MS, started_ms + HOUR_MS)
    second = await add(node, first, first.round.ends_ms, first.round.ends_ms + HOUR_MS)
    url = f"/v1/sales/{shown(node, first)['id']}/close"
    assert (await node.http.post(url, headers=OPERATOR)).json()["state"] == "ended"
    for one in (first, second):
        view = await engine.gate.inspect(one.round.ref)
        assert view is not None
        assert view.status == "closed"
    assert await engine.ledger.rounds_to_sync() == []


async def test_custody_of_rounds(node: Node) -> None:
    first, second, _ = await ended_and_next(node, 0, units=3)
    assert (await custody(node, first, first.round.id))["queued"] == 1
    assert (await custody(node, first, second.round.id))["available"] == 3
    stranger = await node.create()
    for text in (stranger["round"], "0", "-1", "x", "", "٣", "9" * 18, "9" * 19, "9" * 5000, f"{first.round.id} "):
        url = f"/v1/sales/{shown(node, first)['id']}/custody"
        response = await node.http.get(url, params={"round": text}, headers=OPERATOR)
        assert response.status_code == 404, text
