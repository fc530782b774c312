"""People in a line who may no longer buy when it is their turn: taken off the list, or out of the audience's groups.
They are passed over with the reason, and the unit goes to the next; unless the gate has given it to them already."""

from typing import Any

import httpx2
import pytest

from seckill.audit import Verdict, open_auditor
from seckill.bootstrap.engine import Engine
from seckill.domain.line import EntryState
from seckill.engine.line.serving import Serving
from seckill.errors import LedgerUnavailable
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, token_with
from tests.api.test_audience import upload
from tests.api.test_line import Keeping, look


async def enter(node: Node, sale: dict[str, Any], user: str, **claims: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token_with(user, **claims)}"}
    response = await node.http.post(f"/v1/sales/{sale['id']}/entries", json={}, headers=headers)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


async def change_audience(node: Node, sale: dict[str, Any], audience: dict[str, Any] | None) -> None:
    changed = await node.http.patch(f"/v1/sales/{sale['id']}", json={"audience": audience}, headers=OPERATOR)
    assert changed.status_code == 200, changed.text


async def fates(node: Node, entries: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str | None]]:
    found = {user: await look(node, entry, user) for user, entry in entries.items()}
    return {user: (entry["state"], entry["reason"]) for user, entry in found.items()}


async def check_audit(settings: Settings) -> None:
    async with open_auditor(settings) as auditor:
        report = await auditor.read(full=True)
    assert report.verdict is Verdict.HOLDS, report.findings


async def test_who_was_taken_off_the_list_is_passed_over_and_told(node: Node, settings: Settings) -> None:
    sale = await node.create(units=1, order="arrival", audience={"list": True})
    await upload(node, sale, "bot\nann\nbob\n")
    await node.refresh()
    entries = {user: await enter(node, sale, user) for user in ("bot", "ann", "bob")}
    await upload(node, sale, "ann\nbob\n")
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.serve()
    expected = {"bot": ("passed_over", "not_invited"), "ann": ("served", None), "bob": ("waiting", None)}
    assert await fates(node, entries) == expected
    line: dict[str, Any] = (await node.http.get(f"/v1/admin/sales/{sale['id']}/line", headers=OPERATOR)).json()
    assert line["line"]["waiting"] == 1
    assert (line["entries"][0]["buyer"], line["entries"][0]["reason"]) == ("bot", "not_invited")
    told = (await node.http.get("/v1/admin/events?types=entry.passed_over", headers=OPERATOR)).json()["events"]
    assert [(event["data"]["buyer"], event["data"]["reason"]) for event in told] == [("bot", "not_invited")]
    orders = (await node.http.get("/v1/orders", headers={"Authorization": f"Bearer {token_with('bot')}"})).json()
    assert orders["orders"] == []
    await node.refresh()
    again = await node.http.post(
        f"/v1/sales/{sale['id']}/entries", json={}, headers={"Authorization": f"Bearer {token_with('bot')}"}
    )
    assert again.json()["code"] == "not_invited"
    await check_audit(settings)


async def test_groups_count_as_the_token_named_them_and_as_the_audience_is_now(node: Node, settings: Settings) -> None:
    sale = await node.create(units=9, order="arrival")
    entries = {
        "gold": await enter(node, sale, "gold", groups=["gold", "x" * 200]),
        "none": await enter(node, sale, "none"),
        "both": await enter(node, sale, "both", groups=["silver", "gold"]),
        "many": await enter(node, sale, "many", groups=[f"g{number:03}" for number in range(99)]),
    }
    await change_audience(node, sale, {"groups": ["silver", "gold"]})
    await change_audience(node, sale, {"groups": ["silver", "g000"]})
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.serve()
    assert await fates(node, entries) == {
        "gold": ("passed_over", "not_invited"),
        "none": ("passed_over", "not_invited"),
        "both": ("served", None),
        "many": ("served", None),
    }
    await check_audit(settings)


async def test_early_access_is_an_invitation_too(node: Node, settings: Settings) -> None:
    early = {"early": [{"groups": ["vip"], "minutes": 5}], "groups": ["gold"]}
    sale = await node.create(units=1, waiting_list=True, audience=early)
    headers = {"Authorization": f"Bearer {token_with('first', groups=['gold'])}"}
    order = (await node.http.post(f"/v1/sales/{sale['id']}/orders", headers=headers)).json()
    await node.work()
    entries = {user: await enter(node, sale, user, groups=[user]) for user in ("vip", "gold")}
    other = {"early": [{"groups": ["press"], "minutes": 5}], "groups": ["gold"]}
    await change_audience(node, sale, other)
    assert (await node.http.post(f"/v1/orders/{order['order_id']}/cancel", headers=headers)).status_code == 200
    await Keeping(node, settings).serve()
    assert await fates(node, entries) == {"vip": ("passed_over", "not_invited"), "gold": ("served", None)}


