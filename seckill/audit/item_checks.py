"""Checks of items: each has its own units in the gate and in the ledger, and their sums are the round's."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from seckill.audit.gate import GateItem, GateRound, Held
from seckill.audit.ledger import ItemSums, LedgerRound
from seckill.audit.report import Finding, Notes, finding_about

_COUNTS = ("total", "available", "admitted", "released")


def judge_items(before: LedgerRound, gate: GateRound, after: LedgerRound, notes: Notes) -> None:
    """Judges items from counters alone. `gate`: the whole round, read between the two readings of the ledger."""
    add = partial(finding_about, after, "items")
    if gate.items.keys() != after.items.keys():
        says = f"the gate has the items {_named(gate.items)}, the ledger has the items {_named(after.items)}"
        notes.add(add("missing", says))
        return
    if not after.items:
        return
    notes.count("items", len(after.items))
    for item, stock in gate.items.items():
        _judge_stock(stock, f"item {item}", add, "stock", notes)
    for name in _COUNTS:
        together = sum(getattr(stock, name) for stock in gate.items.values())
        if together != getattr(gate, name):
            says = f"all items together have {together} units {name}, the round has {getattr(gate, name)}"
            notes.add(add("sum", says))
    # Units are only ever added: if they are the same before and after, the gate had them in between.
    if before.revision == after.revision == gate.revision and before.items == after.items:
        for item, units in after.items.items():
            if gate.items[item].total != units:
                says = f"item {item} has {gate.items[item].total} units in the gate and {units} in the ledger"
                notes.add(add("missing", says))


def judge_item_shares(first: Sequence[GateRound], later: Sequence[GateRound], after: LedgerRound, notes: Notes) -> None:
    """Judges what the sums of a round with several lanes do not show."""
    add = partial(finding_about, after, "items")
    donors = {(share.lane, share.epoch): share for share in later if not share.preparing}
    for share in first:
        for item, stock in share.items.items():
            here = f"item {item} in lane {share.lane}"
            sent, got = sum(stock.sent.values()), sum(stock.got.values())
            if stock.total != stock.dealt - sent + got:
                says = f"{here}: {stock.total} units, but was dealt {stock.dealt}, sent {sent} and got {got}"
                notes.add(add("lane", says))
            _judge_stock(stock, here, add, "lane", notes)
            for origin, units in stock.got.items():
                donor = donors.get((origin, share.epoch))
                given = None if donor is None or item not in donor.items else donor.items[item].sent.get(share.lane, 0)
                if given is not None and units > given:
                    says = f"{here}: {units} units have come from lane {origin}, which has sent only {given}"
                    notes.add(add("lane", says))


def _judge_stock(stock: GateItem, what: str, add: Callable[[str, str], Finding], kind: str, notes: Notes) -> None:
    due = stock.total - stock.admitted + stock.released
    if stock.available != due or not 0 <= stock.available <= stock.total or not 0 <= stock.released <= stock.admitted:
        says = (
            f"{what}: {stock.available} units available, but {stock.total} − {stock.admitted} admitted + "
            f"{stock.released} released = {due}"
        )
        notes.add(add(kind, says))


def check_item_records(
    before: GateRound, live: Counter[int], past: Counter[int], after: GateRound, round_: LedgerRound, notes: Notes
) -> None:
    """Checks the buyers' records, which were read between the two readings of the gate. Units admitted before and not
    over afterwards must be live in them, and only units admitted by the end and not over at the beginning can be."""
    add = partial(finding_about, round_, "items", "records")
    for item in before.items.keys() & after.items.keys():
        then, now = before.items[item], after.items[item]
        if not then.admitted - now.released <= live[item] <= now.admitted - then.released:
            due = now.admitted - now.released
            says = f"the buyers' records have {live[item]} live units of item {item}, the gate counts {due}"
            notes.add(add(says))
        if past[item] > now.released:
            says = f"{past[item]} units of item {item} are over, the gate has taken back {now.released}"
            notes.add(add(says))


def count_orders(orders: Sequence[Held], live: Counter[int], past: Counter[int]) -> None:
    for order in orders:
        if order.item:
            (live if order.live else past)[order.item] += order.quantity


def check_item_rows(sums: ItemSums, notes: Notes) -> None:
    """Compares the ledger's counters with the sums of its rows, from one instant."""
    add = partial(finding_about, sums, "items")
    for item, (sold, live_units) in sums.of_items.items():
        if sold != live_units:
            says = f"the ledger counts {sold} units of item {item} sold, its live orders have {live_units}"
            notes.add(add("sold", says))
    together = sum(sold for sold, _ in sums.of_items.values())
    if together != sums.sold:
        says = f"the ledger counts {sums.sold} units sold, and {together} of all items together"
        notes.add(add("sold", says))
    if sums.astray:
        says = f"{sums.astray} orders name none of the round's items"
        notes.add(add("order", says))


def _named(items: dict[int, GateItem] | dict[int, int]) -> str:
    return ", ".join(str(item) for item in sorted(items)) or "none"
