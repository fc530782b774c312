"""Schedules when each round's orders are compared, and keeps the result of the last time.

`at_once` compares at once, whatever it costs. `go_on` compares a little at a time, so that it takes a hundredth of one
core's time and never much in one piece. A round's page is replaced when its comparison is complete.

Anything that looks wrong is read a second time, and only counts if it is still wrong.
"""

import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import structlog

from seckill.audit.counter_checks import Reading
from seckill.audit.gate import Absent, GateReader
from seckill.audit.invariants import ALL, COMPARED
from seckill.audit.lane_shares import lanes_of
from seckill.audit.ledger import LedgerReader
from seckill.audit.order_comparison import Book, compare_orders
from seckill.audit.report import Notes, Unsure
from seckill.audit.second_look import look_again
from seckill.errors import GateUnavailable, LedgerUnavailable

log = structlog.get_logger()

# Comparing orders one by one may take one part in this many of the time.
PARTS_OF_TIME = 100
# A round that has never been compared may take this many times that share: until then nothing can be said about it.
FIRST_TIMES = 5
# A round that is new and has no more orders than this is compared at once: a sale that begins must not wait for its
# first verdict.
FEW = 500
# How much of its time a comparison in small steps may take in advance. That is usually enough for all of it.
AHEAD_S = 5.0
# Time spent at once on a suspicion is made up for within this time at most: other rounds wait meanwhile.
DEBT_S_MAX = 60.0
# A round that was compared within this time and looked right is not compared again in small steps. Otherwise a sale
# with few orders would be compared all the time.
REST_S = 5.0

_END = object()


@dataclass(frozen=True, slots=True)
class Page:
    """The result of a round's last comparison."""

    notes: Notes
    opening: tuple[int, int] | None
    at_ms: int
    at_s: float
    cut_short: bool = False  # a server went away in the middle


@dataclass(frozen=True, slots=True)
class Walk:
    """A comparison under way."""

    reading: Reading
    book: Book
    steps: AsyncIterator[None]
    standing: int


def _size(reading: Reading) -> int:
    """Estimates how many orders there are to compare."""
    buyers = 0 if isinstance(reading.gate, Absent) else reading.gate.buyers
    return max(buyers, reading.after.written)


