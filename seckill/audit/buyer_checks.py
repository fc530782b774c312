"""Checks from the gate to the ledger: every buyer's record, and what became of the orders in it.

The record is read first, then the queue, then the ledger. An order only leaves the queue after the ledger has committed
it or set it aside. So an order that is not queued when the queue is read must be in the ledger afterwards.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from seckill.audit.gate import BuyerRecord, Entry, GateReader, GateRound, Held, Note, read_orders, read_record
from seckill.audit.item_checks import check_item_records, count_orders
from seckill.audit.lane_shares import ShareRef, all_past, all_records, lane_of
from seckill.audit.ledger import KnownLapses, LedgerReader, LedgerRound
from seckill.audit.report import Notes, finding_about

# The gate's clock says when a unit came back, and the ledger's when its order ended. The clocks may be this far apart.
CLOCKS_APART_MS = 60_000


@dataclass(slots=True)
class Census:
    """The sums of a round's records, and what is still to be explained."""

    admitted: int = 0
    released: int = 0
    past: int = 0  # units of orders that are over, found in `past`
    in_records: int = 0  # and found in the records, where an earlier version has left them
    not_written: dict[int, str] = field(default_factory=dict)  # order → user
    most: dict[str, int] = field(default_factory=dict)  # user → live units, for those above the limit that was known
    live_of: Counter[int] = field(default_factory=Counter)  # item → live units
    past_of: Counter[int] = field(default_factory=Counter)  # item → units of orders that are over


async def take_census(
    round_: LedgerRound, census: Census, ledger: LedgerReader, gate: GateReader, notes: Notes
) -> AsyncIterator[None]:
    async for share, portion in all_records(gate, round_):
        held: dict[str, list[Held]] = {}
        noted: dict[str, Note] = {}
        for user, text in portion.items():
            if share.lane != lane_of(round_, user):
                says = f"has a record in lane {share.lane}, but belongs to lane {lane_of(round_, user)}"
                notes.add(finding_about(round_, "buyers", "lane", says, user=user))
            record = read_record(share.lane, text)
            if record is None:
                notes.add(finding_about(round_, "buyers", "unreadable", "has a record that cannot be read", user=user))
                continue
            held[user] = record.orders
            if record.note is not None:
                noted[user] = record.note
            _count(round_, user, record, census, notes)
        await _compare(round_, ledger, held, census, notes)
        if round_.cool_down_s:
            await _check_lapses(round_, share, noted, ledger, gate, notes)
        notes.count("buyers", len(portion))
        yield
    async for share, portion in all_past(gate, round_):
        await _look_back(round_, share, portion, census, ledger, gate, notes)
        yield


async def _look_back(
    round_: LedgerRound,
    share: ShareRef,
    portion: dict[str, str],
    census: Census,
    ledger: LedgerReader,
    gate: GateReader,
    notes: Notes,
) -> None:
    """Reads orders that are over. They can only be found by their places, and are only looked for if the buyer's record
    says that there are some. The record is read after them; both were changed in one step."""
    held: dict[str, list[Held]] = {}
    for place, text in portion.items():
        user = place.partition(" ")[2]
        orders = read_orders(share.lane, text)
        if orders is None or any(order.live or order.place(user) != place for order in orders):
            says = "has an order that is over, but cannot be read or found again"
            notes.add(finding_about(round_, "buyers", "unreadable", says, user=user))
            continue
        held.setdefault(user, []).extend(orders)
        count_orders(orders, census.live_of, census.past_of)
        census.past += sum(order.quantity for order in orders)
    records = await gate.records(share, list(held))
    for user, orders in held.items():
        record = read_record(share.lane, records.get(user, ""))
        if record is None or record.note is None:
            says = "has orders that are over, but no record that says so"
            notes.add(finding_about(round_, "buyers", "note", says, user=user))
        elif {order.number for order in record.orders}.intersection(order.number for order in orders):
            notes.add(finding_about(round_, "buyers", "twice", "has an order twice in the gate", user=user))
    await _compare(round_, ledger, held, census, notes)


