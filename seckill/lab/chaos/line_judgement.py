"""Judges whether the lines kept what their buyers were told. Pure."""

from collections import Counter
from collections.abc import Iterator

from seckill.lab.chaos.evidence import EntryRow, EntryTold, Evidence


def line_flaws(evidence: Evidence) -> Iterator[str]:
    yield from _not_as_told(evidence)
    yield from _twice(evidence)
    yield from _served_without(evidence)
    yield from _still_waiting(evidence)


def _not_as_told(evidence: Evidence) -> Iterator[str]:
    for told in evidence.told.entries.values():
        row = evidence.books.entries.get(told.entry_id)
        if row is None or _content(row) != _content(told):
            yield f"{told.entry_id} of {told.user} is {'not there' if row is None else 'of ' + row.user}"
        elif told.order_id is not None:
            order = evidence.books.rows.get(row.order or 0)
            if order is None or order.order_id != told.order_id:
                yield f"{told.entry_id} of {told.user} was served with {told.order_id}, and is not"


def _content(entry: EntryTold | EntryRow) -> tuple[object, ...]:
    return entry.user, entry.round_id


def _twice(evidence: Evidence) -> Iterator[str]:
    entries = evidence.books.entries.values()
    for (round_id, user), count in Counter((entry.round_id, entry.user) for entry in entries).items():
        if count > 1:
            yield f"{user} is {count} times in the line of round {round_id}"
    for (round_id, place), count in Counter((entry.round_id, entry.place) for entry in entries if entry.place).items():
        if count > 1:
            yield f"place {place} of round {round_id} is there {count} times"


def _served_without(evidence: Evidence) -> Iterator[str]:
    for entry in evidence.books.entries.values():
        if entry.state == "served":
            order = evidence.books.rows.get(entry.order or 0)
            if order is None or (order.user, order.quantity) != (entry.user, entry.quantity):
                yield f"{entry.entry_id} of {entry.user} was served, and has no order of its own"


def _still_waiting(evidence: Evidence) -> Iterator[str]:
    """Checks rounds that the gate still has: while a buyer waits, no one behind them was served as many units, and no
    units are idle."""
    available = {round_.round_id: round_.available for round_ in evidence.books.rounds}
    entries = list(evidence.books.entries.values())
    for waiting in entries:
        if waiting.state != "waiting" or waiting.place <= 0:
            continue
        for other in entries:
            same = (other.round_id, other.item_id) == (waiting.round_id, waiting.item_id)
            if same and other.state == "served" and other.place > waiting.place and other.quantity >= waiting.quantity:
                yield f"{other.entry_id} was served at place {other.place}, while place {waiting.place} waits"
        if (available.get(waiting.round_id) or 0) >= waiting.quantity:
            yield f"{waiting.entry_id} waits at place {waiting.place}, and {available[waiting.round_id]} units are idle"
