"""What payments need from the outside: a provider that takes money, and the part of the ledger that counts it."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeGuard

from seckill.domain.order import Order
from seckill.domain.order_number import OrderNumber
from seckill.domain.payment_fate import Fate
from seckill.domain.sale import RoundRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Money that a payment provider has taken."""

    provider: str
    ref: str  # the provider's own name for it
    amount_cents: int
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A provider says that it has taken money for an order."""

    ref: str
    order_id: str  # as buyers see it
    amount_cents: int
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """Money that has to go back. No other refund ever has the same `id`: providers recognise a repeat by it."""

    id: int
    amount_cents: int  # to give back, in the capture's currency: all of it, or a part
    capture: Capture  # what was taken
    number: OrderNumber
    reason: str
    attempts: int
    created_ms: int
    done_ms: int | None
    explanation: str | None = None  # the reason of the operator who wants it
    refused: str | None = None  # what the provider said when it refused for good


class PaymentProvider(Protocol):
    """Takes the money. SECKILL_PAYMENT_PROVIDER names a shop's own provider as `package.module:factory`, where the
    factory gets the Settings."""

    @property
    def name(self) -> str:
        """At most 32 characters, and the same for ever: it stands beside each payment."""

    @property
    def sandbox(self) -> bool:
        """Whether buyers pay just by saying so, and no money moves."""

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice | None:
        """What a callback says; header names are in lower case. None: it is genuine, and tells of no money that was
        taken for an order. Raises NotGenuine before anything else is looked at, then NotUnderstood;
        ProviderUnavailable if that cannot be decided now."""

    async def refund(self, refund: Refund, order_id: str) -> bool:
        """Gives `refund.amount_cents` back, once for each `refund.id` however often it is called; a capture may go back
        in several parts. True: it is on its way. False: a person has to do it by hand. Raises ProviderUnavailable to be
        called again later (RefundPending, if it is under way), and RefundRefused if it will never do it: then people
        are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """An unpaid order whose buyer wants to pay now."""

    order_id: str  # as buyers see it
    title: str
    amount_cents: int
    currency: str
    created_ms: int
    pay_before_ms: int
    return_url: str  # where the buyer comes back to
    cancel_url: str  # …without having paid
    on_phone: bool  # whether the buyer uses a phone
    buyer_address: str  # IP address; empty if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A page of the provider on which one order can be paid."""

    ref: str  # the provider's name for it, or ours: no other order ever has the same
    address: str  # where the buyer has to go; an address that is not http is for an app and shown as a QR code
    until_ms: int  # how long the address is good for


class CheckoutProvider(PaymentProvider, Protocol):
    """A provider that takes the money on a page of its own. It may have `async def close()` and `async def check()`,
    too: the latter asks it whether it knows us, and returns a few words or raises."""

    @property
    def acknowledgement(self) -> str:
        """The answer that the provider expects when a callback has been dealt with."""

    @property
    def currencies(self) -> AbstractSet[str] | None:
        """The currencies that it takes; None: any, as far as we know."""

    async def checkout(self, bill: Bill) -> Checkout:
        """Returns where this order can be paid. Repeating the same bill never makes a second page on which it can be
        paid as well. Raises ProviderUnavailable, and CheckoutRefused if the provider does not take such a payment."""

    async def call_off(self, ref: str, order_id: str) -> Notice | None:
        """Closes the page, if the provider can do that. Returns a Notice if it has been paid. Harmless to repeat.
        Raises ProviderUnavailable to be called again later."""


def has_checkout(provider: PaymentProvider) -> TypeGuard[CheckoutProvider]:
    return callable(getattr(provider, "checkout", None))


@dataclass(frozen=True, slots=True)
class Captured:
    """`order` is None if there is no such order; `payment_id` is 0 if nothing was noted."""

    fate: Fate
    order: Order | None
    payment_id: int = 0
    new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LatePayment:
    """Money for an order that was over; it is not decided yet what becomes of it."""

    id: int
    provider: str
    order: Order
    ref: RoundRef
    round_over: bool  # for a while, so the keeper no longer brings it back to the gate
    release_epoch: int | None  # the epoch of a release that is decided but not known to be passed on
    request_id: str  # of the order


class Settlement(StrEnum):
    DONE = "done"
    NOT_WRITTEN = "not_written"  # no worker has written the new order yet
    OVER = "over"  # the new order cannot be paid with it: ended or paid meanwhile, or the old one was dealt with
    DECIDED = "decided"  # another caller has decided it


class CaptureLedger(Protocol):
    """For money that comes in, even too late."""

    async def capture(self, number: OrderNumber, capture: Capture, lease_s: float) -> Captured:
        """Notes that money was taken, once for each reference. It pays the order if that is unpaid, and is owed back if
        another payment has paid the order. If the order is over, the money is late: for `lease_s`, only the caller may
        decide about it."""

    async def late(self, payment_id: int) -> LatePayment | None:
        """Returns None if it is decided."""

    async def take_late(self, count: int, lease_s: float) -> list[LatePayment]:
        """Returns late payments that are due; no other caller gets them for `lease_s`. Several callers share the
        work."""

    async def put_off_late(self, payment_id: int, after_s: float) -> None: ...

    async def settle(self, late: LatePayment, number: OrderNumber) -> Settlement:
        """The late payment pays this order, which replaces the old one. All of it or nothing."""

    async def give_back(self, late: LatePayment, reason: str) -> bool:
        """The old order → `refunded`, and its money is owed back. Returns False if another caller has decided it."""


class RefundLedger(Protocol):
    """For money that goes back."""

    async def take_refunds(self, count: int, lease_s: float) -> list[Refund]:
        """Refunds that are due; no other caller gets them for `lease_s`."""

    async def put_off_refund(self, refund_id: int, after_s: float) -> None: ...

    async def refund_refused(self, refund_id: int, words: str, after_s: float) -> None:
        """Notes what the provider said, and puts the refund off."""

    async def refund_done(self, refund_id: int) -> bool:
        """False if there is no such refund. Harmless to repeat."""

    async def refund(self, refund_id: int) -> Refund | None: ...

    async def refunds(self, count: int) -> Sequence[Refund]:
        """Returns refunds: first those that are not done, then the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCheckout:
    """A checkout that may have to be called off."""

    id: int
    provider: str
    ref: str
    order: Order
    attempts: int


class CheckoutLedger(Protocol):
    """For pages on which orders can be paid."""

    async def checkout(self, number: OrderNumber, provider: str, *, on_phone: bool) -> Checkout | None:
        """Returns the checkout that was made for this order, if its address is still valid."""

    async def note_checkout(
        self, number: OrderNumber, provider: str, checkout: Checkout, *, on_phone: bool, look_after_s: float
    ) -> None:
        """Called before any buyer goes there. From now on the checkout is looked at when its order ends, and after this
        time in any case."""

    async def take_checkouts(self, count: int, lease_s: float) -> list[OpenCheckout]:
        """Returns checkouts that are due; no other caller gets them for `lease_s`."""

    async def put_off_checkout(self, checkout_id: int, after_s: float) -> None: ...

    async def checkout_over(self, checkout_id: int) -> None: ...


class PaymentLedger(CaptureLedger, RefundLedger, Protocol):
    """The record of the money: what a backend implements. Every method is one transaction."""
