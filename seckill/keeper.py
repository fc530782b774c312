"""The keeper: the clockwork beside the sale."""

import asyncio

import structlog

from seckill.afterlife import BATCH_MAX, Afterlife
from seckill.catalogue import Catalogue
from seckill.failures import Failures
from seckill.loops import Stop, repeat
from seckill.ports import Gate, Ledger, Transport
from seckill.rounds import Sync, bring_to_gate
from seckill.telemetry import BACKLOG, ROUNDS_MISSING

log = structlog.get_logger()

EVERY_S = 1.0
EXPIRE_EVERY_S = 1.0
RETRY_EVERY_S = 0.5
BETWEEN_BATCHES_S = 0.05
# A unit that comes back is to be on sale again within a second.
RELAY_EVERY_S = 0.2
# A consumer that holds nothing and was silent for so long belongs to a worker that is gone.
CONSUMER_IDLE_S = 3600.0


class Keeper:
    def __init__(self, gate: Gate, transport: Transport, ledger: Ledger, catalogue: Catalogue) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger
        self._catalogue = catalogue
        self._lanes: set[int] = set()
        self._lost: set[int] = set()

    async def sync_rounds(self) -> int:
        """Opens what is not open yet and passes on what operators changed. Returns how many it brought up to date."""
        done = 0
        for round_ in await self._ledger.rounds_to_sync():
            done += await bring_to_gate(round_, self._gate, self._ledger) is Sync.DONE
        return done

    async def look_for_losses(self) -> set[int]:
        """Rounds that were opened and that the gate no longer has."""
        await self._catalogue.refresh_sales()
        await self._catalogue.refresh_pulses()
        lost = set()
        for round_ in self._catalogue.without_pulse():
            sale = await self._ledger.sale(round_.sale_id)  # the newest word: it may not have been opened yet
            if sale is not None and sale.round.id == round_.id and sale.round.synced_revision > 0:
                lost.add(round_.id)
        for round_id in sorted(lost - self._lost):
            log.error("the gate has lost a round: it refuses with not_ready", round=round_id)
        self._lost = lost
        ROUNDS_MISSING.set(len(lost))
        return lost

    async def measure_backlog(self) -> int:
        lanes = await self._ledger.lanes_in_use()
        if lanes != self._lanes:
            await self._transport.prepare(sorted(lanes))
            self._lanes = lanes
        backlog = await self._transport.backlog()
        BACKLOG.set(backlog)
        return backlog

    async def retire_consumers(self) -> int:
        return await self._transport.retire_consumers(CONSUMER_IDLE_S)


async def run_keeper(keeper: Keeper, afterlife: Afterlife, failures: Failures, stop: Stop) -> None:
    async def step() -> None:
        await keeper.sync_rounds()
        await keeper.look_for_losses()
        await keeper.measure_backlog()
        await keeper.retire_consumers()

    async def expire() -> None:
        # A pause after each batch: payments write to the same database.
        while await afterlife.expire() == BATCH_MAX and not stop.is_set():
            await stop.wait(BETWEEN_BATCHES_S)

    async with asyncio.TaskGroup() as loops:
        loops.create_task(repeat("keeper", step, stop, every_s=EVERY_S))
        loops.create_task(repeat("expiry", expire, stop, every_s=EXPIRE_EVERY_S))
        loops.create_task(repeat("retries", failures.retry_due, stop, every_s=RETRY_EVERY_S))
        loops.create_task(repeat("relay", afterlife.relay, stop, every_s=RELAY_EVERY_S))
