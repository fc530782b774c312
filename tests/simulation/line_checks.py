"""Checks what must hold of lines and of shared limits at every instant. They read the tables and the contents of the
gate without the engine's code."""

import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from seckill.backends.memory.store import MemoryStore
from seckill.domain.public_id import PublicIds
from tests.simulation.checks import Books, Broken, Checks, OrderRow, RoundRow
from tests.simulation.doors import person_of

WAITING, CALLED, SERVED, LEFT, PASSED_OVER = range(5)
# From any other state, an entry gets back into these only if its buyer joins again.
IN_LINE = (WAITING, CALLED)
FOLLOWS = {
    WAITING: {CALLED, LEFT, PASSED_OVER},
    CALLED: {SERVED, PASSED_OVER},
    SERVED: set(),
    LEFT: {WAITING},
    PASSED_OVER: {WAITING},
}


class EntryRow(NamedTuple):
    id: int
    round_id: int
    user_id: str
    quantity: int
    item_id: int
    state: int
    place: int | None
    order_id: int | None
    reason: str | None

    @property
    def request_id(self) -> str:
        return f"line-{self.id:x}"


class LineRow(NamedTuple):
    round_id: int
    order_by: str
    seed: str | None
    entries: int
    list_hash: str | None
    closed_ms: int | None
    drawn_ms: int | None
    waiting: int
    served: int
    paused: int


