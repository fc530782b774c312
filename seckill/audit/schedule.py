"""When the orders of which round are compared, and what is known from the last time.

At once, whatever it costs: `at_once`. Otherwise a little at a time, so that it takes a hundredth of one core's time and
never much in one piece: `go_on`. A page is replaced when the comparison of its round is complete.

Whatever looks wrong is read a second time, and counts only if it is still so.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import structlog

from seckill.audit.comparing import Book, compare_orders
from seckill.audit.counting import Reading
from seckill.audit.gate import Absent, GateReader
from seckill.audit.ledger import LedgerReader
from seckill.audit.report import ALL, COMPARED, Notes, Unsure
from seckill.audit.shares import lanes_of
from seckill.errors import GateUnavailable, LedgerUnavailable

log = structlog.get_logger()

# The share of the time that goes into comparing orders one by one: one part of so many.
PARTS_OF_TIME = 100
# What has never been compared may take so many times that share: until then nothing can be said of it.
FIRST_TIMES = 5
# A round that is new and has no more orders than that is compared at once: a sale that begins must not wait for its
# first verdict.
FEW = 500
# How much of its time a comparison in small steps may take in advance. Mostly that is enough for all of it.
AHEAD_S = 5.0
# What was spent at once, on a suspicion, is made up for no longer than that: other rounds wait meanwhile.
DEBT_S_MAX = 60.0
BEFORE_SECOND_LOOK_S = 0.1

_END = object()


@dataclass(frozen=True, slots=True)
class Page:
    """What the last comparison of a round has come to."""

    notes: Notes
    opening: tuple[int, int] | None
    at_ms: int
    cut_short: bool = False  # a server went away in the middle


@dataclass(frozen=True, slots=True)
class Walk:
    """A comparison that is under way."""

    reading: Reading
    book: Book
    steps: AsyncIterator[None]


class Schedule:
    def __init__(self, ledger: LedgerReader, gate: GateReader, monotonic: Callable[[], float]) -> None:
        self._ledger = ledger
        self._gate = gate
        self._monotonic = monotonic
        self._pages: dict[int, Page] = {}
        self._lanes: dict[int, Notes] = {}
        self._walks: dict[int, Walk] = {}
        self._spent_s: dict[int, float] = {}
        self._due_s = 0.0  # when what was spent is made up for
        self._oldest_next = False

    def is_due(self) -> bool:
        return self._monotonic() >= self._due_s

    def is_new(self, reading: Reading) -> bool:
        """Never compared to its end, or opened or rebuilt since."""
        page = self._pages.get(reading.id)
        if page is None or page.cut_short:
            return True
        return reading.opening() not in (None, page.opening)

    def is_quickly_done(self, reading: Reading) -> bool:
        """New, and with so few orders that it is not worth a delay."""
        buyers = 0 if isinstance(reading.gate, Absent) else reading.gate.buyers
        return self.is_new(reading) and max(buyers, reading.after.written) <= FEW

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
            else:  # one of them is to blame, and the others can be compared
                for reading in readings:
                    await self.at_once([reading], debt_s_max)
        self._charge(time.process_time() - began_cpu_s, debt_s_max)

    async def go_on(self, readings: Sequence[Reading]) -> None:
        """As far as the time allows, and with each round once at most. One of those that people wait for goes on
        whatever was spent before: what is new, and what looked wrong the last time."""
        for reading in readings:
            self._spent_s.setdefault(reading.id, min(self._spent_s.values(), default=0.0))
        left = {reading.id: reading for reading in readings}
        awaited = [reading for reading in readings if self.is_new(reading) or self._pages[reading.id].notes.findings]
        if awaited:
            await self._go_on(left, awaited)
        while left and self._monotonic() >= self._due_s - AHEAD_S:
            await self._go_on(left, list(left.values()))

    async def _go_on(self, left: dict[int, Reading], choice: Sequence[Reading]) -> None:
        reading = self._next(choice)
        if await self._step(reading):
            del left[reading.id]

    def _next(self, readings: Sequence[Reading]) -> Reading:
        """What is new comes first. Else by turns the one that waits for longest, so that a large round comes to its
        end, and the one that has cost least, so that a small one does not wait for that."""
        self._oldest_next = not self._oldest_next

        def rank(reading: Reading) -> tuple[bool, float]:
            page = self._pages.get(reading.id)
            waits_since = page.at_ms if page else 0
            return not self.is_new(reading), waits_since if self._oldest_next else self._spent_s[reading.id]

        return min(readings, key=rank)

    async def _step(self, reading: Reading) -> bool:
        """True if there is nothing more to do for now."""
        began_cpu_s = time.process_time()
        times = FIRST_TIMES if self.is_new(reading) else 1
        walk = self._walks.get(reading.id)
        if walk is None or walk.reading.opening() != reading.opening():
            book = Book()
            walk = Walk(reading, book, compare_orders([reading], self._ledger, self._gate, book))
            self._walks[reading.id] = walk
        done = True
        try:
            done = await anext(walk.steps, _END) is _END
            if done:
                self._keep([walk.reading], await self._looked_at_twice([walk.reading], walk.book))
        except Exception as error:
            self._cut_short([reading], error)
        finally:
            if done:  # also when it was broken off: what has ended cannot go on
                del self._walks[reading.id]
        cost_s = time.process_time() - began_cpu_s
        self._spent_s[reading.id] += cost_s
        self._charge(cost_s / times)
        return done

    def _charge(self, cost_s: float, debt_s_max: float = math.inf) -> None:
        """What it costs is CPU, not the time that passes: on a busy machine most of that is waiting for others."""
        now_s = self._monotonic()
        self._due_s = max(self._due_s, min(max(self._due_s, now_s) + PARTS_OF_TIME * cost_s, now_s + debt_s_max))

    async def _book_of(self, readings: Sequence[Reading]) -> Book:
        book = Book()
        async for _ in compare_orders(readings, self._ledger, self._gate, book):
            pass
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
        await asyncio.sleep(BEFORE_SECOND_LOOK_S)
        second = await self._book_of(wrong)
        known = first.keys()
        for notes in second.pages():
            notes.only(known)
        return Book(first.rounds | second.rounds, first.lanes | second.lanes)

    def _keep(self, readings: Sequence[Reading], book: Book) -> None:
        for reading in readings:
            self._pages[reading.id] = Page(book.rounds[reading.id], reading.opening(), reading.after.now_ms)
        self._lanes.update(book.lanes)

    def _cut_short(self, readings: Sequence[Reading], error: Exception) -> None:
        """It is asked again at the next reading. A server that went away says so; what nobody has thought of must not
        pass for a comparison that found nothing."""
        away = isinstance(error, GateUnavailable | LedgerUnavailable)
        if not away:
            log.error("orders could not be compared", rounds=[reading.id for reading in readings], exc_info=error)
        for reading in readings:
            says = str(error) if away else f"round {reading.id} could not be compared ({error!r})"
            notes = Notes(unsure=[Unsure(ALL, says, reading.id)])
            self._pages[reading.id] = Page(notes, None, reading.after.now_ms, cut_short=True)

    def forget_others(self, readings: Sequence[Reading]) -> None:
        ids = {reading.id for reading in readings}
        lanes = set(lanes_of([reading.after for reading in readings]))
        for mine in (self._pages, self._walks, self._spent_s):
            for gone in mine.keys() - ids:
                del mine[gone]
        for lane in self._lanes.keys() - lanes:
            del self._lanes[lane]

    def known(self, readings: Sequence[Reading]) -> Notes:
        """What the last comparisons have come to, together, and which of these rounds are not among them."""
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
        """Since when all orders have been compared; 0 if some never were."""
        return min((self._pages[each.id].at_ms if each.id in self._pages else 0 for each in readings), default=0)
