"""A ledger that is an older copy does not know who has paid since. Which of the orders are paid in the end depends on
what is started first: docs/deploy.md, "An older database"."""

import pytest

from seckill.domain.order_number import OrderNumber
from seckill.domain.payment_fate import Fate
from seckill.ports.payment import Capture
from tests.audit.conftest import World
from tests.audit.test_lost_keys import ON_SQLITE, copy_of, keep, keeper_of, open_sale, orders, restore
from tests.making import use_cases

pytestmark = pytest.mark.usefixtures("a_second_passes")


async def told(world: World, user: str) -> Fate:
    """The provider's notice, once more."""
    capture = Capture(provider="sandbox", ref=user, amount_cents=world.sale["price_cents"], currency="CNY")
    return (await use_cases(world.engine).payments.capture(OrderNumber.from_int(world.numbers[user]), capture)).fate


async def an_older_copy_comes_back(world: World) -> None:
    """`before` was sold before the copy was made, `since` after it, and both have paid since then. It took longer than
    the time to pay."""
    await open_sale(world, units=10)
    await world.sell("before", "never")
    await world.node.work()
    copy = await copy_of(world)
    await world.sell("since")
    await world.node.work()
    assert [await told(world, user) for user in ("before", "since")] == [Fate.SETTLED, Fate.SETTLED]
    await restore(world, copy)
    await world.sql("UPDATE orders SET recorded_ms = recorded_ms - 4500000, expires_ms = expires_ms - 4500000")


async def states(world: World) -> dict[str, str]:
    return {user: state for user, (_, state) in (await orders(world)).items()}


@ON_SQLITE
async def test_money_that_is_told_again_before_a_keeper_runs_pays(world: World) -> None:
    await an_older_copy_comes_back(world)
    assert [await told(world, user) for user in ("before", "since")] == [Fate.SETTLED, Fate.STILL_QUEUED]
    keeper = keeper_of(world)
    await keep(world, keeper)
    await keeper.release_desk.expire()
    assert await states(world) == {"before": "paid", "never": "expired", "since": "unpaid"}
    assert await told(world, "since") is Fate.SETTLED, "it has its whole time to pay once more"


@ON_SQLITE
async def test_control_a_keeper_that_runs_first_expires_what_was_paid(world: World) -> None:
    await an_older_copy_comes_back(world)
    keeper = keeper_of(world)
    await keep(world, keeper)
    await keeper.release_desk.expire()
    assert await states(world) == {"before": "expired", "never": "expired", "since": "unpaid"}
    assert await told(world, "before") is not Fate.SETTLED, "its money is late"
