"""A hundred units, thousands of buyers at once, two API processes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from seckill.lab.servers.ports import free_port
from tests.e2e.checks import check_conservation, until_drained
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running


@pytest.mark.parametrize(
    ("database_url", "buyers", "limit", "quantity"),
    [("sqlite", 2000, 1, 1), ("postgres", 1000, 3, 2), ("mariadb", 1000, 1, 1)],
    indirect=["database_url"],
)
async def test_a_hundred_units_become_a_hundred_orders(
    folder: Path, database_url: str, buyers: int, limit: int, quantity: int
) -> None:
    """Distinct buyers, and 20 more who press fifty times each at the same moment."""
    figures_port = free_port()
    settings = {"SECKILL_METRICS_PORT": str(figures_port)}
    async with running(Stack(folder, database_url=database_url, settings=settings)) as stack:
        assert len(stack.pids("api")) == 2
        sale = await stack.create_sale(units=100, limit_per_buyer=limit)
        crowd = Crowd(stack, sale)
        repeated: dict[str, list[Any]] = {f"eager-{i}": [] for i in range(20)}

        async def press(user: str) -> None:
            repeated[user].append(await crowd.press(user, quantity=quantity))

        presses = [press(user) for user in repeated for _ in range(50)]
        buys = [crowd.buy(f"buyer-{i}", quantity) for i in range(buyers)]
        mixed = [work for pair in zip(presses, buys[:1000], strict=True) for work in pair] + buys[1000:]
        await asyncio.gather(*mixed)

        accepted = dict(crowd.orders)
        for user, responses in repeated.items():
            won = [r.json()["order_id"] for r in responses if r.status_code == 202]
            codes = {r.json()["code"] for r in responses if r.status_code != 202}
            assert len(won) <= limit // quantity
            assert codes == ({"limit_reached"} if won else {"sold_out"})
            for response in responses:
                if response.status_code != 202 and response.json()["code"] == "limit_reached":
                    assert response.json()["order_ids"] == won
            accepted |= dict.fromkeys([user], won[0]) if won else {}
        assert len(accepted) == 100 // quantity
        assert set(crowd.codes) == {"accepted", "sold_out"}
        async with stack.engine() as engine:
            await until_drained(engine)
            (found,) = await engine.ledger.sales()
            view = await check_conservation(engine, found, stack.settings.database_url, accepted)
            assert (view.available, view.admitted) == (0, 100)
        assert (await crowd._http.get("/metrics")).status_code == 401, "strangers do not learn how much is sold"
        metrics = (await crowd._http.get(f"http://127.0.0.1:{figures_port}/metrics")).text
        # Metrics of every process: the API's, the worker's and the keeper's.
        assert stack.metric(metrics, 'seckill_orders_recorded_total{kind="new"}') == 100 // quantity
        assert stack.metric(metrics, "seckill_audits_total") > 0
        calls = stack.metric(metrics, "seckill_admit_batch_size_count")
        claims = stack.metric(metrics, "seckill_admit_batch_size_sum")
        assert claims / calls > 1.5, "one call to the gate serves several claims"
        assert stack.stop() == 0


async def test_a_winner_finds_their_order_whatever_happened(folder: Path) -> None:
    """They find it after the sell-out, on both API processes, and after a restart of everything."""
    async with running(Stack(folder)) as stack:
        sale = await stack.create_sale(units=1)
        crowd = Crowd(stack, sale)
        first = (await crowd.press("ann", key="k")).json()
        for _ in range(20):
            assert (await crowd.press("bob")).json()["code"] == "sold_out"
            again = await crowd.press("ann", key="k")
            assert (again.status_code, again.json()["order_id"]) == (202, first["order_id"])
            without = await crowd.press("ann")
            assert (without.json()["code"], without.json()["order_ids"]) == ("limit_reached", [first["order_id"]])
        stack.kill_everything()
        await stack.start()
        again = await crowd.press("ann", key="k")
        assert (again.status_code, again.json()) == (202, first | {"state": "unpaid"})