class Schedule:
    def __init__(self, ledger: LedgerReader, gate: GateReader, monotonic: Callable[[], float]) -> None:
        self._ledger = ledger
        self._gate = gate
        self._monotonic = monotonic
        self._pages: dict[int, Page] = {}
        self._lanes: dict[int, Notes] = {}
        self._walks: dict[int, Walk] = {}
        self._spent_s: dict[int, float] = {}
        self._due_s = 0.0  # when the time spent is made up for
        self._oldest_next = False

    def is_due(self) -> bool:
        return self._monotonic() >= self._due_s

    def is_new(self, reading: Reading) -> bool:
        """Whether the round was never compared completely, or was opened or rebuilt since."""
        page = self._pages.get(reading.id)
        if page is None or page.cut_short:
            return True
        return reading.opening() not in (None, page.opening)

    def is_quickly_done(self, reading: Reading) -> bool:
        """Whether the round is new and has so few orders that a delay is not worth it."""
        return self.is_new(reading) and _size(reading) <= FEW

    async def at_once(self, readings: Sequence[Reading], debt_s_max: float = math.inf) -> None:
        if not readings:
            return
        began_cpu_s = time.process_time()
        for reading in readings:
            self._walks.pop(reading.id, None)
        try:
            self._keep(readings, await self._looked_at_twice(readings, await self._book_of(readings)))
        except (GateUnavailable, LedgerUnavailable) as error:
            self._cut_short(readings, error)
        except Exception as error:
            if len(readings) == 1:
                self._cut_short(readings, error)
            else:  # one of them is at fault, and the others can be compared
                for reading in readings:
                    await self.at_once([reading], debt_s_max)
        self._charge(time.process_time() - began_cpu_s, debt_s_max)

    async def go_on(self, readings: Sequence[Reading]) -> None:
        """Goes on as far as the time allows, with each round at most once. A round that people wait for, because it is
        new or looked wrong last time, goes on whatever was spent before."""
        for reading in readings:
            self._spent_s.setdefault(reading.id, min(self._spent_s.values(), default=0.0))
        left = {reading.id: reading for reading in readings if not self._rests(reading)}
        awaited = [each for each in left.values() if self.is_new(each) or self._pages[each.id].notes.findings]
        if awaited:
            await self._go_on(left, awaited)
        while left and self._monotonic() >= self._due_s - AHEAD_S:
            await self._go_on(left, list(left.values()))

    def _rests(self, reading: Reading) -> bool:
        if self.is_new(reading) or reading.id in self._walks:
            return False
        page = self._pages[reading.id]
        return not page.notes.findings and self._monotonic() < page.at_s + REST_S

    async def _go_on(self, left: dict[int, Reading], choice: Sequence[Reading]) -> None:
        reading = self._next(choice)
        if await self._step(reading):
            del left[reading.id]

    def _next(self, readings: Sequence[Reading]) -> Reading:
        """Chooses the next round. New rounds come first. After them come, in turn, the round that has waited longest,
        so that a large one gets finished, and the one that has cost least, so that a small one need not wait for it. A
        large round that was begun goes on before another is begun, because each keeps a part of its orders in memory
        until its end."""

        def by_age(reading: Reading) -> tuple[bool, int]:
            page = self._pages.get(reading.id)
            return not self.is_new(reading), page.at_ms if page else 0

        def by_cost(reading: Reading) -> tuple[bool, bool, float]:
            holds_little_more = reading.id in self._walks or _size(reading) <= FEW
            return not self.is_new(reading), not holds_little_more, self._spent_s[reading.id]

        oldest = min(readings, key=by_age)
        others = [reading for reading in readings if reading.id != oldest.id]
        self._oldest_next = not self._oldest_next
        return oldest if self._oldest_next or not others else min(others, key=by_cost)

    async def _step(self, reading: Reading) -> bool:
        """Takes one step. Returns True if there is nothing more to do for now."""
        began_cpu_s = time.process_time()
        times = FIRST_TIMES if self.is_new(reading) else 1
        walk = self._walks.get(reading.id)
        standing = self._gate.standing
        if walk is None or (walk.reading.opening(), walk.standing) != (reading.opening(), standing):
            book = Book()
            walk = Walk(reading, book, compare_orders([reading], self._ledger, self._gate, book), standing)
            self._walks[reading.id] = walk
        done = True
        try:
            done = await anext(walk.steps, _END) is _END
            if done:
                await self._gate.must_stand(walk.standing)
                self._keep([walk.reading], await self._looked_at_twice([walk.reading], walk.book))
        except Exception as error:
            self._cut_short([reading], error)
        finally:
            if done:  # even if it was interrupted: a comparison that has ended cannot go on
                del self._walks[reading.id]
        cost_s = time.process_time() - began_cpu_s
        self._spent_s[reading.id] += cost_s
        self._charge(cost_s / times)
        return done

    def _charge(self, cost_s: float, debt_s_max: float = math.inf) -> None:
        """Charges CPU time, not elapsed time: on a busy machine most of that is waiting for others."""
        now_s = self._monotonic()
        self._due_s = max(self._due_s, min(max(self._due_s, now_s) + PARTS_OF_TIME * cost_s, now_s + debt_s_max))

    async def _book_of(self, readings: Sequence[Reading]) -> Book:
        await self._gate.look_up()
        book, standing = Book(), self._gate.standing
        async for _ in compare_orders(readings, self._ledger, self._gate, book):
            pass
        await self._gate.must_stand(standing)
        return book

    async def _looked_at_twice(self, readings: Sequence[Reading], first: Book) -> Book:
        wrong = [
            reading
            for reading in readings
            if first.rounds[reading.id].findings
            or any(first.lanes[lane].findings for lane in lanes_of([reading.after]) if lane in first.lanes)
        ]
        if not wrong:
            return first
        await look_again(self._gate)
        second = await self._book_of(wrong)
        known = first.keys()
        for notes in second.pages():
            notes.only(known)
        return Book(first.rounds | second.rounds, first.lanes | second.lanes)

    def _keep(self, readings: Sequence[Reading], book: Book) -> None:
        now_s = self._monotonic()
        for reading in readings:
            self._pages[reading.id] = Page(book.rounds[reading.id], reading.opening(), reading.after.now_ms, now_s)
        self._lanes.update(book.lanes)

    def _cut_short(self, readings: Sequence[Reading], error: Exception) -> None:
        """Notes that a comparison was interrupted; the next reading tries again. A server that went away is the reason
        given; an unforeseen error must not pass for a comparison that found nothing."""
        away = isinstance(error, GateUnavailable | LedgerUnavailable)
        if not away:
            log.error("orders could not be compared", rounds=[reading.id for reading in readings], exc_info=error)
        for reading in readings:
            says = str(error) if away else f"round {reading.id} could not be compared ({error!r})"
            notes = Notes(unsure=[Unsure(ALL, says, reading.id)])
            self._pages[reading.id] = Page(notes, None, reading.after.now_ms, self._monotonic(), cut_short=True)

    def forget_others(self, readings: Sequence[Reading]) -> None:
        ids = {reading.id for reading in readings}
        lanes = set(lanes_of([reading.after for reading in readings]))
        for mine in (self._pages, self._walks, self._spent_s):
            for gone in mine.keys() - ids:
                del mine[gone]
        for lane in self._lanes.keys() - lanes:
            del self._lanes[lane]

    def known(self, readings: Sequence[Reading]) -> Notes:
        """Returns the results of the last comparisons, and which of these rounds have none."""
        notes = Notes()
        for page in self._pages.values():
            notes.take(page.notes)
        for lane in self._lanes.values():
            notes.take(lane)
        for reading in readings:
            if self.is_new(reading):
                says = f"the orders of round {reading.id} have not all been compared yet"
                notes.unsure.append(Unsure(COMPARED, says, reading.id, passes=True))
        return notes

    def compared_ms(self, readings: Sequence[Reading]) -> int:
        """Returns the time of the oldest comparison; 0 if some rounds were never compared."""
        return min((self._pages[each.id].at_ms if each.id in self._pages else 0 for each in readings), default=0)
