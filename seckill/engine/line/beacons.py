"""Fetches a draw's beacon from the source that was announced. The time at which the list was published decides which
value counts, so no one can choose it. A source that does not answer within the announced time does not hold up the draw
any longer: it is then made from the seed alone, which was committed to before, and the record says so."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog

from seckill.domain.line import RoundLine
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.ports.door import BeaconReader, ServiceAway
from seckill.ports.line import DrawLedger

log = structlog.get_logger()

AGAIN_S_MAX = 60.0
# After this many failures in a row an alarm is raised: it is more than a hiccup.
ALARM_AFTER = 3
# An operator who has to give the beacon is reminded this long after the list was published.
EXPECTED_WITHIN_MS = 60_000


@dataclass(slots=True)
class _Tries:
    failed: int = 0
    next_s: float = 0.0


class Beacons:
    def __init__(
        self,
        ledger: DrawLedger,
        reader: BeaconReader,
        alarm: Alarm,
        now_ms: Callable[[], float] = lambda: 1000 * time.time(),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._reader = reader
        self._alarm = alarm
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._tries: dict[int, _Tries] = {}
        self._expected: set[int] = set()  # rounds whose operators were told to give the beacon

    async def fetch(self, line: RoundLine) -> None:
        """For a line whose list's hash is published: notes the beacon, or that it came too late."""
        source = line.beacon_from
        if line.listed_ms is None:
            return
        if source is None:
            await self._expect(line, line.listed_ms)
            return
        number = source.number_after(line.listed_ms)
        tries = self._tries.setdefault(line.round_id, _Tries())
        # This process's clock decides nothing but when to ask.
        if self._now_ms() < source.at_ms(number) or self._monotonic() < tries.next_s:
            return
        try:
            value = await self._reader.value(source.address(number), number)
        except ServiceAway as error:
            await self._failed(line, tries, str(error))
            return
        await self._ledger.note_beacon(line.round_id, number, value)
        log.info("a draw has its beacon", round=line.round_id, number=number, beacon=value)
        await self._over(line.round_id)

    async def _expect(self, line: RoundLine, listed_ms: int) -> None:
        """The beacon can only come from an operator. If none is given before the round is over, no one gets a unit."""
        if not line.waiting:  # the round is over, or no one has joined
            await self._given(line.round_id)
        elif line.round_id not in self._expected and self._now_ms() - listed_ms >= EXPECTED_WITHIN_MS:
            self._expected.add(line.round_id)
            await self._alarm.raise_(AlarmCause.DRAW_WAITS, {"round": line.round_id}, lasting=True)

    async def _given(self, round_id: int) -> None:
        if round_id in self._expected:
            self._expected.discard(round_id)
            over = "the draw waits for its public value no more"
            await self._alarm.resolve(over, {"round": round_id}, ends=AlarmCause.DRAW_WAITS)

    async def _failed(self, line: RoundLine, tries: _Tries, reason: str) -> None:
        tries.failed += 1
        tries.next_s = self._monotonic() + min(2.0 ** (tries.failed - 1), AGAIN_S_MAX)
        facts = {"round": line.round_id, "reason": reason}
        log.warning(AlarmCause.BEACON_AWAY, **facts)
        if tries.failed == ALARM_AFTER:
            await self._alarm.raise_(AlarmCause.BEACON_AWAY, facts, lasting=True)
        if await self._ledger.miss_beacon(line.round_id):
            await self._alarm.raise_(AlarmCause.BEACON_MISSED, facts)
            await self._over(line.round_id)

    async def forget_others(self, waiting: Collection[int]) -> None:
        """Forgets the rounds that no longer wait: another keeper has got their beacon or given it up."""
        for round_id in self._tries.keys() - waiting:
            await self._over(round_id)
        for round_id in self._expected - set(waiting):
            await self._given(round_id)

    async def _over(self, round_id: int) -> None:
        if self._tries.pop(round_id).failed >= ALARM_AFTER:
            await self._alarm.resolve(
                "the draw waits for its beacon no more", {"round": round_id}, ends=AlarmCause.BEACON_AWAY
            )
