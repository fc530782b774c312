"""Whether this process could sell now."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from seckill.engine.shared_look import SharedAnswers
from seckill.errors import GateError, LedgerError
from seckill.ports.gate import ServerGate
from seckill.ports.ledger import PingLedger

WITHIN_S = 2.0


class StoreHealth(StrEnum):
    OK = "ok"
    AWAY = "away"
    # The servers answer but cannot keep the promises, so they admit no one. This word is public; the reason is in the
    # log.
    UNFIT = "unfit"
    PARTLY_UNFIT = "partly_unfit"
    # The servers have no room for another claim: they refuse it and have deducted nothing.
    FULL = "full"
    PARTLY_FULL = "partly_full"


@dataclass(slots=True)
class Parts:
    gate: StoreHealth = StoreHealth.AWAY
    ledger: StoreHealth = StoreHealth.AWAY

    @property
    def ready(self) -> bool:
        """The gate alone is enough: without the ledger, orders queue up to the backlog cap."""
        return self.gate in (StoreHealth.OK, StoreHealth.PARTLY_UNFIT, StoreHealth.PARTLY_FULL)


class Readiness:
    def __init__(self, gate: ServerGate, ledger: PingLedger) -> None:
        self._gate = gate
        self._ledger = ledger
        self._looking = SharedAnswers[Parts]()

    async def look(self) -> Parts:
        """A part that does not answer in time counts as away. Anyone may ask, so all who ask at once share one look."""
        return await self._looking.of("all", self._look)

    async def _look(self) -> Parts:
        parts = Parts()

        async def gate() -> None:
            await self._gate.ping()
            parts.gate = _health(await self._gate.watch_servers(), self._gate.full_servers())

        async def ledger() -> None:
            await self._ledger.ping()
            parts.ledger = StoreHealth.OK

        try:
            async with asyncio.timeout(WITHIN_S):
                results = await asyncio.gather(gate(), ledger(), return_exceptions=True)
        except TimeoutError:
            return parts
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, GateError | LedgerError):
                raise result
        return parts


def _health(faults: Mapping[str, str], full: Collection[str]) -> StoreHealth:
    unfit = {server for server, fault in faults.items() if fault}
    useless = unfit | {server for server in full if server in faults}
    if not useless:
        return StoreHealth.OK
    if useless == faults.keys():
        return StoreHealth.UNFIT if unfit else StoreHealth.FULL
    return StoreHealth.PARTLY_UNFIT if unfit else StoreHealth.PARTLY_FULL
