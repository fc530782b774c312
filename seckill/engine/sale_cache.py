"""What an API node keeps in memory: the sales, the gate's clock, and each open round's pulse.

With it the node can refuse without asking any server: for an unknown sale, a sale that begins in ten minutes, or a
round that is sold out. Everything here may be a moment old, so it only serves refusals that the delay cannot make
wrong.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from seckill.domain.current_round import AFTERGLOW_MS, current
from seckill.domain.item import Item
from seckill.domain.public_id import PublicIds
from seckill.domain.sale import Round, RoundRef, RoundStatus, Sale
from seckill.engine.shared_look import SharedLook
from seckill.ports.gate import Pulse, PulseGate
from seckill.ports.ledger import CatalogueLedger
from seckill.telemetry import CLOCK_OFFSET

# Sales are numbered from 1. A number above this cannot have been issued, so no random id ever causes a query.
SALE_NUMBER_MAX = 1 << 31
# Knowledge older than this must not decide anything.
FRESH_S = 1.0
SALES_FRESH_S = 2.0
# A sale that was seen hidden within this time counts as hidden, so that no one can make us ask again and again.
HIDDEN_SEEN_S = 0.05
# How long before and after its window a round is watched. Before it, so that a round which the gate has lost is rebuilt
# in time.
WATCH_BEFORE_MS = 30_000
WATCH_AFTER_MS = 5_000
# How long after its end a round may still have orders that no worker has written.
RECENT_MS = 24 * 3600 * 1000
# How many of a sale's newest rounds are kept in memory: those to come, the current one, and earlier ones that may still
# have orders on the way. A sale that repeats for years needs no more memory than this.
ROUNDS_KEPT = 16


class SaleCache:
    def __init__(
        self,
        ledger: CatalogueLedger,
        gate: PulseGate,
        sale_ids: PublicIds,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._gate = gate
        self._sale_ids = sale_ids
        self._monotonic = monotonic
        self._sales: dict[int, tuple[Sale, ...]] = {}  # each sale once for each of its rounds, in their order
        self._sale_of_round: dict[int, Sale] = {}
        self._public_ids: dict[int, str] = {}
        self._sales_read_s: float | None = None
        # Keyed by the id as we spell it, so that no claim has to be deciphered. Only published sales, so that no claim
        # has to check.
        self._by_public_id: dict[str, int] = {}
        self._version = 0
        self.news = 0  # grows with every change that is learnt, and whenever the gate's clock is looked for
        # A crowd that knows of a sale before we do causes one query, not one each.
        self.look_again = SharedLook(self.refresh_sales)
        self._taken: Counter[int] = Counter()  # lane → rounds that are being made there
        self._pulses: dict[int, Pulse] = {}
        self._without_pulse: Sequence[Round] = ()
        self._gate_ms: tuple[int, float] | None = None  # the gate's time, and ours when we read it

    async def refresh_sales(self) -> int:
        """Reads the sales. Returns how many are new or changed."""
        began_s = self._monotonic()
        sales = await self._ledger.sales(changed_after=self._version, rounds_max=ROUNDS_KEPT)
        for sale in sales:
            self.put(sale)
            self._version = max(self._version, sale.changed)
        self._sales_read_s = began_s
        return len(sales)

    def put(self, sale: Sale) -> None:
        known = self._sale_of_round.get(sale.round.id)
        if known is not None and known.changed > sale.changed:
            return
        others = [other for other in self._sales.get(sale.id, ()) if other.round.id != sale.round.id]
        if others and others[0].changed > sale.changed:
            sale = replace(others[0], round=sale.round)
        # The sale's own facts are the same in all its rounds.
        rounds = [sale, *(replace(sale, round=other.round) for other in others)]
        rounds.sort(key=lambda each: each.round.ordinal)
        for forgotten in rounds[:-ROUNDS_KEPT]:
            self._sale_of_round.pop(forgotten.round.id, None)
        self.news += 1
        self._sales[sale.id] = tuple(rounds[-ROUNDS_KEPT:])
        self._sale_of_round |= {each.round.id: each for each in self._sales[sale.id]}
        public_id = self._public_ids.setdefault(sale.id, self._sale_ids.encode(sale.id))
        if sale.published:
            self._by_public_id[public_id] = sale.id
        else:
            self._by_public_id.pop(public_id, None)

    async def refresh_pulses(self) -> dict[int, Pulse]:
        """Reads the gate's clock and the rounds that are on or about to begin. A round that the gate has lost has no
        pulse."""
        if self._gate_ms is None:
            await self._read_pulses([])  # the gate's clock decides which rounds are on
        return await self._read_pulses(self.watched())

    async def _read_pulses(self, rounds: Sequence[Round]) -> dict[int, Pulse]:
        before_s = self._monotonic()
        try:
            now_ms, pulses = await self._gate.pulses([round_.ref for round_ in rounds])
        finally:
            self.news += 1  # also without an answer: time has passed, and another round may be the current one
        self._gate_ms = (now_ms, before_s)
        CLOCK_OFFSET.labels("gate").set(now_ms / 1000 - time.time())
        self._pulses = {round_.id: pulse for round_, pulse in zip(rounds, pulses, strict=True) if pulse is not None}
        self._without_pulse = [round_ for round_ in rounds if round_.id not in self._pulses]
        return self._pulses

    def without_pulse(self) -> Sequence[Round]:
        """Returns the rounds that should be in the gate but were not when we last looked."""
        return self._without_pulse

    def watched(self) -> list[Round]:
        return [] if self._gate_ms is None else [round_ for round_ in self._rounds() if self.is_watched(round_)]

    def is_watched(self, round_: Round) -> bool:
        """Whether the keeper would rebuild the round within seconds if the gate lost it."""
        return (
            round_.status is not RoundStatus.CLOSED
            and round_.retired_ms is None
            and round_.opens_ms - WATCH_BEFORE_MS <= self.now_ms() < round_.ends_ms + WATCH_AFTER_MS
        )

    def over(self) -> list[Round]:
        """Returns the rounds that are no longer watched but not retired yet: some of their orders may still end."""
        if self._gate_ms is None:
            return []
        now_ms = self.now_ms()
        return [
            round_
            for round_ in self._rounds()
            if round_.retired_ms is None
            and (round_.status is RoundStatus.CLOSED or round_.ends_ms + WATCH_AFTER_MS <= now_ms)
        ]

    def _rounds(self) -> Iterator[Round]:
        return (sale.round for rounds in self._sales.values() for sale in rounds)

    def now_ms(self) -> int:
        """The gate's time, carried on by a clock that cannot be set. Before the first reading, our own time."""
        if self._gate_ms is None:
            return int(time.time() * 1000)
        then_ms, at_s = self._gate_ms
        return then_ms + int((self._monotonic() - at_s) * 1000)

    async def gate_time_ms(self) -> int:
        """The gate's time. The gate is asked if the last reading is not fresh."""
        if not self.is_fresh():
            await self.refresh_pulses()
        return self.now_ms()

    def is_fresh(self) -> bool:
        return self._gate_ms is not None and self._monotonic() - self._gate_ms[1] < FRESH_S

    def knows_sales(self) -> bool:
        """Whether the sales known here are at most a moment behind the ledger: a window may have been moved."""
        return self._sales_read_s is not None and self._monotonic() - self._sales_read_s < SALES_FRESH_S

    async def look_first(self) -> None:
        """Reads the sales if this process has never read them: it must not say that there are none. Raises
        LedgerError."""
        if self._sales_read_s is None:
            await self.look_again()

    def public_id(self, sale: Sale) -> str:
        return self._public_ids[sale.id]

    def pulse(self, round_id: int) -> Pulse | None:
        return self._pulses.get(round_id)

    def sold_out(self, sale: Sale) -> bool:
        pulse = self._pulses.get(sale.round.id)
        return pulse is not None and pulse.available == 0

    def sales(self) -> list[Sale]:
        """Returns each sale with its current round, in the order of their windows."""
        now_ms = self.now_ms()
        found = [current(rounds, now_ms) for rounds in self._sales.values()]
        return sorted(found, key=lambda sale: (sale.round.begins_ms, sale.id))

    def newest(self) -> list[Sale]:
        """Returns each sale with the last round that has been made."""
        return [rounds[-1] for rounds in self._sales.values()]

    def known(self, public_id: str) -> Sale | None:
        """Returns a published sale that was found before, by its id as we spell it, with its current round."""
        number = self._by_public_id.get(public_id)
        if number is None:
            return None
        rounds = self._sales[number]
        return rounds[0] if len(rounds) == 1 else current(rounds, self.now_ms())

    async def find(self, public_id: str) -> Sale | None:
        """Returns the sale with its current round, if buyers may know of it."""
        if (known := self.known(public_id)) is not None:
            return known
        sale = await self.find_any(public_id)
        if sale is not None and not sale.published and self._has_not_just_looked():  # it may have been published since
            await self.look_again()
            sale = await self.find_any(public_id)
        return sale if sale is not None and sale.published else None

    def _has_not_just_looked(self) -> bool:
        return self._sales_read_s is None or self._monotonic() - self._sales_read_s > HIDDEN_SEEN_S

    async def find_any(self, public_id: str) -> Sale | None:
        """Returns the sale with its current round, hidden or not, even if another node created it a moment ago. An id
        that was never issued costs no query, as no one can make up a valid one without the key."""
        number = self._sale_ids.decode(public_id)
        if number is None or not 0 < number < SALE_NUMBER_MAX:
            return None
        if number not in self._sales:
            await self.look_again()
        rounds = self._sales.get(number)
        return None if rounds is None else current(rounds, self.now_ms())

    def before(self, sale: Sale) -> Sale | None:
        """Returns the same sale with the previous round, if that ended so lately that a claim may still mean it."""
        if len(self._sales.get(sale.id, ())) <= 1:
            return None
        earlier = self._beside(sale, -1)
        return earlier if earlier and self.now_ms() < earlier.round.ends_ms + AFTERGLOW_MS else None

    def following(self, sale: Sale) -> Sale | None:
        return self._beside(sale, +1)

    def _beside(self, sale: Sale, step: int) -> Sale | None:
        rounds = self._sales.get(sale.id, ())
        ordinal = sale.round.ordinal + step
        return next((each for each in rounds if each.round.ordinal == ordinal), None)

    def sale(self, sale_id: int) -> Sale | None:
        """Returns the sale with any of its rounds."""
        rounds = self._sales.get(sale_id)
        return None if rounds is None else rounds[-1]

    def sale_of_round(self, round_id: int) -> Sale | None:
        return self._sale_of_round.get(round_id)

    def item(self, sale_id: int, item_id: int) -> Item | None:
        """Returns an item of a sale that is known here."""
        rounds = self._sales.get(sale_id)
        return rounds[-1].item(item_id) if rounds else None

    async def sale_of_item(self, item_id: int) -> Sale | None:
        """Finds an item's sale, even one that another node has announced a moment ago."""
        for look in (None, self.look_again):
            if look is not None:
                await look()
            for sale in self.newest():
                if sale.item(item_id) is not None:
                    return sale
        return None

    async def know(self, sale_ids: Collection[int]) -> None:
        """Makes sure that these sales are known, even those that another node has announced a moment ago."""
        if any(sale_id not in self._sales for sale_id in sale_ids):
            await self.look_again()

    def recent(self) -> list[Round]:
        """Returns the rounds whose orders may not all be in the ledger yet."""
        now_ms = self.now_ms()
        return [
            round_
            for round_ in self._rounds()
            if round_.retired_ms is None and round_.opens_ms <= now_ms < round_.ends_ms + RECENT_MS
        ]

    def recent_rounds(self, lane: int | None = None) -> Sequence[RoundRef]:
        """Returns the rounds of one lane, or of all, whose orders may not all be in the ledger yet."""
        now_ms = self.now_ms()
        return [
            round_.ref
            for round_ in self._rounds()
            if (lane is None or lane in round_.every_lane) and round_.opens_ms <= now_ms < round_.ends_ms + RECENT_MS
        ]

    def rounds_in(self, lane: int) -> list[Round]:
        return [round_ for round_ in self._rounds() if lane in round_.every_lane]

    def lanes(self) -> set[int]:
        return {lane for round_ in self._rounds() for lane in round_.every_lane}

    @contextmanager
    def lane_for_new_round(self, lanes: int, width: int = 1) -> Iterator[int]:
        """Yields the quietest lane, which counts as taken until the round is known here, so that other rounds made at
        the same moment go elsewhere."""
        first = self.quietest_lane(lanes, width)
        taken = range(first, first + width)
        self._taken.update(taken)
        try:
            yield first
        finally:
            self._taken.subtract(taken)

    def quietest_lane(self, lanes: int, width: int = 1) -> int:
        """Returns the first of the `width` adjacent lanes with the fewest current or future rounds, so that load
        spreads."""
        now_ms = self.now_ms()
        rounds = Counter(lane for round_ in self._rounds() if now_ms < round_.ends_ms for lane in round_.every_lane)
        rounds += self._taken
        first_lanes = range(max(lanes - width, 0) + 1)
        return min(first_lanes, key=lambda first: (sum(rounds[lane] for lane in range(first, first + width)), first))
