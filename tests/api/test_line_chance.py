"""People who wait are told of their chances: nothing before there is a rate, and then what follows from it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from seckill.backends.sql.ledger import SqlLedger
from tests.api.conftest import OPERATOR, Node, buyer
from tests.api.test_line import Keeping, begin, joined, keeper, later, look  # noqa: F401 (a fixture)


async def test_chances_follow_from_what_became_of_the_orders_before(node: Node, keeper: Keeping) -> None:  # noqa: F811
    sale = await node.create(units=12, price_cents=100, order="arrival", pay_within_s=60, **later())
    entries = {f"user-{n:02}": await joined(node, sale, f"user-{n:02}") for n in range(40)}
    await begin(node, sale)
    await keeper.draw()
    await keeper.serve()
    seen = {user: await look(node, entry, user) for user, entry in entries.items()}
    by_place = sorted(seen, key=lambda user: seen[user]["place"])
    first_waiting, last = by_place[12], by_place[-1]
    assert (seen[first_waiting]["ahead"], seen[first_waiting]["chance"]) == (0, None), "nobody's time to pay is over"
    for user in by_place[:6]:
        paid = await node.http.post(f"/v1/orders/{seen[user]['order_id']}/pay", headers=buyer(user))
        assert paid.status_code == 200
    assert isinstance(node.engine.ledger, SqlLedger)
    async with node.engine.ledger.database.writers.begin() as connection:  # a minute later
        await connection.execute(text("UPDATE orders SET expires_ms = expires_ms - 61000"))
    while not await keeper.use.release_desk.expire():
        await asyncio.sleep(0.01)
    await keeper.serve()  # the six units go to the next six
    await asyncio.sleep(1.0)  # figures are a second old at most
    told = [(await look(node, entries[user], user)) for user in (by_place[12], by_place[18], by_place[22], last)]
    assert [entry["state"] for entry in told] == ["served", "waiting", "waiting", "waiting"]
    served, near, middle, far = [entry["chance"] for entry in told]
    assert served is None
    assert 0.9 < near < 1.0, "six are unpaid, and half of those before have lapsed"
    assert near > middle > far
    assert far < 0.05


async def chances(node: Node, entries: dict[str, dict[str, Any]]) -> dict[int, float | None]:
    """Returns what those who wait are told, by place."""
    seen = [await look(node, entry, user) for user, entry in entries.items()]
    return {entry["place"]: entry["chance"] for entry in seen if entry["state"] == "waiting"}


def forget_figures(node: Node) -> None:
    """A second later, figures are read again."""
    node.api.context.line.figures._known.clear()


async def test_a_unit_is_promised_to_nobody_else_while_figures_are_a_second_old(
    node: Node,
    keeper: Keeping,  # noqa: F811
) -> None:
    sale = await node.create(units=3, order="arrival")
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob", "cid", "dan", "eve")}
    await keeper.draw()
    await node.refresh()
    forget_figures(node)
    assert await chances(node, entries) == {1: 1.0, 2: 1.0, 3: 1.0, 4: None, 5: None}
    await keeper.serve()
    assert await chances(node, entries) == {4: None, 5: None}, "the three units are others' by now"


async def test_a_unit_on_its_way_back_is_a_chance(node: Node, keeper: Keeping) -> None:  # noqa: F811
    """Nobody is told that no unit can come back, and then gets one."""
    sale = await node.create(units=1, order="arrival")
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob", "cid")}
    await keeper.draw()
    await keeper.serve()
    forget_figures(node)
    assert await chances(node, entries) == {2: None, 3: None}
    assert isinstance(node.engine.ledger, SqlLedger)
    async with node.engine.ledger.database.writers.begin() as connection:
        await connection.execute(text("UPDATE orders SET expires_ms = 1"))
    while not await keeper.use.release_desk.expire():
        await asyncio.sleep(0.01)
    forget_figures(node)
    assert await chances(node, entries) == {2: 1.0, 3: None}, "it may lapse once more"
    await keeper.serve()
    assert (await look(node, entries["bob"], "bob"))["state"] == "served"


async def test_whoever_the_line_cannot_reach_in_time_has_no_chance(node: Node, keeper: Keeping) -> None:  # noqa: F811
    ends_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    sale = await node.create(units=9, order="arrival", ends_at=ends_at, serve_per_s=1)
    entries = {user: await joined(node, sale, user) for user in ("ann", "bob", "cid", "dan", "eve")}
    await keeper.draw()
    await node.refresh()
    forget_figures(node)
    assert set((await chances(node, entries)).values()) == {1.0}
    soon = (datetime.now(UTC) + timedelta(seconds=1.5)).isoformat()
    changed = await node.http.patch(f"/v1/sales/{sale['id']}", json={"ends_at": soon}, headers=OPERATOR)
    assert changed.status_code == 200, changed.text
    forget_figures(node)
    told = await chances(node, entries)
    assert (told[1], told[4], told[5]) == (1.0, 0.0, 0.0), "at one a second, in a second and a half"