async def test_nobody_is_passed_over_for_a_list_that_is_not_uploaded_yet(node: Node, settings: Settings) -> None:
    sale = await node.create(units=1, order="arrival")
    entries = {user: await enter(node, sale, user) for user in ("ann", "bob")}
    await change_audience(node, sale, {"list": True})
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.serve()
    assert await fates(node, entries) == {"ann": ("served", None), "bob": ("waiting", None)}


async def test_who_joined_by_an_earlier_version_stays_invited_by_groups_and_not_by_a_list(
    node: Node, settings: Settings, engine: Engine
) -> None:
    sale = await node.create(units=9, order="arrival")
    entries = {user: await enter(node, sale, user) for user in ("ann", "bob")}
    async with engine.ledger.database.writers.begin() as connection:  # type: ignore[attr-defined]
        await connection.exec_driver_sql("UPDATE line_entries SET groups_told = NULL")
    keeper = Keeping(node, settings)
    paused = await node.http.patch(f"/v1/admin/sales/{sale['id']}/line", json={"paused": True}, headers=OPERATOR)
    assert paused.status_code == 200
    await change_audience(node, sale, {"groups": ["gold"]})
    await keeper.draw()
    call = engine.ledger.lines.call_next
    resume = await node.http.patch(f"/v1/admin/sales/{sale['id']}/line", json={"paused": False}, headers=OPERATOR)
    assert resume.status_code == 200
    called = await call(int(sale["round"]), keeper.use.serving._token, 15.0, {0: 1}, 1)
    assert [(entry.user, entry.reason) for entry in called or ()] == [("ann", None)], "her token is not known"
    await upload(node, sale, "ann\n")
    await change_audience(node, sale, {"list": True})
    await keeper.serve()
    assert await fates(node, entries) == {"ann": ("served", None), "bob": ("passed_over", "not_invited")}


@pytest.mark.parametrize("admitted", [True, False])
async def test_who_is_called_is_passed_over_unless_the_gate_has_given_them_a_unit(
    node: Node, settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch, *, admitted: bool
) -> None:
    """The list is replaced in between, and the keeper is gone."""
    sale = await node.create(units=1, order="arrival", audience={"list": True})
    await upload(node, sale, "bot\nann\n")
    await node.refresh()
    entries = {user: await enter(node, sale, user) for user in ("bot", "ann")}
    first, second = Keeping(node, settings), Keeping(node, settings)
    await first.draw()
    with monkeypatch.context() as patch:

        async def die(*_: object, **__: object) -> None:
            raise LedgerUnavailable("the keeper is dead")

        patch.setattr(Serving, "_settle" if admitted else "_ask_gate", die)
        await first.use.serving.step()
    [bot, _] = await engine.ledger.lines.entries_by_place(int(sale["round"]), 0, 9)
    assert bot.state is EntryState.CALLED, "the window was hit"
    view = await engine.gate.inspect(node.api.context.sale_cache.newest()[0].round.ref)
    assert view is not None
    assert view.available == (0 if admitted else 1)
    await upload(node, sale, "ann\n")
    async with engine.ledger.database.writers.begin() as connection:  # type: ignore[attr-defined]
        await connection.exec_driver_sql("UPDATE round_lines SET lease_ms = 1")
    await second.serve()
    await second.serve()
    expected = {"bot": ("passed_over", "not_invited"), "ann": ("served", None)}
    if admitted:
        expected = {"bot": ("served", None), "ann": ("waiting", None)}
    assert await fates(node, entries) == expected
    await check_audit(settings)


async def test_a_long_line_of_people_who_are_not_invited_holds_up_nobody_for_long(
    node: Node, settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seckill.backends.sql.line_serving.PASSED_OVER_MAX", 3)
    sale = await node.create(units=2, order="arrival")
    entries = {f"u{number}": await enter(node, sale, f"u{number}") for number in range(8)}
    await upload(node, sale, "u7\n")
    await change_audience(node, sale, {"list": True})
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.use.serving.step()
    found = await fates(node, entries)
    assert list(found.values()).count(("passed_over", "not_invited")) in range(3, 6), "some in one transaction"
    for _ in range(4):
        await keeper.serve()
    assert (await fates(node, entries))["u7"] == ("served", None)


async def test_a_household_is_one_buyer_in_a_line_as_well(node: Node, settings: Settings) -> None:
    sale = await node.create(units=3, order="arrival", limit_by="household")
    entries = {
        user: await enter(node, sale, user, household=home)
        for user, home in (("ann", "oak"), ("bob", "oak"), ("cid", "elm"))
    }
    nobody: httpx2.Response = await node.http.post(
        f"/v1/sales/{sale['id']}/entries", json={}, headers={"Authorization": f"Bearer {token_with('dan')}"}
    )
    assert (nobody.status_code, nobody.json()["code"]) == (403, "person_unknown")
    keeper = Keeping(node, settings)
    await keeper.draw()
    await keeper.serve()
    assert await fates(node, entries) == {
        "ann": ("served", None),
        "bob": ("passed_over", "limit_reached"),
        "cid": ("served", None),
    }
    assert {(await look(node, entry, user))["chance"] for user, entry in entries.items()} == {None}
    await check_audit(settings)
