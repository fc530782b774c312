"""After an order is over: its units go back on sale, and buyers who wait are told.

The ledger ends an order and adds a row to the outbox in one transaction. The row is passed on at least once, and the
gate gives back each order's units once. After a crash between any two steps, the remaining ones are repeated, nothing
more.
"""

from collections import defaultdict

import structlog

from seckill.domain.sale import RoundRef
from seckill.errors import GateUnavailable, TransportUnavailable
from seckill.loops import gets_on
from seckill.ports.gate import Released, ReleaseGate
from seckill.ports.ledger import OutboxItem, ReleaseLedger
from seckill.ports.transport import ReleaseTransport
from seckill.telemetry import ORDERS_EXPIRED, UNITS_RELEASED

log = structlog.get_logger()

BATCH_MAX = 500


class ReleaseDesk:
    def __init__(self, gate: ReleaseGate, transport: ReleaseTransport, ledger: ReleaseLedger) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger
        self._refused: set[int] = set()

    async def expire(self) -> int:
        """Ends one batch of orders whose time to pay is over. Returns how many there were."""
        expired = await self._ledger.expire_due(BATCH_MAX)
        ORDERS_EXPIRED.inc(len(expired))
        return len(expired)

    async def pass_on(self) -> int:
        """Passes on what is in the outbox, batch after batch. Returns how many items are done with.

        A round that the gate does not have now waits for the next run without holding up the others."""
        passed_on = 0
        waiting: set[int] = set()
        while items := await self._ledger.outbox(BATCH_MAX, sorted(waiting)):
            done = await self._release([item for item in items if item.release is not None])
            done += [item for item in items if item.release is None]
            waiting |= {item.ref.id for item in items} - {item.ref.id for item in done}
            if done:
                await self._tell(done)
                await self._ledger.outbox_done([item.id for item in done])
            passed_on += len(done)
            gets_on()
        return passed_on

    async def _release(self, items: list[OutboxItem]) -> list[OutboxItem]:
        by_round: dict[RoundRef, list[OutboxItem]] = defaultdict(list)
        for item in items:
            by_round[item.ref].append(item)
        done: list[OutboxItem] = []
        for ref, group in by_round.items():
            releases = [item.release for item in group if item.release is not None]
            try:
                reply = await self._gate.release(ref, releases)
            except GateUnavailable as error:  # perhaps only for this round: the others go on
                if ref.id not in self._refused:  # once for each trouble rather than several times a second
                    log.error("the gate does not take a round's units back", round=ref.id, reason=str(error))
                self._refused.add(ref.id)
                continue
            self._refused.discard(ref.id)
            if any(result is not Released.NOT_YET for result in reply.results):
                await self._tell_nodes(ref, reply.version)
            for item, result in zip(group, reply.results, strict=True):
                UNITS_RELEASED.labels(result.value).inc()
                if result is Released.UNKNOWN:
                    log.error("the gate knows no such order, nothing was given back", order=int(item.number))
                # NOT_YET holds for all units of its lane: the gate does not have the round
                if result is not Released.NOT_YET:
                    done.append(item)
        return done

    async def _tell_nodes(self, ref: RoundRef, version: int) -> None:
        """Tells nodes even if the units were already back: the keeper that gave them back may have died before
        telling."""
        try:
            await self._transport.publish_version(ref.id, version)
        except TransportUnavailable as error:  # nodes ask the gate as well, though less often
            log.warning("returned units not announced", round=ref.id, reason=str(error))

    async def _tell(self, done: list[OutboxItem]) -> None:
        states: dict[str, list[int]] = {}
        # If two changes of an order are announced at once, only the last is told.
        for number, state in {int(item.number): item.state for item in done}.items():
            states.setdefault(state, []).append(number)
        try:
            await self._transport.publish_states(states)
        except TransportUnavailable as error:  # a buyer who waits finds it in the ledger
            log.warning("states not announced", orders=len(done), reason=str(error))
