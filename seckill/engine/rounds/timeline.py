"""Everything that happened to a sale, in one list: starts and ends, sell-outs and returns, what operators and the
engine did, and alarms. Each kind takes one query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seckill.domain.event import EventType
from seckill.domain.sale import RoundStatus, Sale
from seckill.ports.alarm_book import AlarmBook, AlarmFilter
from seckill.ports.feed import Feed, SaleEvent
from seckill.ports.figures import FiguresLedger
from seckill.ports.history import RoundHistory
from seckill.ports.record import RecordBook, RecordEntry, RecordFilter
from seckill.ports.story import StoryLedger

# An operator's change is both in the feed and on the record. Their times differ slightly, as one transaction writes
# them in two statements.
SAME_MS = 2_000
_TYPES = frozenset(each for each in EventType if each.family in ("sale", "round", "line"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    at_ms: int
    kind: str
    round_id: int | None = None
    who: str | None = None  # None: the clock, buyers, or the engine
    why: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class Timelines:
    def __init__(
        self,
        feed: Feed,
        record: RecordBook,
        figures: FiguresLedger,
        alarms: AlarmBook,
        history: RoundHistory,
        stories: StoryLedger,
    ) -> None:
        self._feed = feed
        self._record = record
        self._figures = figures
        self._alarms = alarms
        self._history = history
        self._stories = stories

    async def of(self, sale: Sale, since_ms: int, until_ms: int, count: int) -> list[Happening]:
        """Returns the newest `count` in that time, newest first."""
        entries = await self._record.entries(
            RecordFilter(sale_id=sale.id, since_ms=since_ms, until_ms=until_ms), None, count
        )
        events = await self._feed.of_sale(sale.id, _TYPES, since_ms, until_ms, count)
        found = [_of_record(entry) for entry in entries]
        found += [_of_feed(event) for event in events if not _is_on_record(event, entries)]
        found += await self._turns(sale, since_ms, until_ms, count)
        found += await self._alarmed(sale.id, since_ms, until_ms, count)
        found += await self._windows(sale.id, since_ms, until_ms, count)
        return sorted(found, key=lambda each: each.at_ms, reverse=True)[:count]

    async def _turns(self, sale: Sale, since_ms: int, until_ms: int, count: int) -> list[Happening]:
        turns = await self._figures.turns(sale.id, since_ms // 1000, -(-until_ms // 1000), count)
        found = [_turn(turn.at_s * 1000, turn.round_id, turn.available) for turn in turns]
        # A sell-out of less than a second may be missing from the kept figures, but the orders show it.
        if not any(turn.round_id == sale.round.id and not turn.available for turn in turns):
            gone_ms = (await self._stories.story(sale.round.id, 1)).gone_ms
            if gone_ms is not None and since_ms <= gone_ms < until_ms:
                found.append(_turn(gone_ms, sale.round.id, 0))
        return found

    async def _alarmed(self, sale_id: int, since_ms: int, until_ms: int, count: int) -> list[Happening]:
        found = []
        for alarm in await self._alarms.alarms(
            AlarmFilter(sale_id=sale_id, since_ms=since_ms, until_ms=until_ms), count
        ):
            facts = {"alarm": alarm.what, "times": alarm.times}
            found.append(Happening(at_ms=alarm.raised_ms, kind="alarm.raised", facts=facts))
            if alarm.resolved_ms is not None and alarm.resolved_ms < until_ms:
                resolved = {"alarm": alarm.what}
                found.append(Happening(at_ms=alarm.resolved_ms, kind="alarm.resolved", facts=resolved))
        return found

    async def _windows(self, sale_id: int, since_ms: int, until_ms: int, count: int) -> list[Happening]:
        """Returns starts and ends, which are not written down anywhere: the clock makes them."""
        found = []
        for each in await self._history.rounds_between(sale_id, since_ms, until_ms, count):
            round_ = each.round
            for kind, at_ms in (("round.began", round_.begins_ms), ("round.ended", round_.ends_ms)):
                if since_ms <= at_ms < until_ms and not (kind == "round.ended" and round_.status is RoundStatus.CLOSED):
                    facts = {"ordinal": round_.ordinal, "units": round_.total}
                    found.append(Happening(at_ms=at_ms, kind=kind, round_id=round_.id, facts=facts))
        return found


def _turn(at_ms: int, round_id: int, available: int) -> Happening:
    kind = "stock.returned" if available else "stock.sold_out"
    return Happening(at_ms=at_ms, kind=kind, round_id=round_id, facts={"available": available})


def _of_record(entry: RecordEntry) -> Happening:
    return Happening(
        at_ms=entry.at_ms, kind=entry.what, who=entry.who, why=entry.why, before=entry.before, after=entry.after
    )


def _of_feed(event: SaleEvent) -> Happening:
    told = {name: value for name, value in event.facts.items() if name in ("ordinal", "units", "epoch", "changed")}
    return Happening(at_ms=event.at_ms, kind=event.type, round_id=event.round_id, facts=told)


def _is_on_record(event: SaleEvent, entries: Sequence[RecordEntry]) -> bool:
    return any(entry.what == event.type and abs(entry.at_ms - event.at_ms) <= SAME_MS for entry in entries)
