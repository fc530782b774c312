"""Measures how much space gate and ledger have left, and raises an alarm before a disk or a memory is full."""

from collections.abc import Mapping
from contextlib import suppress

from seckill.domain.space import SpaceKind, scarcest
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.errors import GateError, LedgerError
from seckill.ports.space import SpaciousStore
from seckill.telemetry import SPACE_FREE, SPACE_SIZE

# A full disk ends a sale, but none fills up within seconds.
EVERY_S = 10.0

_CAUSES: Mapping[tuple[str, SpaceKind], AlarmCause] = {
    ("gate", SpaceKind.MEMORY): AlarmCause.GATE_MEMORY_SHORT,
    ("gate", SpaceKind.DISK): AlarmCause.GATE_DISK_SHORT,
    ("ledger", SpaceKind.DISK): AlarmCause.LEDGER_DISK_SHORT,
}
_OVER: Mapping[AlarmCause, str] = {
    AlarmCause.GATE_MEMORY_SHORT: "the gate has enough memory again",
    AlarmCause.GATE_DISK_SHORT: "the gate's disk has enough room again",
    AlarmCause.LEDGER_DISK_SHORT: "the ledger's disk has enough room again",
}


class SpaceAlarm:
    def __init__(self, gate: SpaciousStore, ledger: SpaciousStore, alarm: Alarm) -> None:
        self._stores = {"gate": gate, "ledger": ledger}
        self._alarm = alarm
        self._told: set[AlarmCause] = set()

    async def step(self) -> int:
        """Returns how many spaces operators have been told of. They are told once of each, and when it is over."""
        for name, store in self._stores.items():
            with suppress(GateError, LedgerError):  # that a store is away is another alarm
                await self._look(name, store)
        return len(self._told)

    async def _look(self, name: str, store: SpaciousStore) -> None:
        for kind, space in scarcest(await store.spaces()).items():
            SPACE_FREE.labels(name, kind).set(space.free_bytes)
            SPACE_SIZE.labels(name, kind).set(space.size_bytes)
            cause = _CAUSES[name, kind]
            facts = {"where": space.where, "free_bytes": space.free_bytes, "size_bytes": space.size_bytes}
            if space.is_short and cause not in self._told:
                self._told.add(cause)
                await self._alarm.raise_(cause, facts, lasting=True)
            elif space.is_ample and cause in self._told:
                self._told.discard(cause)
                await self._alarm.resolve(_OVER[cause], facts, ends=cause)
