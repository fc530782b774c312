from typing import Any, cast

from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import RoundRef
from seckill.engine.orders.releases import ReleaseDesk
from seckill.ports.ledger import OutboxItem


class World:
    """A ledger with an outbox, and a transport that notes what is told."""

    def __init__(self, *changes: tuple[int, OrderState]) -> None:
        self._items = [
            OutboxItem(id=i, release=None, number=OrderNumber.from_int(number), ref=RoundRef(id=1, lane=0), state=state)
            for i, (number, state) in enumerate(changes)
        ]
        self.told: list[dict[str, list[int]]] = []

    async def outbox(self, count: int, but: list[int]) -> list[OutboxItem]:
        return self._items

    async def outbox_done(self, ids: list[int]) -> None:
        self._items = [item for item in self._items if item.id not in ids]

    async def publish_states(self, states: dict[str, list[int]]) -> None:
        self.told.append(states)


async def test_the_last_of_two_changes_of_an_order_is_told() -> None:
    """They may go out in any order of states, so only one may be there."""
    paid, refunded = OrderState.PAID, OrderState.REFUNDED
    world = World((3, refunded), (4, paid), (4, refunded), (5, paid))
    assert await ReleaseDesk(cast(Any, None), cast(Any, world), cast(Any, world)).pass_on() == 4
    assert world.told == [{refunded: [3, 4], paid: [5]}]
