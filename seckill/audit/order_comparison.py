"""Compares the orders of several rounds one by one, in both directions. Memory is bounded by the orders in flight and
the number of buyers.

Every portion is consistent in itself, and results from several portions are true however long it takes: records only
grow, and an entry only leaves the queue after a commit. So there may be pauses between portions.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from seckill.audit.buyer_checks import Census, check_entry, check_sums, take_census
from seckill.audit.counter_checks import Reading
from seckill.audit.gate import Entry, GateReader, GateRound, Held
from seckill.audit.invariants import OF_GATE
from seckill.audit.item_checks import check_item_rows
from seckill.audit.lane_shares import lanes_of, orders_of, read_rounds
from seckill.audit.ledger import LedgerReader, LedgerRound
from seckill.audit.order_checks import audit_orders
from seckill.audit.report import Finding, Notes, Unsure, finding_about

# The invariants whose comparison is void if the gate was rebuilt meanwhile.
_WITH_GATE = (*OF_GATE, "limit", "orders", "releases")


@dataclass(frozen=True, slots=True)
class Book:
    """A page for each round, and one for each lane of the queue."""

    rounds: dict[int, Notes] = field(default_factory=dict)
    lanes: dict[int, Notes] = field(default_factory=dict)

    def keys(self) -> set[tuple[object, ...]]:
        return set().union(*(notes.keys() for notes in self.pages()))

    def pages(self) -> Iterable[Notes]:
        return (*self.rounds.values(), *self.lanes.values())


async def compare_orders(
    readings: Sequence[Reading], ledger: LedgerReader, gate: GateReader, book: Book
) -> AsyncIterator[None]:
    """Writes into the book and pauses after every portion. The book is not reliable before the end."""
    book.rounds.update({reading.id: Notes() for reading in readings})
    comparable = {reading.id: reading for reading in readings if reading.why_not() is None}
    censuses: dict[int, Census] = {}
    for reading in readings:
        notes = book.rounds[reading.id]
        if reading.id not in comparable:
            async for _ in audit_orders(reading.after, ledger, None, notes):
                yield
            if not reading.gone_in_order():
                notes.unsure.append(Unsure(_WITH_GATE, str(reading.why_not()), reading.id))
            continue
        async for _ in audit_orders(reading.after, ledger, gate, notes):
            yield
        censuses[reading.id] = census = Census()
        async for _ in _count_buyers(reading.after, census, ledger, gate, notes):
            yield
    rounds = {round_id: reading.after for round_id, reading in comparable.items()}
    async for _ in _check_queues(rounds, censuses, ledger, gate, book):
        yield
    await _check_ledger([reading.id for reading in readings], ledger, book)
    await _check_codes([reading.after for reading in readings if reading.after.gives_codes], ledger, book)
    for reading, (later, _) in zip(comparable.values(), await read_rounds(gate, list(rounds.values())), strict=True):
        if not reading.same_opening(later):
            notes = book.rounds[reading.id]
            notes.without(_WITH_GATE)
            notes.unsure.append(Unsure(_WITH_GATE, f"round {reading.id} was rebuilt while it was read", reading.id))


async def _count_buyers(
    round_: LedgerRound, census: Census, ledger: LedgerReader, gate: GateReader, notes: Notes
) -> AsyncIterator[None]:
    [(before, _)] = await read_rounds(gate, [round_])
    async for _ in take_census(round_, census, ledger, gate, notes):
        yield
    [(after, _)] = await read_rounds(gate, [round_])
    newest = (await ledger.rounds([round_.id])).get(round_.id, round_)
    if isinstance(before, GateRound) and isinstance(after, GateRound):
        check_sums(before, census, after, newest, notes)


async def _check_queues(
    rounds: dict[int, LedgerRound], censuses: dict[int, Census], ledger: LedgerReader, gate: GateReader, book: Book
) -> AsyncIterator[None]:
    queued: set[int] = set()
    for lane in lanes_of(list(rounds.values())):
        book.lanes[lane] = notes = Notes()
        async for portion in gate.entries(lane):
            notes.count("entries", len(portion))
            queued |= {entry.number for entry in portion if entry.number is not None}
            await _check_entries(lane, portion, rounds, gate, book)
            yield
    for round_id, census in censuses.items():
        await _find_lost(rounds[round_id], census.not_written, queued, ledger, book.rounds[round_id])


async def _check_entries(
    lane: int, portion: Sequence[Entry], rounds: dict[int, LedgerRound], gate: GateReader, book: Book
) -> None:
    by_round: dict[int, list[Entry]] = {}
    for entry in portion:
        if entry.number is None:
            says = f"entry {entry.entry_id} of lane {lane} cannot be read"
            book.lanes[lane].add(Finding(invariant="queue", kind=f"unreadable {entry.entry_id}", says=says))
        elif entry.round_id in rounds and entry.epoch == rounds[entry.round_id].epoch:
            by_round.setdefault(entry.round_id, []).append(entry)
    for round_id, entries in by_round.items():
        round_ = rounds[round_id]
        wanted: dict[str, list[Held]] = {}
        for entry in entries:
            wanted.setdefault(entry.user, []).append(entry.held())
        held = await orders_of(gate, round_, wanted)
        for entry in entries:
            check_entry(round_, entry, held[entry.user].get(entry.number or 0), book.rounds[round_id])


async def _find_lost(
    round_: LedgerRound, candidates: dict[int, str], queued: set[int], ledger: LedgerReader, notes: Notes
) -> None:
    missing = [number for number in candidates if number not in queued]
    if not missing:
        return
    known = set(await ledger.states(missing)) | await ledger.set_aside(missing)
    lost = [number for number in missing if number not in known]
    once_there = await ledger.with_history(lost)
    for number in lost:
        finding = partial(
            Finding,
            invariant="lost",
            round_id=round_.id,
            sale_id=round_.sale_id,
            number=number,
            user=candidates[number],
        )
        if number in once_there:
            notes.add(finding(kind="row_gone", says="has a history in the ledger, but its row is gone"))
        else:
            notes.add(finding(kind="nowhere", says="was admitted, but is neither queued nor set aside nor written"))


async def _check_ledger(ids: Sequence[int], ledger: LedgerReader, book: Book) -> None:
    """Checks what one statement can tell about all orders of a round."""
    for sums in await ledger.sums(ids):
        finding = partial(finding_about, sums, "counters")
        if sums.sold != sums.live_units:
            says = f"the ledger counts {sums.sold} units sold, its live orders have {sums.live_units}"
            book.rounds[sums.id].add(finding("sold", says))
        if sums.written != sums.written_units:
            says = f"the ledger counts {sums.written} units written, its orders have {sums.written_units}"
            book.rounds[sums.id].add(finding("written", says))
    for of_items in await ledger.item_sums(ids):
        check_item_rows(of_items, book.rounds[of_items.id])
    for row in await ledger.above_limit(ids):
        says = f"holds {row.units} units in the ledger, more than the limit"
        book.rounds[row.round_id].add(_above_limit(row, "ledger", says))
    for row in await ledger.above_shared_limit(ids):
        says = f"holds {row.units} units in the ledger together with what shares the limit, more than it"
        # The named round may not have been read this time.
        book.rounds.get(row.round_id, book.rounds[ids[0]]).add(_above_limit(row, "shared", says))
    for row in await ledger.releases_without_order(ids):
        says = "has a release, but no row in the ledger"
        book.rounds[row.round_id].add(
            Finding(invariant="releases", kind="no_order", says=says, round_id=row.round_id, number=row.order_id)
        )


def _above_limit(row: Any, kind: str, says: str) -> Finding:
    about = {"round_id": row.round_id, "sale_id": row.sale_id, "user": row.user_id}
    return Finding(invariant="limit", kind=kind, says=says, **about)


async def _check_codes(rounds: Sequence[LedgerRound], ledger: LedgerReader, book: Book) -> None:
    """Checks codes for a sale as a whole: a code may name an order that does not exist."""
    if not rounds:
        return
    newest = {round_.sale_id: round_ for round_ in rounds}
    for sums in await ledger.code_sums([round_.id for round_ in rounds]):
        round_ = newest[sums.sale_id]
        if sums.given != sums.paid:
            says = (
                f"the sale has given {sums.given} codes that are not void, and its paid orders have {sums.paid} units"
            )
            book.rounds[round_.id].add(finding_about(round_, "vouchers", "sum", says))
        if sums.missing:
            says = f"the sale lacks {sums.missing} codes for units that may still be paid for"
            book.rounds[round_.id].add(finding_about(round_, "vouchers", "too_few", says))
