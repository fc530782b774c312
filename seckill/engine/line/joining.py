"""Joining a line, leaving it, and looking up one's place. An entry is in the ledger before its buyer is told.
Requests that come while one transaction is under way go into the next one together. The same holds for looking: when
places are drawn, everyone looks."""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from seckill.domain.line import LineOrder
from seckill.domain.sale import Sale
from seckill.engine.batched_reads import BatchedReads
from seckill.engine.batches import Batches, Waiter
from seckill.engine.rounds.opening import Sync, bring_to_gate
from seckill.engine.sale_cache import SaleCache
from seckill.engine.shared_look import SharedAnswers
from seckill.errors import GateUnavailable, LedgerError, LedgerUnavailable
from seckill.ports.gate import OpeningGate
from seckill.ports.ledger import OpeningLedger
from seckill.ports.line import Joining, JoinLedger, LineDeskLedger, NoEntry, Standing
from seckill.telemetry import JOIN_BATCH, LINE_ENTRIES

log = structlog.get_logger()

# How many requests go into one transaction, which locks the line's row as long as it lasts.
BATCH_MAX = 500
# More waiting than this means seconds of delay; it is kinder to refuse at once.
WAITING_MAX = 20_000
ROUNDS_KNOWN_MAX = 10_000

Joined = Standing | NoEntry | LedgerError


class NotSoldOut(Exception):
    """The round is not sold out, so there is nothing to wait for: a buyer who presses now gets a unit."""


class _JoinBatches(Batches[Joining, Joined]):
    """The requests of one round on this node."""

    def __init__(self, ledger: JoinLedger, round_id: int) -> None:
        super().__init__(batch_max=BATCH_MAX, waiting_max=WAITING_MAX)
        self._ledger = ledger
        self._round_id = round_id

    def _too_many(self) -> Joined:
        return LedgerUnavailable("Too many people are joining at once, try again.")

    def _not_asked(self) -> Joined:
        return LedgerUnavailable("The ledger was not asked, try again.")

    async def _serve(self, batch: list[tuple[Joining, Waiter[Joined]]]) -> None:
        JOIN_BATCH.observe(len(batch))
        answers: Sequence[Joined]
        try:
            joined = await self._ledger.join(self._round_id, [joining for joining, _ in batch])
            answers = [joined] * len(batch) if isinstance(joined, NoEntry) else joined
            new = sum(1 for answer in answers if isinstance(answer, Standing) and answer.new)
            LINE_ENTRIES.labels("joined").inc(new)
            LINE_ENTRIES.labels("known").inc(len(answers) - new)
        except LedgerError as error:
            answers = [error] * len(batch)
            self._answer_all(error)  # those still in the queue have waited just as long
        except Exception:
            log.exception("entries could not be written", entries=len(batch))
            answers = [LedgerUnavailable("The entry could not be written, try again.")] * len(batch)
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)


class LineDesk:
    def __init__(self, lines: LineDeskLedger, ledger: OpeningLedger, gate: OpeningGate, sale_cache: SaleCache) -> None:
        self._lines = lines
        self._ledger = ledger
        self._gate = gate
        self._sale_cache = sale_cache
        self._batches: dict[int, _JoinBatches] = {}
        self._standings = BatchedReads(self._read)
        self._own = BatchedReads(self._read_own)
        # When a round sells out, everyone wants to join at the same moment: one request opens the line for all.
        self._opening = SharedAnswers[None]()
        self._opened: set[int] = set()  # rounds with a waiting list whose units the gate keeps for their lines

    async def join(self, sale: Sale, joining: Joining) -> Standing | NoEntry:
        """Raises NotSoldOut, LedgerError and GateError."""
        if not sale.door.line.has_line:
            return NoEntry.NO_LINE
        if not self.is_open(sale):
            await self._opening.of(sale.round.id, lambda: self._open(sale))
        waiting: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        self.submit(sale, joining, waiting)
        joined = await waiting
        if isinstance(joined, LedgerError):
            raise joined
        return joined

    def submit(self, sale: Sale, joining: Joining, waiting: Waiter[Joined]) -> None:
        """Like `join`, but without a task of its own. Only for a line that is open."""
        self._of_round(sale.round.id).submit(joining, waiting)

    def is_open(self, sale: Sale) -> bool:
        """Whether this process knows that the gate keeps the round's units for its line."""
        return sale.round.lined and (sale.door.line.draws or sale.round.id in self._opened)

    async def _open(self, sale: Sale) -> None:
        """Opens the line for the first buyer who waits for units that come back. From then on, and for good, the
        round's units belong to its line. The gate has to know this before there is an entry; otherwise a buyer who
        presses meanwhile would get a unit that comes back. If the ledger has it already, another process may have been
        killed before it told the gate."""
        assert sale.door.line.order is LineOrder.PRESS
        if not sale.round.lined:
            await self._require_sold_out(sale)
        opened = await self._lines.open_line(sale.id, sale.round.id)
        if opened is None or await bring_to_gate(opened.round, self._gate, self._ledger) is Sync.LOST:
            raise GateUnavailable("The gate does not have this round now.")
        self._sale_cache.put(opened)
        if len(self._opened) >= ROUNDS_KNOWN_MAX:
            self._opened.clear()
        self._opened.add(sale.round.id)

    async def _require_sold_out(self, sale: Sale) -> None:
        view = await self._gate.inspect(sale.round.ref)
        if view is None:
            raise GateUnavailable("The gate does not have this round now.")
        if view.available > 0:
            raise NotSoldOut

    def _of_round(self, round_id: int) -> _JoinBatches:
        batches = self._batches.get(round_id)
        if batches is None:
            for over in [each for each, known in self._batches.items() if known.idle]:
                del self._batches[over]
            batches = self._batches[round_id] = _JoinBatches(self._lines, round_id)
        return batches

    async def leave(self, entry_id: int, user: str) -> Standing | NoEntry:
        return await self._lines.leave(entry_id, user)

    async def remove(self, entry_id: int, reason: str) -> Standing | NoEntry:
        """Removes an entry for an operator."""
        return await self._lines.leave(entry_id, None, reason)

    async def find(self, entry_id: int, user: str) -> Standing | None:
        """Returns None if there is no such entry, and also if it is another buyer's."""
        found = await self._standings.of(entry_id)
        return found if found is not None and found.entry.user == user else None

    async def find_own(self, round_id: int, user: str) -> Standing | None:
        """For a page that does not know the entry's id, such as another browser of the same buyer. Everyone who is sent
        to a page at once asks this. Returns None if the buyer has not joined."""
        return await self._own.of((round_id, user))

    async def _read_own(self, asked: Sequence[tuple[int, str]]) -> Mapping[tuple[int, str], Standing]:
        found = await self._lines.standings_of(asked)
        return {(standing.entry.round_id, standing.entry.user): standing for standing in found}

    async def _read(self, entry_ids: Sequence[int]) -> Mapping[int, Standing]:
        return {standing.entry.id: standing for standing in await self._lines.standings(entry_ids)}
