"""People who wait are told of their chances: nothing before there is a rate, and then what follows from it."""

import asyncio

from sqlalchemy import text

from seckill.backends.sql.ledger import SqlLedger
from tests.api.conftest import Node, buyer
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
