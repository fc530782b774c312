"""What buyers do to their own orders: cancel them and, in the sandbox, where no money moves, pay for them."""

from seckill.domain.order import Order, OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.payment_fate import Fate
from seckill.domain.public_id import PublicIds
from seckill.engine.orders.buyer_orders import OrderView
from seckill.errors import NotPossible
from seckill.ports.ledger import BuyerActionLedger
from seckill.ports.payment import Capture, PaymentProvider
from seckill.telemetry import CAPTURES


class BuyerActions:
    def __init__(self, ledger: BuyerActionLedger, provider: PaymentProvider, order_ids: PublicIds) -> None:
        self._ledger = ledger
        self._provider = provider
        self._order_ids = order_ids

    @property
    def sandbox(self) -> bool:
        """Whether an order is paid just by a buyer's saying so."""
        return self._provider.sandbox

    async def pay(self, user: str, order: OrderView) -> Order | None:
        """Returns the order as it is now: paid, unless it was over. Returns None if the buyer has no such order.
        Harmless to repeat. Raises NotPossible where real money is taken."""
        if not self.sandbox:
            raise NotPossible("Real money is taken here: pay where the shop tells you to.")
        capture = Capture(
            provider=self._provider.name,
            # One reference for each order, of a form that no provider's notice can have.
            ref=f"*{self._order_ids.encode(int(order.number))}",
            amount_cents=order.price_cents,
            currency=order.currency,
        )
        changed = await self._ledger.pay(order.number, user, capture)
        if changed is None:
            return None
        if changed.order.state is OrderState.PAID:
            CAPTURES.labels(Fate.SETTLED.value if changed.done else "repeated").inc()
        return changed.order

    async def cancel(self, user: str, number: OrderNumber) -> Order | None:
        """Returns the order as it is now: cancelled, unless it was paid or over. Returns None if the buyer has no such
        order."""
        changed = await self._ledger.cancel(number, user)
        return None if changed is None else changed.order
