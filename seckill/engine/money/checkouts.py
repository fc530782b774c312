"""The payment provider's pages on which buyers pay.

A buyer who wants to pay gets the address of such a page. The address is noted in the ledger before the buyer gets it,
and the provider recognises a repeated request by the order, so an order has one page however often the buyer presses.
When the order is over, the keeper calls the page off. If the page was paid already but the provider's notice has not
come, that is how we learn of it. Money that comes later still is dealt with like any late payment. So calling off is a
courtesy and may fail.
"""

import asyncio
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode, urlsplit, urlunsplit

import structlog

from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.public_id import PublicIds
from seckill.engine.money.payments import Payments
from seckill.engine.orders.buyer_orders import OrderView
from seckill.errors import CheckoutRefused, NotPossible, ProviderUnavailable
from seckill.failpoints import reached
from seckill.ports.ledger import SaleLookup
from seckill.ports.payment import (
    Bill,
    Capture,
    Checkout,
    CheckoutLedger,
    CheckoutProvider,
    Notice,
    OpenCheckout,
    PaymentProvider,
    has_checkout,
)
from seckill.telemetry import CHECKOUTS

log = structlog.get_logger()

BATCH_MAX = 100
# How long a page is left to the keeper that has taken it, before another may take it.
LEASE_S = 30.0
# An order ends a moment after its time to pay, so the keeper looks this much later.
LOOK_LATER_S = 5.0
# A page that could not be called off is tried again after this time, which doubles with each try. After the last try it
# is left alone: by then it has closed by itself.
RETRY_S_MIN = 5.0
ATTEMPTS_MAX = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """What a provider may want to know about the buyer."""

    on_phone: bool
    address: str


class Checkouts:
    def __init__(
        self,
        ledger: CheckoutLedger,
        sales: SaleLookup,
        provider: PaymentProvider,
        payments: Payments,
        order_ids: PublicIds,
        *,
        public_url: str,
    ) -> None:
        self._ledger = ledger
        self._sales = sales
        self._provider: CheckoutProvider | None = provider if has_checkout(provider) else None
        self._payments = payments
        self._order_ids = order_ids
        self._public_url = public_url.rstrip("/")
        self._being_made: dict[tuple[OrderNumber, bool], asyncio.Task[Checkout]] = {}

    @property
    def offered(self) -> bool:
        """Whether buyers pay on a page of the provider."""
        return self._provider is not None

    @property
    def currencies(self) -> AbstractSet[str] | None:
        """The currencies that the provider takes. None: any, as far as we know."""
        return None if self._provider is None else self._provider.currencies

    async def of(self, order: OrderView, visitor: Visitor) -> Checkout:
        """Returns the page on which to pay for this unpaid order. Raises ProviderUnavailable and CheckoutRefused."""
        if self._provider is None:
            raise NotPossible("There is no page to pay on here: pay where the shop tells you to.")
        known = await self._ledger.checkout(order.number, self._provider.name, on_phone=visitor.on_phone)
        if known is not None:
            return known
        # However often a buyer presses, and wherever, only one request to the provider is under way at a time.
        key = (order.number, visitor.on_phone)
        making = self._being_made.get(key)
        if making is None:
            making = asyncio.create_task(self._make(self._provider, order, visitor))
            self._being_made[key] = making
            making.add_done_callback(partial(self._is_made, key))
        return await asyncio.shield(making)

    def _is_made(self, key: tuple[OrderNumber, bool], making: asyncio.Task[Checkout]) -> None:
        self._being_made.pop(key, None)
        if not making.cancelled():
            making.exception()  # marks the error as seen: all callers may have hung up

    async def _make(self, provider: CheckoutProvider, order: OrderView, visitor: Visitor) -> Checkout:
        bill = await self._bill(order, visitor)
        try:
            made = await provider.checkout(bill)
        except ProviderUnavailable as error:
            CHECKOUTS.labels("failed").inc()
            log.warning("the payment provider gave no page to pay on", order=bill.order_id, reason=str(error))
            raise
        except CheckoutRefused as error:
            CHECKOUTS.labels("refused").inc()
            log.error("the payment provider refuses a payment", order=bill.order_id, reason=str(error))
            raise
        reached("checkouts.made")
        look_after_s = max(0.0, (bill.pay_before_ms - order.created_ms) / 1000) + LOOK_LATER_S
        await self._ledger.note_checkout(
            order.number, provider.name, made, on_phone=visitor.on_phone, look_after_s=look_after_s
        )
        CHECKOUTS.labels("opened").inc()
        return made

    async def _bill(self, order: OrderView, visitor: Visitor) -> Bill:
        order_id = self._order_ids.encode(int(order.number))
        sale = await self._sales.sale(order.sale_id, order.round_id)
        assert sale is not None, "sales are never deleted"
        assert order.pay_before_ms is not None, "an unpaid order has a time to pay"
        page = f"{self._public_url}/orders/{order_id}"
        back = sale.goods.return_url
        return Bill(
            order_id=order_id,
            title=sale.title if order.quantity == 1 else f"{sale.title} × {order.quantity}",
            amount_cents=order.price_cents,
            currency=order.currency,
            created_ms=order.created_ms,
            pay_before_ms=order.pay_before_ms,
            return_url=_with(page, paid="wait") if back is None else _with(back, order_id=order_id, paid="wait"),
            cancel_url=page if back is None else _with(back, order_id=order_id, paid="no"),
            on_phone=visitor.on_phone,
            buyer_address=visitor.address,
        )

    async def call_off_due(self) -> int:
        """Calls off the pages of orders that are over. Returns how many were looked at."""
        done = 0
        while self._provider and done < BATCH_MAX and (due := await self._ledger.take_checkouts(1, LEASE_S)):
            for checkout in due:
                await self._look_at(self._provider, checkout)
            done += 1
        return done

    async def _look_at(self, provider: CheckoutProvider, checkout: OpenCheckout) -> None:
        order = checkout.order
        if order.state is OrderState.UNPAID:
            await self._ledger.put_off_checkout(checkout.id, LOOK_LATER_S)
            return
        if order.state is not OrderState.PAID and checkout.provider == provider.name:
            try:
                notice = await provider.call_off(checkout.ref, self._order_ids.encode(int(order.number)))
                reached("checkouts.call_off.after")
                if notice is not None:
                    await self._note(provider, order.number, notice)
            except Exception as error:  # a shop's own provider may raise anything
                CHECKOUTS.labels("not_called_off").inc()
                log.warning("a page to pay on was not called off", checkout=checkout.id, reason=str(error))
                if checkout.attempts < ATTEMPTS_MAX:
                    await self._ledger.put_off_checkout(checkout.id, RETRY_S_MIN * 2 ** (checkout.attempts - 1))
                    return
            else:
                CHECKOUTS.labels("called_off" if notice is None else "paid_unnoticed").inc()
        await self._ledger.checkout_over(checkout.id)

    async def _note(self, provider: CheckoutProvider, number: OrderNumber, notice: Notice) -> None:
        log.warning("a payment of which no notice came", order=notice.order_id, payment=notice.ref)
        capture = Capture(
            provider=provider.name, ref=notice.ref, amount_cents=notice.amount_cents, currency=notice.currency
        )
        await self._payments.capture(number, capture)


def _with(address: str, **more: str) -> str:
    """Returns the address with these parameters added to its query."""
    parts = urlsplit(address)
    query = "&".join(filter(None, [parts.query, urlencode(more)]))
    return urlunsplit(parts._replace(query=query))
