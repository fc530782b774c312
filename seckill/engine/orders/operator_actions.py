"""What operators do to orders: cancel what is unpaid, refund what is paid. Buyers are told through the outbox, and
the keeper asks the provider for the money."""

import hashlib
import secrets

from seckill.domain.order_number import OrderNumber
from seckill.ports.order_action import Acted, ActionKind, ActionOutcome, OrderAction, OrderActionLedger
from seckill.telemetry import OPERATOR_ACTIONS

_REQUEST_ID_BYTES = 16


class OperatorActions:
    """Calls with the same `key` are one wish, which is carried out once. Without a key, each call is a wish of its
    own."""

    def __init__(self, ledger: OrderActionLedger) -> None:
        self._ledger = ledger

    async def cancel(self, number: OrderNumber, *, reason: str, key: str = "") -> Acted | None:
        """Cancels an unpaid order. Returns None if there is no such order."""
        return await self._act(
            OrderAction(number=number, request_id=_request_id(key), kind=ActionKind.CANCEL, reason=reason)
        )

    async def refund(
        self, number: OrderNumber, *, reason: str, return_unit: bool, amount_cents: int | None = None, key: str = ""
    ) -> Acted | None:
        """Refunds `amount_cents` or, without it, all that is left of the price. Returns None if there is no such
        order."""
        return await self._act(
            OrderAction(
                number=number,
                request_id=_request_id(key),
                kind=ActionKind.REFUND,
                reason=reason,
                amount_cents=amount_cents,
                return_unit=return_unit,
            )
        )

    async def _act(self, action: OrderAction) -> Acted | None:
        acted = await self._ledger.act(action)
        if acted is not None and acted.outcome is ActionOutcome.DONE:
            OPERATOR_ACTIONS.labels(action.kind.value).inc()
        return acted


def _request_id(key: str) -> str:
    """Has the same length whatever the length of the key."""
    if not key:
        return secrets.token_hex(_REQUEST_ID_BYTES)
    return hashlib.blake2b(key.encode(), digest_size=_REQUEST_ID_BYTES).hexdigest()
