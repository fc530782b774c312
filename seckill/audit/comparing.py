"""The orders one by one, both ways, for several rounds. Bounded in memory by what is in flight and by who bought."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from seckill.audit.buyers import Census, check_entry, check_sums, take_census
from seckill.audit.counting import Reading
from seckill.audit.gate import Entry, GateReader, GateRound
from seckill.audit.ledger import LedgerReader, LedgerRound
from seckill.audit.orders import audit_orders
from seckill.audit.report import OF_GATE, Finding, Notes, Unsure
from seckill.audit.shares import lanes_of, read_rounds, records_of

# What the comparison says about a round is worth nothing if the gate was rebuilt meanwhile.
_WITH_GATE = (*OF_GATE, "limit", "orders", "releases")


async def compare_orders(
    readings: Sequence[Reading],
    ledger: LedgerReader,
    gate: GateReader,
    read_again: Callable[[], Awaitable[Sequence[Reading]]],
    notes: Notes,
) -> None:
    comparable = {reading.id: reading for reading in readings if reading.why_not() is None}
    censuses: dict[int, Census] = {}
    for reading in readings:
        if reading.id not in comparable:
            await audit_orders(reading.after, ledger, None, notes)
            if not reading.gone_in_order():
                notes.unsure.append(Unsure(_WITH_GATE, str(reading.why_not()), reading.id))
            continue
        await audit_orders(reading.after, ledger, gate, notes)
        censuses[reading.id] = await _census(reading, ledger, gate, notes)
    await _check_queues(list(comparable.values()), censuses, ledger, gate, notes)
    await _check_ledger([reading.id for reading in readings], ledger, notes)
    later = {reading.id: reading for reading in await read_again()}
    for round_id, reading in comparable.items():
        if round_id not in later or not reading.same_opening(later[round_id]):
            notes.without_round(round_id, _WITH_GATE)
            notes.unsure.append(Unsure(_WITH_GATE, f"round {round_id} was rebuilt while it was read", round_id))


async def _census(reading: Reading, ledger: LedgerReader, gate: GateReader, notes: Notes) -> Census:
    round_ = reading.after
    [(before, _)] = await read_rounds(gate, [round_])
    census = await take_census(round_, ledger, gate, notes)
    [(after, _)] = await read_rounds(gate, [round_])
    newest = (await ledger.rounds([round_.id])).get(round_.id, round_)
    if isinstance(before, GateRound) and isinstance(after, GateRound):
        check_sums(before, census, after, newest, notes)
    return census


async def _check_queues(
    readings: Sequence[Reading], censuses: dict[int, Census], ledger: LedgerReader, gate: GateReader, notes: Notes
) -> None:
    rounds = {reading.id: reading.after for reading in readings}
    queued: set[int] = set()
    for lane in lanes_of(list(rounds.values())):
        async for portion in gate.entries(lane):
            notes.count("entries", len(portion))
            queued |= {entry.number for entry in portion if entry.number is not None}
            await _check_entries(lane, portion, rounds, gate, notes)
    for round_id, census in censuses.items():
        await _find_lost(rounds[round_id], census.not_written, queued, ledger, notes)


async def _check_entries(
    lane: int, portion: Sequence[Entry], rounds: dict[int, LedgerRound], gate: GateReader, notes: Notes
) -> None:
    by_round: dict[int, list[Entry]] = {}
    for entry in portion:
        if entry.number is None:
            says = f"entry {entry.entry_id} of lane {lane} cannot be read"
            notes.add(Finding(invariant="queue", kind=f"unreadable {entry.entry_id}", says=says))
        elif entry.round_id in rounds and entry.epoch == rounds[entry.round_id].epoch:
            by_round.setdefault(entry.round_id, []).append(entry)
    for round_id, entries in by_round.items():
        round_ = rounds[round_id]
        records = await records_of(gate, round_, [entry.user for entry in entries])
        for entry in entries:
            check_entry(round_, entry, records.get(entry.user, ""), notes)


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


async def _check_ledger(ids: Sequence[int], ledger: LedgerReader, notes: Notes) -> None:
    """What one statement can say about all orders of a round."""
    for sums in await ledger.sums(ids):
        finding = partial(Finding, invariant="counters", round_id=sums.id, sale_id=sums.sale_id)
        if sums.sold != sums.live_units:
            says = f"the ledger counts {sums.sold} units sold, its live orders have {sums.live_units}"
            notes.add(finding(kind="sold", says=says))
        if sums.written != sums.written_units:
            says = f"the ledger counts {sums.written} units written, its orders have {sums.written_units}"
            notes.add(finding(kind="written", says=says))
    for row in await ledger.above_limit(ids):
        notes.add(
            Finding(
                invariant="limit",
                kind="ledger",
                says=f"holds {row.units} units in the ledger, more than the limit",
                round_id=row.round_id,
                sale_id=row.sale_id,
                user=row.user_id,
            )
        )
    for row in await ledger.releases_without_order(ids):
        says = "has a release, but no row in the ledger"
        notes.add(Finding(invariant="releases", kind="no_order", says=says, round_id=row.round_id, number=row.order_id))
