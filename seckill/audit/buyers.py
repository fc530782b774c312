"""From the gate to the ledger: every buyer's record, and what became of the orders in it.

A record is read first, then the queue, then the ledger. An order leaves the queue only after the ledger has committed
it or set it aside. So what is not in the queue when that is read must be in the ledger afterwards.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from seckill.audit.gate import Entry, GateReader, GateRound, Held, read_record
from seckill.audit.ledger import LIVE, LedgerReader, LedgerRound
from seckill.audit.report import Finding, Notes
from seckill.audit.shares import all_records, lane_of


@dataclass(slots=True)
class Census:
    """What the records of a round add up to, and what is still to be explained."""

    admitted: int = 0
    released: int = 0
    not_written: dict[int, str] = field(default_factory=dict)  # order → user
    most: dict[str, int] = field(default_factory=dict)  # user → live units, of those above the limit we knew of


async def take_census(
    round_: LedgerRound, census: Census, ledger: LedgerReader, gate: GateReader, notes: Notes
) -> AsyncIterator[None]:
    async for lane, portion in all_records(gate, round_):
        held: dict[str, list[Held]] = {}
        for user, record in portion.items():
            if lane != lane_of(round_, user):
                says = f"has a record in lane {lane}, but belongs to lane {lane_of(round_, user)}"
                notes.add(_finding(round_, "buyers", "lane", says, user=user))
            orders = read_record(lane, record)
            if orders is None:
                notes.add(_finding(round_, "buyers", "unreadable", "has a record that cannot be read", user=user))
                continue
            held[user] = orders
            _count(round_, user, orders, census, notes)
        await _compare(round_, ledger, held, census, notes)
        notes.count("buyers", len(portion))
        yield


def _count(round_: LedgerRound, user: str, orders: Sequence[Held], census: Census, notes: Notes) -> None:
    live = over = 0
    for order in orders:
        if order.live:
            live += order.quantity
        else:
            over += order.quantity
    census.admitted += live + over
    census.released += over
    if live > round_.limit_max:
        census.most[user] = live
    if len(orders) > 1 and len({order.number for order in orders}) != len(orders):
        notes.add(_finding(round_, "buyers", "twice", "has an order twice in the gate", user=user))


async def _compare(
    round_: LedgerRound, ledger: LedgerReader, held: dict[str, list[Held]], census: Census, notes: Notes
) -> None:
    states = await ledger.states([order.number for orders in held.values() for order in orders])
    for user, orders in held.items():
        for order in orders:
            state = states.get(order.number)
            if not order.live and (state is None or state in LIVE):
                known = "does not know the order" if state is None else f"has it as {state}"
                says = f"was given back in the gate, but the ledger {known}"
                notes.add(_finding(round_, "give_back", "undecided", says, user=user, number=order.number))
            elif state is None:
                census.not_written[order.number] = user


def check_sums(before: GateRound, census: Census, after: GateRound, round_: LedgerRound, notes: Notes) -> None:
    """Records only grow and orders in them only end, so the sums lie between the counters before and after the scan."""
    for name in ("admitted", "released"):
        low, high, found = getattr(before, name), getattr(after, name), getattr(census, name)
        if not low <= found <= high:
            counted = str(low) if low == high else f"{low} to {high}"
            says = f"the buyers' records add up to {found} units {name}, the gate counts {counted}"
            notes.add(_finding(round_, "buyers", name, says))
    for user, units in census.most.items():
        if units > round_.limit_max:  # as it is now: it may have been raised since
            says = f"holds {units} units in the gate, the limit is {round_.limit_max}"
            notes.add(_finding(round_, "limit", "gate", says, user=user))


def check_entry(round_: LedgerRound, entry: Entry, record: str, notes: Notes) -> None:
    """The record was read after the entry, and both were made in one step."""
    lane = lane_of(round_, entry.user)
    held = {order.number: order for order in read_record(lane, record) or ()} if record else {}
    order = held.get(entry.number or 0)
    if order is not None and (order.quantity, order.slot, order.request_id) == (
        entry.quantity,
        entry.slot,
        entry.request_id,
    ):
        return
    what = "the gate never admitted it" if order is None else "the gate has admitted another content"
    says = f"is queued as entry {entry.entry_id}, but {what}"
    notes.add(_finding(round_, "queue", "entry", says, user=entry.user, number=entry.number))


def _finding(
    round_: LedgerRound, invariant: str, kind: str, says: str, *, user: str | None = None, number: int | None = None
) -> Finding:
    return Finding(
        invariant=invariant,
        kind=kind,
        says=says,
        round_id=round_.id,
        sale_id=round_.sale_id,
        user=user,
        number=number,
    )
