"""A line in front of several items."""

from tests.api.conftest import Node
from tests.api.test_line import Keeping, joined, keeper, look  # noqa: F401 (a fixture)


async def test_who_wants_an_item_that_is_paid_for_need_not_wait_for_the_others(
    node: Node,
    keeper: Keeping,  # noqa: F811
) -> None:
    items = [{"title": title, "units": units, "price_cents": 0} for title, units in (("S", 1), ("M", 2))]
    sale = await node.create(units=None, price_cents=None, items=items, order="arrival")
    small, medium = (item["item_id"] for item in sale["items"])
    wanted = {"ann": small, "bob": small, "cid": medium}
    entries = {user: await joined(node, sale, user, item_id=item) for user, item in wanted.items()}
    await keeper.draw()
    await keeper.serve()
    await keeper.serve()
    seen = {user: await look(node, entry, user) for user, entry in entries.items()}
    by_small = sorted((seen[user]["state"], seen[user]["reason"]) for user in ("ann", "bob"))
    assert by_small == [("passed_over", "sold_out"), ("served", None)], "whoever of the two was drawn first"
    assert seen["cid"]["state"] == "served"
    late = await joined(node, sale, "dan", item_id=medium)
    await keeper.serve()
    assert (await look(node, late, "dan"))["state"] == "served"
