"""A watch never goes back and never repeats itself, in whatever order the news arrive (I18)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.admission import Holding
from seckill.domain.order import Order, OrderState, states_after
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import RoundRef
from seckill.engine.orders.buyer_orders import BuyerOrders, OrderView, OrderWatch
from tests.making import make_round


def order(state: OrderState) -> OrderView:
    return OrderView(
        number=OrderNumber.from_int(1),
        sale_id=1,
        round_id=1,
        quantity=1,
        state=state,
        price_cents=1,
        currency="CNY",
        created_ms=0,
    )


def make_order(number: OrderNumber, user: str) -> Order:
    return Order(
        number=number,
        sale_id=1,
        round_id=1,
        user=user,
        quantity=1,
        state=OrderState.UNPAID,
        price_cents=1,
        currency="CNY",
        created_ms=0,
        expires_ms=1,
        paid_ms=None,
        closed_ms=None,
    )


def test_what_an_order_may_still_become() -> None:
    assert states_after(OrderState.QUEUED) == set(OrderState) - {OrderState.QUEUED}
    assert OrderState.REFUNDED in states_after(OrderState.UNPAID)
    assert states_after(OrderState.PAID) == {OrderState.REFUNDED}
    assert states_after(OrderState.REFUNDED) == set()


@given(
    early=st.lists(st.sampled_from(OrderState)),
    first=st.sampled_from(OrderState),
    late=st.lists(st.lists(st.sampled_from(OrderState))),
)
def test_a_watch_never_goes_back(early: list[OrderState], first: OrderState, late: list[list[OrderState]]) -> None:
    async def seen() -> list[OrderState]:
        watch = OrderWatch()
        for state in early:
            watch.offer(order(state))
        watch.begin(order(first))
        states = [watch.order.state]
        for news in late:
            for state in news:
                watch.offer(order(state))
            if watch._awake.is_set() and await watch.change():
                states.append(watch.order.state)
        watch.end()
        while await watch.change():
            states.append(watch.order.state)
        return states

    shown = asyncio.run(seen())
    assert all(following in states_after(state) for state, following in pairwise(shown))


async def test_news_that_come_before_the_first_look_are_not_lost() -> None:
    watch = OrderWatch()
    watch.offer(order(OrderState.UNPAID))
    watch.begin(order(OrderState.QUEUED))  # read before, arrived after
    assert await watch.change()
    assert watch.order.state is OrderState.UNPAID


async def test_a_watch_that_ends_still_tells_what_it_has() -> None:
    watch = OrderWatch()
    watch.begin(order(OrderState.QUEUED))
    watch.offer(order(OrderState.UNPAID))
    watch.end()
    assert await watch.change()
    assert not await watch.change()
    assert watch.order.state is OrderState.UNPAID


class Books:
    """A ledger in which the number becomes another buyer's: a gate that went back in time has given it out twice."""

    def __init__(self) -> None:
        self.asked = 0

    async def orders(self, numbers: Sequence[OrderNumber]) -> list[Order]:
        self.asked += 1
        return [make_order(number=number, user="bob") for number in numbers] if self.asked > 1 else []


class Held:
    async def holdings(self, refs: Sequence[RoundRef], user: str) -> list[tuple[Holding, ...]]:
        return [(Holding(OrderNumber.from_int(1), 1, 1, "", True),)]


async def test_nobody_is_shown_the_order_of_another_with_the_same_number() -> None:
    sale: Any = SimpleNamespace(id=1, round=make_round(id=1), price_of=lambda item: 1, currency="CNY")
    sale_cache: Any = SimpleNamespace(
        recent_rounds=lambda lane: [RoundRef(id=1, lane=0)], sale_of_round=lambda round_id: sale
    )
    books: Any = Books()
    held: Any = Held()
    orders = BuyerOrders(books, held, sale_cache)
    async with orders.watch("ann", OrderNumber.from_int(1)) as watch:
        assert watch is not None
        await orders.look_up_waiting()
        orders.close()
        assert not await watch.change()
        assert watch.order.state is OrderState.QUEUED


async def test_an_order_in_the_place_of_one_that_is_over_is_news_once() -> None:
    over = order(OrderState.EXPIRED)
    watch = OrderWatch()
    watch.begin(over)
    watch.offer(over)
    assert not watch._awake.is_set()
    watch.offer(replace(over, replaced_by=OrderNumber.from_int(2)))
    assert await watch.change()
    assert watch.order.replaced_by == OrderNumber.from_int(2)
    watch.offer(over)  # read before, arrived after
    assert not watch._awake.is_set()
