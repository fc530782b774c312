"""Failpoints at the boundaries: before and after every call to a server, named by the role that makes it.

A name is ROLE.PORT.METHOD.before or .after, for example `worker.ledger.record.after`. When any failpoint is armed, the
wiring puts these wrappers around the ports; otherwise there is nothing between the use cases and the adapters.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from seckill.errors import GateUnavailable, GateUnclear, LedgerUnavailable, ProviderUnavailable, TransportUnavailable
from seckill.failpoints import Verb, armed, fires
from seckill.ports.alarm_book import AlarmBook
from seckill.ports.audience import AudienceLedger
from seckill.ports.board import Board
from seckill.ports.broker import Courier, Delays, RelaySource
from seckill.ports.buyer_data import BuyerDataLedger
from seckill.ports.feed import Feed
from seckill.ports.figures import FiguresLedger
from seckill.ports.gate import Gate
from seckill.ports.history import History
from seckill.ports.ledger import Ledger
from seckill.ports.line import LineLedger
from seckill.ports.order_action import OrderActionLedger
from seckill.ports.payment import CheckoutLedger, CheckoutProvider, PaymentLedger
from seckill.ports.pictures import PictureLedger
from seckill.ports.retention import RetentionLedger
from seckill.ports.takings import TakingsLedger
from seckill.ports.transport import Transport
from seckill.ports.vouchers import VoucherLedger
from seckill.ports.webhook import WebhookLedger

# The errors for the caller: when a call was not made, and when its answer was lost.
_FAILURES: dict[str, tuple[type[Exception], type[Exception]] | None] = {
    "gate": (GateUnavailable, GateUnclear),
    "transport": (TransportUnavailable, TransportUnavailable),
    "ledger": (LedgerUnavailable, LedgerUnavailable),
    "provider": (ProviderUnavailable, ProviderUnavailable),
    "outbox": (TransportUnavailable, TransportUnavailable),
    "courier": (TransportUnavailable, TransportUnavailable),
    "board": (GateUnavailable, GateUnavailable),
    "history": (LedgerUnavailable, LedgerUnavailable),
    "delays": None,  # never raises: messages that cannot be sent or received are lost
}
_PORTS: dict[str, tuple[type, ...]] = {
    "gate": (Gate,),
    "transport": (Transport,),
    "ledger": (
        Ledger,
        PaymentLedger,
        CheckoutLedger,
        OrderActionLedger,
        AudienceLedger,
        BuyerDataLedger,
        RetentionLedger,
        Feed,
        WebhookLedger,
        VoucherLedger,
        PictureLedger,
        LineLedger,
        FiguresLedger,
        AlarmBook,
        TakingsLedger,
    ),
    "provider": (CheckoutProvider,),
    "source": (RelaySource,),
    "courier": (Courier,),
    "board": (Board,),
    "history": (History,),
    "delays": (Delays,),
}
# Which role uses which ports. The relay is part of the worker's process and has its own ports.
_ROLES: dict[str, tuple[str, ...]] = {
    "api": ("gate", "transport", "ledger", "provider", "board", "history"),
    "worker": ("transport", "ledger", "delays", "board"),
    "relay": ("source", "courier"),
    "keeper": ("gate", "transport", "ledger", "provider", "delays", "board"),
}


def _methods(protocol: type) -> set[str]:
    return {
        name
        for part in protocol.__mro__
        for name, value in vars(part).items()
        if not name.startswith("_") and inspect.iscoroutinefunction(value) and name != "close"
    }


NAMES = frozenset(
    f"{role}.{port}.{method}.{side}"
    for role, ports in _ROLES.items()
    for port in ports
    for protocol in _PORTS[port]
    for method in _methods(protocol)
    for side in ("before", "after")
)


T = TypeVar("T")


def watched(port: T, role: str | None, kind: str) -> T:
    """The same port, with failpoints if any are armed. `role` is None for tools, which have none."""
    if role is None or not armed():
        return port
    return cast("T", _Watched(port, role, kind))


class _Watched:
    def __init__(self, port: object, role: str, kind: str) -> None:
        self._port = port
        self._role = role
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._port, name)
        # parts of the ledger
        if name in (
            "payments",
            "checkouts",
            "actions",
            "audience",
            "buyer_data",
            "retention",
            "feed",
            "webhooks",
            "vouchers",
            "pictures",
            "lines",
            "figures",
            "alarm_book",
            "takings",
        ):
            return _Watched(value, self._role, self._kind)
        if f"{self._role}.{self._kind}.{name}.before" not in NAMES:
            return value
        return self._guarded(name, value)

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        place = f"{self._role}.{self._kind}.{name}"

        async def guarded(*args: Any, **kwargs: Any) -> Any:
            if not await self._passes(f"{place}.before"):
                return set() if name == "due" else None
            result = await call(*args, **kwargs)
            # A caller that asks for work and finds none has not reached the window that `after` stands for.
            if not isinstance(result, list | set | dict) or result:
                await self._passes(f"{place}.after")
            return result

        return guarded

    async def _passes(self, place: str) -> bool:
        """Returns False if the call must be silently left out."""
        action = fires(place)
        if action is None:
            return True
        if action.verb == Verb.STALL:
            await asyncio.sleep(action.seconds)
            return True
        failures = _FAILURES[self._kind]
        if failures is None:
            return False
        not_made, answer_lost = failures
        raise (answer_lost if place.endswith(".after") else not_made)(f"failpoint {place}")
