"""When the orders of which round are compared, and what is known from the last time.

At once, whatever it costs: `at_once`. Otherwise a little at a time, so that it takes a hundredth of one core's time and
never much in one piece: `go_on`. A page is replaced when the comparison of its round is complete.

Whatever looks wrong is read a second time, and counts only if it is still so.
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

# Comparing orders one by one takes one part in this many of the time.
PARTS_OF_TIME = 100
# What has never been compared may take this many times that share: until then nothing can be said of it.
FIRST_TIMES = 5
# A round that is new and has no more orders than this is compared at once: a sale that begins must not wait for its
# first verdict.
FEW = 500
# How much of its time a comparison in small steps may take in advance. Mostly that is enough for all of it.
AHEAD_S = 5.0
# Time spent at once, on a suspicion, is made up for during this long at most: other rounds wait meanwhile.
DEBT_S_MAX = 60.0
# What was compared so lately, and looked right, is not compared again in small steps: a sale with few orders would be
# all the time.
REST_S = 5.0

_END = object()


@dataclass(frozen=True, slots=True)
class Page:
    """What the last comparison of a round has come to."""

    notes: Notes
    opening: tuple[int, int] | None
    at_ms: int
    at_s: float
    cut_short: bool = False  # a server went away in the middle


@dataclass(frozen=True, slots=True)
class Walk:
    """A comparison that is under way."""

    reading: Reading
    book: Book
    steps: AsyncIterator[None]
    standing: int


def _size(reading: Reading) -> int:
    """How many orders there are to compare, roughly."""
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
            else:  # one of them is to blame, and the others can be compared
                for reading in readings:
                    await self.at_once([reading], debt_s_max)
        self._charge(time.process_time() - began_cpu_s, debt_s_max)

    async def go_on(self, readings: Sequence[Reading]) -> None:
        """As far as the time allows, and with each round once at most. One of those that people wait for goes on
        whatever was spent before: what is new, and what looked wrong the last time."""
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
        """What is new comes first. Otherwise, by turns, the one that has waited longest, so that a large round comes to
        its end, and of the others the one that has cost least, so that a small one does not wait for that. A large one
        that was begun goes on before another is begun: each holds a part of its orders in memory until its end."""

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
        """True if there is nothing more to do for now."""
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
            if done:  # also when it was broken off: what has ended cannot go on
                del self._walks[reading.id]
        cost_s = time.process_time() - began_cpu_s
        self._spent_s[reading.id] += cost_s
        self._charge(cost_s / times)
        return done

    def _charge(self, cost_s: float, debt_s_max: float = math.inf) -> None:
        """The cost is CPU time, not elapsed time: on a busy machine most of that is waiting for others."""
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
        """It is asked again at the next reading. A server that went away says so; an unforeseen error must not pass for
        a comparison that found nothing."""
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
