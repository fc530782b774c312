"""Refunds. The keeper asks the provider until a refund is made, and the provider recognises a repeat by the refund's
id. Where no provider can give the money back, people do so by hand. If the provider refuses for good, people are told
once, and it is asked again only now and then, in case they have removed the cause."""

from collections.abc import Sequence

import structlog

from seckill.domain import money
from seckill.domain.public_id import PublicIds
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.errors import ProviderUnavailable, RefundPending, RefundRefused
from seckill.failpoints import reached
from seckill.ports.payment import PaymentProvider, Refund, RefundLedger
from seckill.telemetry import REFUNDS

log = structlog.get_logger()

BATCH_MAX = 100
# How long a refund is left to the keeper that has taken it, before another may take it.
LEASE_S = 30.0
# A refund that did not work is tried again after this, doubled up to the maximum.
RETRY_S_MIN = 2.0
RETRY_S_MAX = 600.0
REFUSED_RETRY_S = 3600.0


class RefundDesk:
    def __init__(self, ledger: RefundLedger, provider: PaymentProvider, order_ids: PublicIds, alarm: Alarm) -> None:
        self._alarm = alarm
        self._ledger = ledger
        self._provider = provider
        self._order_ids = order_ids

    async def make_due(self) -> int:
        """Asks the provider to make the refunds that are due. Returns how many there were."""
        done = 0
        # One at a time: a provider may be slow, and a keeper that dies leaves no others waiting.
        while done < BATCH_MAX and (due := await self._ledger.take_refunds(1, LEASE_S)):
            for refund in due:
                await self._make(refund)
            done += 1
        return done

    async def _make(self, refund: Refund) -> None:
        result = "by_hand"  # also when another provider took the money, which this one cannot give back
        try:
            if refund.capture.provider == self._provider.name:
                made = await self._provider.refund(refund, self._order_ids.encode(int(refund.number)))
                result = "done" if made else "by_hand"
        except RefundRefused as error:
            REFUNDS.labels("refused").inc()
            await self._refused(refund, str(error))
            return
        except RefundPending:
            result = "pending"
        except ProviderUnavailable as error:
            result = "failed"
            log.warning("a refund did not work", refund=refund.id, attempts=refund.attempts, reason=str(error))
        except Exception:  # a shop's own provider may raise anything, and the next refund must not suffer
            result = "failed"
            log.exception("a refund failed", refund=refund.id, attempts=refund.attempts)
        reached("payments.refund.after")
        REFUNDS.labels(result).inc()
        if result == "done":
            await self._ledger.refund_done(refund.id)
            if refund.refused is not None:
                facts = {"refund": str(refund.id), "order": self._order_ids.encode(int(refund.number))}
                await self._alarm.resolve(
                    "the payment provider has made the refund after all", facts, ends=AlarmCause.REFUND_REFUSED
                )
        else:
            after_s = min(RETRY_S_MIN * 2 ** min(refund.attempts - 1, 20), RETRY_S_MAX)
            await self._ledger.put_off_refund(refund.id, after_s)

    async def _refused(self, refund: Refund, words: str) -> None:
        await self._ledger.refund_refused(refund.id, words, REFUSED_RETRY_S)
        if refund.refused is None:
            facts = {
                "refund": str(refund.id),
                "order": self._order_ids.encode(int(refund.number)),
                "amount": money.shown(refund.amount_cents, refund.capture.currency),
                "reason": words,
            }
            await self._alarm.raise_(AlarmCause.REFUND_REFUSED, facts)

    async def newest(self, count: int) -> Sequence[Refund]:
        """Returns refunds, those still to be made first."""
        return await self._ledger.refunds(count)

    async def made_by_hand(self, refund_id: int) -> Refund | None:
        """Notes that a person has given the money back. Returns None if there is no such refund. Harmless to repeat."""
        await self._ledger.refund_done(refund_id)
        return await self._ledger.refund(refund_id)
