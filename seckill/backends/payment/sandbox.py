"""The till that takes no money, for trying things out."""

from collections.abc import Mapping

import structlog

from seckill.backends.payment.callback import read_signed
from seckill.domain import money
from seckill.ports.payment import Notice, Refund
from seckill.settings import Settings

log = structlog.get_logger()


class Sandbox:
    """Buyers pay by pressing a button, and refunds are done as soon as they are wanted. For trying things out."""

    name = "sandbox"
    sandbox = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice:
        return read_signed(self._settings, headers, body, now_s)

    async def refund(self, refund: Refund, order_id: str) -> bool:
        amount = money.shown(refund.amount_cents, refund.capture.currency)
        log.info("refunded in the sandbox", refund=refund.id, order=order_id, amount=amount)
        return True