class LineChecks:
    def __init__(self, checks: Checks, store: MemoryStore, reader: sqlite3.Connection, entry_ids: PublicIds) -> None:
        self._checks = checks
        self._store = store
        self._reader = reader
        self._entry_ids = entry_ids
        self.lines: dict[int, LineRow] = {}
        self.entries: dict[int, EntryRow] = {}
        self.promised: dict[int, str] = {}  # entries that a buyer was told of
        self.persons: set[int] = set()  # sales whose limit is per person

    def after_commit(self) -> None:
        if self._shares():
            self._check_shared(self._held_in_ledger(self._checks.books), "has")
        rows = self._reader.execute(
            "SELECT round_id, order_by, seed, entries, list_hash, closed_ms, drawn_ms, waiting, served, paused"
            " FROM round_lines"
        ).fetchall()
        if not rows:
            return
        before = self.entries
        self.lines = {row[0]: LineRow(*row) for row in rows}
        self.entries = {
            row[0]: EntryRow(*row)
            for row in self._reader.execute(
                "SELECT id, round_id, user_id, quantity, item_id, state, place, order_id, reason FROM line_entries"
            )
        }
        self._check_entries(before)
        self._check_served(self._checks.books)
        for line in self.lines.values():
            self._check_line(line, self.of(line.round_id))

    def of(self, round_id: int) -> list[EntryRow]:
        return [entry for entry in self.entries.values() if entry.round_id == round_id]

    # Entries

    def _check_entries(self, before: dict[int, EntryRow]) -> None:
        for entry_id, user in self.promised.items():
            if entry_id not in self.entries or self.entries[entry_id].user_id != user:
                raise Broken(f"L1: entry {entry_id}, which {user} was told of, is not there")
        for known in before.values():
            entry = self.entries.get(known.id)
            if entry is None or (entry.round_id, entry.user_id) != (known.round_id, known.user_id):
                raise Broken(f"L1: {known} has become {entry}")
            if entry.state != known.state and entry.state not in FOLLOWS[known.state]:
                raise Broken(f"L2: {known} has become {entry}")
            if known.state == SERVED and entry != known:
                raise Broken(f"L2: {known} was served, and has become {entry}")
            if known.state == LEFT and known.reason is not None and entry.state != LEFT:
                raise Broken(f"L9: {known} was removed by an operator, and has become {entry}")
            if (known.state, entry.state) == (WAITING, CALLED) and self.lines[entry.round_id].paused:
                raise Broken(f"L9: {entry} is called while its line is paused")
            self._check_turn(known, entry)

    def _check_turn(self, known: EntryRow, entry: EntryRow) -> None:
        """No entry is served before a better place that waits for as many units or fewer."""
        if known.state == entry.state or entry.state not in (CALLED, SERVED):
            return
        for other in self.of(entry.round_id):
            if (
                other.state == WAITING
                and other.item_id == entry.item_id
                and other.quantity <= entry.quantity
                and _place(other) < _place(entry)
            ):
                raise Broken(f"L3: {entry} is called before {other}")

    def _check_served(self, books: Books) -> None:
        """Each entry has one order, and no order lacks an entry."""
        by_line: defaultdict[tuple[int, str], list[OrderRow]] = defaultdict(list)
        for row in books.orders.values():
            if row.request_id.startswith("line-"):
                by_line[row.round_id, "-".join(row.request_id.split("-")[:2])].append(row)  # whichever attempt it was
            elif row.state != "failed" and (line := self.lines.get(row.round_id)) and line.order_by != "press":
                raise Broken(f"L4: order {row.id} of round {row.round_id} did not come from its line")
        of = {(entry.round_id, entry.request_id): entry for entry in self.entries.values()}
        for key, orders in by_line.items():
            entry = of.get(key)
            if entry is None or any(row.user_id != entry.user_id for row in orders):
                raise Broken(f"L4: orders {[row.id for row in orders]} are of no entry of their buyer's: {entry}")
            if entry.state in (WAITING, LEFT, PASSED_OVER) and any(row.holds_units for row in orders):
                raise Broken(f"L4: {entry} has an order")
            if sum(row.state != "failed" for row in orders) > 1:
                raise Broken(f"L5: {entry} was served twice: {orders}")
        for entry in self.entries.values():
            if entry.state != SERVED:
                continue
            order = books.orders.get(entry.order_id or 0)
            if order is None or (order.user_id, order.quantity) != (entry.user_id, entry.quantity):
                raise Broken(f"L4: {entry} is served with {order}")
            if order.state == "failed":
                raise Broken(f"L8: {entry} is served with an order that failed")

    # Lines

    def _check_line(self, line: LineRow, entries: list[EntryRow]) -> None:
        counted = (sum(e.state in IN_LINE for e in entries), sum(e.state == SERVED for e in entries))
        if counted != (line.waiting, line.served):
            raise Broken(f"L6: the line of round {line.round_id} counts {line}, its entries are {counted}")
        users = Counter(entry.user_id for entry in entries)
        places = Counter(entry.place for entry in entries if entry.place is not None)
        if max(users.values(), default=1) > 1 or max(places.values(), default=1) > 1:
            raise Broken(f"L6: the line of round {line.round_id} has a place or a buyer twice: {entries}")
        if line.seed is not None and line.drawn_ms is None and any(e.state in (CALLED, SERVED) for e in entries):
            raise Broken(f"L7: somebody was served before the draw of round {line.round_id}")

    def check_draws(self) -> None:
        """Checks draws as a stranger does: from the seed and the list to the places."""
        for line in self.lines.values():
            if line.drawn_ms is None or line.seed is None:
                continue
            drawn = {
                e.id: e.place for e in self.of(line.round_id) if e.place is not None and 0 < e.place <= line.entries
            }
            names = {self._entry_ids.encode(entry): entry for entry in drawn}
            hash_of_list = _hex("\n".join(sorted(names)))
            order = sorted(names, key=lambda name: _hex(f"{line.seed}::{hash_of_list}:{name}"))
            if len(drawn) != line.entries or line.list_hash != hash_of_list:
                raise Broken(f"L7: the list of round {line.round_id} is another: {line}, {names}")
            if [drawn[names[name]] for name in order] != list(range(1, line.entries + 1)):
                raise Broken(f"L7: the draw of round {line.round_id} is another: {drawn}")

    def unrest(self, row: RoundRow, now_ms: int, *, all_paid: bool) -> str:
        """Why a line is not at rest, empty if it is."""
        line = self.lines.get(row.id)
        if line is None or row.retired_ms is not None:
            return ""
        waiting = [entry for entry in self.of(row.id) if entry.state in IN_LINE]
        if any(entry.state == CALLED for entry in waiting):
            return "called"
        if row.ends_ms <= now_ms or row.status == "closed":
            return "waiting in vain" if waiting else ""
        if row.begins_ms > now_ms or row.status != "open":
            return ""
        if line.seed is not None and line.drawn_ms is None:
            return "not drawn"
        if waiting and all_paid:
            return "without hope"
        left = {item: self._checks.units_left(row, item) or 0 for item in {entry.item_id for entry in waiting}}
        return "idle units" if any(entry.quantity <= left[entry.item_id] for entry in waiting) else ""

    # Shared limits

    def after_gate(self) -> None:
        if self._shares():
            self._check_shared(self._held_in_gate(), "holds")

    def _shares(self) -> bool:
        return bool(self.persons) or any(row.group for row in self._checks.books.rounds.values())

    def _held_in_ledger(self, books: Books) -> Iterator[tuple[int, str, int]]:
        return ((row.round_id, row.user_id, row.quantity) for row in books.orders.values() if row.holds_units)

    def _held_in_gate(self) -> Iterator[tuple[int, str, int]]:
        for ref, buyers in self._store.contents.buyers.items():
            for user, record in buyers.items():
                yield ref.id, user, sum(holding.quantity for holding in record.live)

    def _check_shared(self, held: Iterable[tuple[int, str, int]], word: str) -> None:
        """A gate that forgot orders may let a buyer have more: that is declared, as for one round."""
        checks = self._checks
        of_group: Counter[tuple[str, str]] = Counter()
        of_person: Counter[tuple[int, str]] = Counter()
        for round_id, user, units in held:
            row = checks.books.rounds[round_id]
            if row.group is not None:
                of_group[row.group, user] += units
            if row.sale_id in self.persons:
                of_person[round_id, person_of(user)] += units
        for (group, user), units in of_group.items():
            rounds = [row for row in checks.books.rounds.values() if row.group == group]
            wounded = any(row.id in checks.ever_wounded for row in rounds)
            if units > max(row.limit for row in rounds) and not wounded:
                raise Broken(f"I2: {user} {word} {units} units of the rounds that share a limit")
        for (round_id, person), units in of_person.items():
            if units > checks.books.rounds[round_id].limit and round_id not in checks.ever_wounded:
                raise Broken(f"I2: {person} {word} {units} units of round {round_id}")


def _place(entry: EntryRow) -> int:
    return entry.place if entry.place is not None and entry.place > 0 else 1 << 60


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
