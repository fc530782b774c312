"""The share of orders that lapse: a figure, and an alarm when there are too many."""

from collections.abc import Mapping

from prometheus_client import REGISTRY

from seckill.engine.orders.lapse_share import Lapses
from seckill.engine.orders.releases import ReleaseDesk
from seckill.ports.alarm import Alarm
from tests.api.conftest import OPERATOR, Node, buyer


class Bell(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.rung: list[Mapping[str, object]] = []

    async def raise_(self, what: str, facts: Mapping[str, object]) -> None:
        assert what == "many orders of a sale are let lapse"
        self.rung.append(facts)


def lapses(node: Node, bell: Bell, **changes: float) -> Lapses:
    wanted = {"share": 0.5, "orders": 4} | changes
    return Lapses(
        node.engine.ledger, node.api.context.sale_cache, bell, share=wanted["share"], orders=int(wanted["orders"])
    )


async def buy_and_cancel(node: Node, sale: dict[str, object], *users: str) -> None:
    for user in users:
        order_id = (await node.buy(sale, user)).json()["order_id"]
        await node.work()
        await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer(user))
        await ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger).relay()


def shown(sale: dict[str, object]) -> float | None:
    return REGISTRY.get_sample_value("seckill_lapsed_share", {"sale": str(sale["id"])})


async def test_an_alarm_once_for_each_round_when_many_orders_lapse(node: Node) -> None:
    bell = Bell()
    watch, never = lapses(node, bell), lapses(node, bell, share=0)
    sale = await node.create(units=20, cool_down_s=0)
    other = await node.create(units=20)
    await node.refresh()
    assert await watch.look() == 0, "no orders, no share"
    await buy_and_cancel(node, sale, "ann", "ann", "ann")
    assert await watch.look() == 0, "too few to say anything"
    assert shown(sale) == 1.0
    for user in ("bob", "cid", "dan", "eve"):
        await node.buy(sale, user)
        await node.buy(other, user)
    await node.work()
    assert await watch.look() == 0, "3 of 7"
    await buy_and_cancel(node, sale, "fay")
    assert await never.look() == 0
    assert await watch.look() == 1
    assert await watch.look() == 0, "once"
    (facts,) = bell.rung
    assert facts == {"sale": sale["id"], "round": int(sale["round"]), "orders": 8, "lapsed": 4}
    assert (shown(sale), shown(other)) == (0.5, 0.0)


async def test_the_figure_of_a_sale(node: Node) -> None:
    """What the console shows; and a sale that is over has none."""
    sale = await node.create(units=9, cool_down_s=0)
    await buy_and_cancel(node, sale, "ann", "bob")
    await node.buy(sale, "cid")
    await node.work()
    found = (await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
    assert (found["orders"], found["lapsed"]) == (3, 2)
    await node.refresh()
    watch = lapses(node, Bell())
    await watch.look()
    assert shown(sale) == 2 / 3
    await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    await node.refresh()
    await watch.look()
    assert shown(sale) == 0.0
