"""Keeps the figures of every running round, second by second, for operators who look back.

The keeper takes them from what all processes report anyway, so no claim waits for this. A second in which nothing
changed is left out, except the last one before a change and one in each minute: a longer gap means that no keeper was
running. Several keepers write the same seconds, and the first one counts.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from seckill.domain.sale import Round
from seckill.engine.claims.claim_figures import added, percentile_ms
from seckill.engine.claims.live_figures import LiveFigures, LiveRound, refused_by_round
from seckill.engine.rounds.report_memory import ReportMemory
from seckill.engine.sale_cache import SaleCache
from seckill.ports.figures import FiguresLedger, RoundReading
from seckill.ports.ledger import FigureLedger, Tally
from seckill.telemetry import SALES_SHOWN_MAX

# Several seconds are written together: a transaction for each would be a burden for a ledger in one file.
WRITE_EVERY_S = 5.0
# How many readings go into one statement, and how many are kept while the ledger cannot be written to.
PORTION = 1_000
WAITING_MAX = 20_000
MINUTE_S = 60
# Around the start and the sell-out of a round, every second is kept for as long as any figures are.
AROUND_START_S = (30, 600)
BEFORE_SOLD_OUT_S = 300
AFTER_SOLD_OUT_S = 60
# Rounds that are over only change by payments, cancellations and refunds.
OVER_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Tallied:
    unpaid: int
    paid: int
    taken_cents: int
    waiting: int


class FigureKeeping:
    def __init__(
        self,
        figures: FiguresLedger,
        ledger: FigureLedger,
        live: LiveFigures,
        sale_cache: SaleCache,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._figures = figures
        self._ledger = ledger
        self._live = live
        self._sale_cache = sale_cache
        self._monotonic = monotonic
        self._reports = ReportMemory()
        self._tallies: dict[int, Tallied] = {}
        self._last: dict[int, RoundReading] = {}
        self._sold_out_s: dict[int, int] = {}
        self._waiting: list[RoundReading] = []
        self._sold_out: list[tuple[int, int]] = []
        self._written_s = monotonic()
        self._over_s = 0.0

    def tallied(self, round_id: int, tally: Tally, waiting: int) -> None:
        """Takes over counts that are made less often, from the part that makes them anyway."""
        self._tallies[round_id] = Tallied(tally.unpaid, tally.paid, tally.taken_cents, waiting)

    async def step(self) -> int:
        """Returns how many readings it has written."""
        await self._look()
        if self._monotonic() - self._over_s >= OVER_EVERY_S:
            self._over_s = self._monotonic()
            await self._look_at_what_is_over()
        return await self.write() if self._monotonic() - self._written_s >= WRITE_EVERY_S else 0

    async def write(self) -> int:
        self._written_s = self._monotonic()
        del self._waiting[:-WAITING_MAX]
        noted = 0
        while portion := self._waiting[:PORTION]:
            noted += await self._figures.note(portion)
            del self._waiting[: len(portion)]
        while self._sold_out:
            round_id, at_s = self._sold_out[0]
            await self._figures.spare(round_id, at_s - BEFORE_SOLD_OUT_S, at_s)
            self._sold_out.pop(0)
        return noted

    async def _look(self) -> None:
        watched = self._sale_cache.watched()
        self._forget_others({round_.id for round_ in watched} | {round_.id for round_ in self._sale_cache.over()})
        if not watched:
            return
        live = await self._live.read()
        p99_ms = percentile_ms(added(one.report.answers for one in live.seen), 0.99)
        at_s = self._sale_cache.now_ms() // 1000
        refused = refused_by_round(self._reports.reports(live.seen, at_s))
        largest = sorted(live.rounds, key=lambda each: (-each.sale.round.total, each.sale.round.id))
        for each in largest[:SALES_SHOWN_MAX]:
            round_ = each.sale.round
            p99_us = None if p99_ms is None else round(p99_ms * 1000)
            self._take(round_, self._reading(each, at_s, p99_us, refused.get(round_.id, {})))

    def _forget_others(self, ids: set[int]) -> None:
        self._last = {round_id: known for round_id, known in self._last.items() if round_id in ids}
        self._tallies = {round_id: known for round_id, known in self._tallies.items() if round_id in ids}
        self._sold_out_s = {round_id: at_s for round_id, at_s in self._sold_out_s.items() if round_id in ids}

    def _reading(self, live: LiveRound, at_s: int, p99_us: int | None, refused: Mapping[str, int]) -> RoundReading:
        round_id = live.sale.round.id
        tally = self._tallies.get(round_id)
        return RoundReading(
            round_id=round_id,
            at_s=at_s,
            available=None if live.pulse is None else live.pulse.available,
            accepted=None if live.pulse is None else live.pulse.admitted,
            persisted=live.written,
            refused=dict(refused),
            backlog=live.backlog,
            lag_ms=live.lag_ms,
            p99_us=p99_us,
            unpaid=None if tally is None else tally.unpaid,
            paid=None if tally is None else tally.paid,
            taken_cents=None if tally is None else tally.taken_cents,
            waiting=None if tally is None else tally.waiting,
        )

    def _take(self, round_: Round, reading: RoundReading) -> None:
        last = self._last.get(round_.id)
        if last is not None and last.at_s >= reading.at_s:
            return
        minute = last is None or last.at_s // MINUTE_S != reading.at_s // MINUTE_S
        if not minute and last is not None and _same(last, reading):
            return
        if last is not None and last.available and reading.available == 0:
            self._sold_out_s[round_.id] = reading.at_s
            self._sold_out.append((round_.id, reading.at_s))
        stays = _is_start(round_, reading.at_s) or self._is_sold_out_now(reading)
        if last is not None and reading.at_s - last.at_s > 1 and not _same(last, reading):
            # The reading before the change is kept too, so that a chart shows the change in this second and not spread
            # over the seconds left out.
            self._waiting.append(replace(last, at_s=reading.at_s - 1, fine=not stays))
        self._last[round_.id] = reading
        self._waiting.append(replace(reading, fine=not (minute or stays)))

    def _is_sold_out_now(self, reading: RoundReading) -> bool:
        since_s = self._sold_out_s.get(reading.round_id)
        return since_s is not None and reading.at_s - since_s <= AFTER_SOLD_OUT_S

    async def _look_at_what_is_over(self) -> None:
        rounds = sorted(self._sale_cache.over(), key=lambda round_: -round_.ends_ms)[:SALES_SHOWN_MAX]
        if not rounds:
            return
        counted = await self._ledger.counted([round_.id for round_ in rounds])
        at_s = self._sale_cache.now_ms() // 1000
        for round_ in rounds:
            tally = await self._ledger.tally(round_.id)
            last = self._last.get(round_.id)
            if tally is None:
                continue
            reading = RoundReading(
                round_id=round_.id,
                at_s=at_s,
                fine=False,
                available=None,
                accepted=None if last is None else last.accepted,
                persisted=counted[round_.id].written,
                refused={} if last is None else last.refused,
                unpaid=tally.unpaid,
                paid=tally.paid,
                taken_cents=tally.taken_cents,
                waiting=0,
            )
            if last is None or not _same(last, reading):
                self._last[round_.id] = reading
                self._waiting.append(reading)


def _is_start(round_: Round, at_s: int) -> bool:
    before_s, after_s = AROUND_START_S
    return -before_s <= at_s - round_.opens_ms // 1000 < after_s


def _same(one: RoundReading, other: RoundReading) -> bool:
    return replace(one, at_s=other.at_s, fine=other.fine) == other
