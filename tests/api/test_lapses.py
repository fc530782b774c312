"""The share of orders that lapse: a figure, and an alarm when there are too many."""

from collections.abc import Mapping

import pytest
from prometheus_client import REGISTRY

from seckill.engine.alarms.alarm import Alarm
from seckill.engine.orders.lapse_alarm import Lapses
from seckill.engine.orders.releases import ReleaseDesk
from seckill.engine.rounds import sale_figures
from seckill.engine.rounds.sale_figures import SaleFigures
from tests.api.conftest import OPERATOR, Node, buyer


class Bell(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.rung: list[Mapping[str, object]] = []

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        assert what == "many orders of a sale are let lapse"
        self.rung.append(facts)


def lapses(node: Node, bell: Bell, share: float = 0.5) -> SaleFigures:
    ledger = node.engine.ledger
    return SaleFigures(ledger, ledger.lines, node.api.context.sale_cache, Lapses(bell, share=share, orders=4))


async def buy_and_cancel(node: Node, sale: dict[str, object], *users: str) -> None:
    for user in users:
        order_id = (await node.buy(sale, user)).json()["order_id"]
        await node.work()
        await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer(user))
        await ReleaseDesk(node.engine.gate, node.engine.transport, node.engine.ledger).pass_on()


def shown(sale: dict[str, object], name: str = "seckill_lapsed_share", **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"sale": str(sale["id"]), **labels})


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
    """The console shows lapses; a sale that is over has none."""
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
    assert shown(sale) is None


async def test_units_money_and_the_line_of_a_sale(node: Node) -> None:
    sale = await node.create(units=9, price_cents=1250, currency="EUR", cool_down_s=0)
    lined = await node.create(units=1, order="arrival")
    bought = [(await node.buy(sale, user)).json()["order_id"] for user in ("ann", "bob", "cid")]
    for user in ("dan", "eve"):
        await node.http.post(f"/v1/sales/{lined['id']}/entries", headers=buyer(user), json={})
    await node.work()
    paid = await node.http.post(f"/v1/orders/{bought[0]}/pay", headers=buyer("ann"))
    assert paid.status_code == 200
    await node.refresh()
    await lapses(node, Bell()).look()
    figures = ("units", "available", "sold", "unpaid", "paid", "orders", "waiting")
    assert [shown(sale, f"seckill_sale_{name}") for name in figures] == [9, 6, 3, 2, 1, 3, 0]
    assert shown(sale, "seckill_sale_taken_cents", currency="EUR") == 1250
    assert shown(lined, "seckill_sale_waiting") == 2


async def test_no_more_sales_are_shown_than_there_may_be(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A label for each sale there ever was would fill Prometheus; those with the most units are shown."""
    monkeypatch.setattr(sale_figures, "SALES_SHOWN_MAX", 2)
    small, large, larger = [await node.create(units=units) for units in (1, 20, 30)]
    await node.refresh()
    await lapses(node, Bell()).look()
    assert [shown(each, "seckill_sale_units") for each in (small, large, larger)] == [None, 20, 30]
    assert [REGISTRY.get_sample_value(f"seckill_sales_{name}") for name in ("on", "shown")] == [3, 2]