def _count(round_: LedgerRound, user: str, record: BuyerRecord, census: Census, notes: Notes) -> None:
    orders = record.orders
    if round_.items:
        count_orders(orders, census.live_of, census.past_of)
    live = over = 0
    for order in orders:
        if order.live:
            live += order.quantity
        else:
            over += order.quantity
    census.in_records += over
    over += record.note.units if record.note else 0
    census.admitted += live + over
    census.released += over
    if live > round_.limit_max:
        census.most[user] = live
    if len(orders) > 1 and len({order.number for order in orders}) != len(orders):
        notes.add(finding_about(round_, "buyers", "twice", "has an order twice in the gate", user=user))


async def _check_lapses(
    round_: LedgerRound, share: ShareRef, noted: dict[str, Note], ledger: LedgerReader, gate: GateReader, notes: Notes
) -> None:
    """Checks the notes about lapsed orders, which make their buyers wait. The ledger learns of a lapse's note only
    after the gate has written it, so no note may be behind the ledger when it is read again. Whether it is ahead can be
    told from the note alone: each lapse was an order of at least one unit. (A ledger that has gone back knows
    fewer.)"""
    known = await ledger.lapses(round_.id, list(noted)) if noted else {}
    wrong = {user for user, note in noted.items() if note.lapses > note.units}
    behind = [user for user in known if _is_behind(noted[user], known[user])]
    for user, text in (await gate.records(share, behind)).items():
        record = read_record(share.lane, text)
        if record is not None and record.note is not None and _is_behind(record.note, known[user]):
            wrong.add(user)
    for user in sorted(wrong):
        lapsed = known[user].lapsed if user in known else 0
        says = f"has {noted[user].lapses} lapsed orders at {noted[user].lapsed_ms} in the gate, {lapsed} in the ledger"
        notes.add(finding_about(round_, "buyers", "note", says, user=user))


def _is_behind(note: Note, known: KnownLapses) -> bool:
    return note.lapses < known.lapsed or note.lapsed_ms < known.last_ms - CLOCKS_APART_MS


async def _compare(
    round_: LedgerRound, ledger: LedgerReader, held: dict[str, list[Held]], census: Census, notes: Notes
) -> None:
    states = await ledger.states([order.number for orders in held.values() for order in orders])
    for user, orders in held.items():
        for order in orders:
            state, holds = states.get(order.number, (None, True))
            if not order.live and holds:
                known = "does not know the order" if state is None else f"has it as {state}"
                says = f"was given back in the gate, but the ledger {known}"
                notes.add(finding_about(round_, "give_back", "undecided", says, user=user, number=order.number))
            elif state is None:
                census.not_written[order.number] = user


def check_sums(before: GateRound, census: Census, after: GateRound, round_: LedgerRound, notes: Notes) -> None:
    """Compares the sums with the counters. Records only grow and orders in them only end, so the sums lie between the
    counters before and after the scan."""
    for name in ("admitted", "released"):
        low, high, found = getattr(before, name), getattr(after, name), getattr(census, name)
        if not low <= found <= high:
            counted = str(low) if low == high else f"{low} to {high}"
            says = f"the buyers' records add up to {found} units {name}, the gate counts {counted}"
            notes.add(finding_about(round_, "buyers", name, says))
    low, high = before.released - census.in_records, after.released
    if not low <= census.past <= high:
        says = f"the orders that are over have {census.past} units, the gate has taken back {high}"
        notes.add(finding_about(round_, "buyers", "past", says))
    check_item_records(before, census.live_of, census.past_of, after, round_, notes)
    for user, units in census.most.items():
        if units > round_.limit_max:  # the present limit: it may have been raised since
            says = f"holds {units} units in the gate, the limit is {round_.limit_max}"
            notes.add(finding_about(round_, "limit", "gate", says, user=user))


def check_entry(round_: LedgerRound, entry: Entry, order: Held | None, notes: Notes) -> None:
    """Compares an entry with the gate's order, which was read later; both were made in one step."""
    if order is not None and (order.quantity, order.slot, order.request_id, order.item) == (
        entry.quantity,
        entry.slot,
        entry.request_id,
        entry.item,
    ):
        return
    what = "the gate never admitted it" if order is None else "the gate has admitted another content"
    says = f"is queued as entry {entry.entry_id}, but {what}"
    notes.add(finding_about(round_, "queue", "entry", says, user=entry.user, number=entry.number))
