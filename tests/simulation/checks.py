"""What must hold at every instant. Written against the contents of the stores, apart from the engine's code: it shares
names of tables and fields with it, nothing else.

Only one thing happens at a time here, so gate and ledger can be compared exactly at every step, without regard to the
order of reading.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from seckill.domain import Holding, RoundRef
from seckill.memory_store import HeldRound, MemoryStore

FOLLOWS = {
    "queued": {"unpaid", "paid", "failed"},
    "unpaid": {"paid", "cancelled", "expired"},
    "paid": set(),
    "cancelled": {"refunded"},
    "expired": {"refunded"},
    "failed": {"refunded"},
    "refunded": set(),
}
LIVE = {"unpaid", "paid"}
RELEASED = {"cancelled", "expired", "failed", "refunded"}
# For so long after units came back, a node may still say that there are none: what it knows by heart is as old as that.
FLAG_S_MAX = 2.0


class Broken(Exception):
    """Something does not hold. The message says what, with the ids."""


class OrderRow(NamedTuple):
    id: int
    round_id: int
    user_id: str
    quantity: int
    state: str
    active_slot: int | None
    request_id: str
    epoch: int
    price_cents: int
    replaced_by: int | None


class RoundRow(NamedTuple):
    id: int
    lane: int
    total: int
    sold: int
    limit: int
    epoch: int
    opened_ms: int | None
    status: str


@dataclass
class Books:
    """The ledger as it was committed last."""

    orders: dict[int, OrderRow] = field(default_factory=dict)
    rounds: dict[int, RoundRow] = field(default_factory=dict)
    releases: dict[int, bool] = field(default_factory=dict)  # order → relayed
    letters: set[int] = field(default_factory=set)  # orders of entries that are set aside, tried again or given up
    unsettled: Counter[str] = field(default_factory=Counter)  # what still waits for somebody

    def units(self, round_id: int, states: Collection[str]) -> int:
        return sum(row.quantity for row in self.orders.values() if row.round_id == round_id and row.state in states)


def number_in(payload: bytes) -> int | None:
    try:
        entry = json.loads(payload)
        return int(entry["seconds"]) << 32 | int(entry["lane"]) << 24 | int(entry["counter"])
    except (ValueError, KeyError, TypeError):
        return None


class Checks:
    def __init__(self, store: MemoryStore, reader: sqlite3.Connection) -> None:
        self._store = store
        self._reader = reader
        self.books = Books()
        self.wounded: dict[RoundRef, int] = {}  # rounds that the gate has lost or had before, and their epoch then
        self.ever_wounded: set[RoundRef] = set()
        self.ever_lost: set[RoundRef] = set()  # also those that were just being opened: the ledger may note that later
        self.deceived = False  # somebody has forged entries, which look as if the gate had forgotten admitting them
        self.lost: set[int] = set()  # orders that were in the gate and nowhere else when it lost them
        self.promised: dict[int, RoundRef] = {}  # orders that a buyer was told of
        self._held: dict[RoundRef, HeldRound] = {}
        self._short_until_s: dict[tuple[RoundRef, int], float] = {}
        self._numbers: dict[bytes, int | None] = {}

    # The ledger

    def after_commit(self) -> None:
        before, self.books = self.books, self._read()
        self._check_orders(before)
        self._check_history()
        self._check_money()
        self._check_both()

    def _read(self) -> Books:
        rows = self._reader.execute(
            "SELECT id, round_id, user_id, quantity, state, active_slot, request_id, epoch, price_cents, replaced_by"
            " FROM orders"
        ).fetchall()
        rounds = self._reader.execute(
            "SELECT id, lane, total, sold, max(limit_per_buyer, coalesce(limit_before, 0)), epoch, opened_ms, status"
            " FROM rounds"
        ).fetchall()
        books = Books({row[0]: OrderRow(*row) for row in rows}, {row[0]: RoundRow(*row) for row in rounds})
        for order_id, kind, done_ms in self._reader.execute("SELECT order_id, kind, done_ms FROM outbox"):
            books.unsettled["outbox"] += done_ms is None
            if kind == "release":
                books.releases[order_id] = done_ms is not None
        for order_id, next_ms in self._reader.execute("SELECT order_id, next_ms FROM dead_letters"):
            books.unsettled["letters"] += next_ms is not None
            books.letters.add(order_id)
        return books

    def _check_orders(self, before: Books) -> None:
        sold: Counter[int] = Counter()
        held: Counter[tuple[int, str]] = Counter()
        for row in self.books.orders.values():
            if row.state in LIVE:
                sold[row.round_id] += row.quantity
                held[row.round_id, row.user_id] += row.quantity
            if (row.active_slot is not None) != (row.state in LIVE):
                raise Broken(f"order {row.id} is {row.state} with slot {row.active_slot}")
            if (row.id in self.books.releases) != (row.state in RELEASED):
                raise Broken(f"I7: order {row.id} is {row.state}, release decided: {row.id in self.books.releases}")
            known = before.orders.get(row.id)
            if known is not None and known.state != row.state and row.state not in FOLLOWS[known.state]:
                raise Broken(f"I6: order {row.id} went from {known.state} to {row.state}")
        for gone in before.orders.keys() - self.books.orders.keys():
            raise Broken(f"order {gone} has vanished from the ledger")
        for round_ in self.books.rounds.values():
            if not round_.sold == sold[round_.id] <= round_.total:
                raise Broken(
                    f"I4: round {round_.id} counts {round_.sold} sold, has {sold[round_.id]} of {round_.total}"
                )
            ref = RoundRef(id=round_.id, lane=round_.lane)
            if round_.epoch > 1 and ref not in self.ever_lost and not self.deceived:
                raise Broken(f"round {round_.id} is in epoch {round_.epoch}, and the gate has lost nothing")
        for (round_id, user), units in held.items():
            ref = RoundRef(id=round_id, lane=self.books.rounds[round_id].lane)
            # The ledger guards a buyer's number of orders; a gate that forgot some may let one have more units.
            if units > self.books.rounds[round_id].limit and ref not in self.ever_wounded:
                raise Broken(f"I5: {user} has {units} units of round {round_id}")

    def _check_history(self) -> None:
        paths: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
        for order_id, was, now in self._reader.execute(
            "SELECT order_id, from_state, to_state FROM order_events ORDER BY id"
        ):
            paths[order_id].append((was, now))
        for row in self.books.orders.values():
            state = "queued"
            for was, now in paths[row.id]:
                if was != state or now not in FOLLOWS[was]:
                    raise Broken(f"I6: history of order {row.id}: {paths[row.id]}")
                state = now
            if state != row.state:
                raise Broken(f"I6: order {row.id} is {row.state}, its history says {state}")

    def _check_money(self) -> None:
        settled: Counter[int] = Counter()
        for payment_id, settles, next_ms, cents, refunded, to_do in self._reader.execute(
            "SELECT p.id, p.settles, p.next_ms, p.amount_cents, r.amount_cents, r.next_ms FROM payments p"
            " LEFT JOIN refunds r ON r.payment_id = p.id"
        ):
            uses = (settles is not None) + (next_ms is not None) + (refunded is not None)
            if uses != 1 or (refunded is not None and refunded != cents):
                raise Broken(f"I14: payment {payment_id} pays {settles}, waits {next_ms}, goes back {refunded}")
            self.books.unsettled["late payments"] += next_ms is not None
            self.books.unsettled["refunds"] += to_do is not None
            if settles is not None:
                settled[settles] += cents
        for row in self.books.orders.values():
            if settled[row.id] != (row.price_cents if row.state == "paid" else 0):
                raise Broken(f"I14: order {row.id} of {row.price_cents} is {row.state}, {settled[row.id]} was paid")

    # The gate

    def after_gate(self, now_ms: int, now_s: float) -> None:
        contents = self._store.contents
        changed = False
        for ref, held in contents.rounds.items():
            before = self._held.get(ref)
            if before is held:
                continue
            changed = True
            self._held[ref] = held
            if before is not None:
                self._note_short(ref, before, now_s)
                self._check_growth(ref, before, held, now_ms)
            if held.status != "preparing":
                self._check_held(ref, held, contents.buyers.get(ref, {}))
        if changed:
            self._check_both()

    def _note_short(self, ref: RoundRef, before: HeldRound, now_s: float) -> None:
        if before.status != "preparing":
            for quantity in range(before.available + 1, before.limit_per_buyer + 1):
                self._short_until_s[ref, quantity] = now_s

    def may_say_sold_out(self, ref: RoundRef, quantity: int, asked_s: float) -> bool:
        """Whether there were too few units at some time since then, or a moment before."""
        held = self._store.contents.rounds.get(ref)
        if held is not None and held.status != "preparing" and held.available < quantity:
            return True
        return self._short_until_s.get((ref, quantity), -1.0) >= asked_s - FLAG_S_MAX

    def _check_growth(self, ref: RoundRef, before: HeldRound, held: HeldRound, now_ms: int) -> None:
        if before.epoch != held.epoch or "preparing" in (before.status, held.status) or ref in self.wounded:
            return
        if held.admitted < before.admitted or held.released < before.released or held.version < before.version:
            raise Broken(f"round {ref.id} went from {before} to {held}")
        if held.admitted > before.admitted and (
            before.status != "open" or not before.begins_ms <= now_ms < before.ends_ms
        ):
            raise Broken(f"F5: round {ref.id} admits at {now_ms}, while {before}")

    def _check_held(self, ref: RoundRef, held: HeldRound, buyers: dict[str, tuple[Holding, ...]]) -> None:
        if not (held.available == held.total - held.admitted + held.released and 0 <= held.available <= held.total):
            raise Broken(f"I1: round {ref.id}: {held}")
        live = 0
        for user, mine in buyers.items():
            units = sum(holding.quantity for holding in mine if holding.live)
            live += units
            limit = max(held.limit_per_buyer, self.books.rounds[ref.id].limit)
            if units > limit and ref not in self.ever_wounded:
                raise Broken(f"I2: {user} holds {units} units of round {ref.id}")
            keys = [holding.request_id for holding in mine if holding.request_id]
            if len(keys) != len(set(keys)) and ref not in self.ever_wounded:
                raise Broken(f"{user} has two orders for one key in round {ref.id}: {mine}")
        if live != held.admitted - held.released:
            raise Broken(f"I2: buyers of round {ref.id} hold {live}, the gate counts {held.admitted - held.released}")

    # Both

    def _in_streams(self) -> set[int]:
        found = set()
        for lane in self._store.contents.lanes.values():
            for payload in lane.entries.values():
                if payload not in self._numbers:
                    self._numbers[payload] = number_in(payload)
                if (number := self._numbers[payload]) is not None:
                    found.add(number)
        return found

    def is_sound(self, ref: RoundRef, held: HeldRound) -> bool:
        """What the gate has of the round is true."""
        row = self.books.rounds.get(ref.id)
        if held.status == "preparing" or row is None or held.epoch != row.epoch:
            return False
        if ref in self.wounded and held.epoch > self.wounded[ref]:
            del self.wounded[ref]
        return ref not in self.wounded

    def _check_both(self) -> None:
        streams = self._in_streams()
        for ref, held in self._store.contents.rounds.items():
            if self.is_sound(ref, held):
                self.compare(ref, streams)
        for number in self.promised:
            self._check_kept(number, streams)

    def compare(self, ref: RoundRef, streams: set[int]) -> None:
        """Each order in one place and in the right one. Then all sums of I8 to I13 follow."""
        holdings = {
            int(holding.number): holding
            for mine in self._store.contents.buyers.get(ref, {}).values()
            for holding in mine
        }
        for number, holding in holdings.items():
            row = self.books.orders.get(number)
            if row is None:
                if not holding.live:
                    raise Broken(f"I9: order {number} was released, the ledger has not decided that")
                if number not in streams and number not in self.books.letters:
                    raise Broken(f"I13: order {number} is neither in the stream nor in the ledger")
            elif row.state in LIVE and not holding.live:
                raise Broken(f"I9: order {number} is {row.state}, and its units are on sale again")
            elif row.state in RELEASED and holding.live and self.books.releases[number]:
                raise Broken(f"I7: order {number} is {row.state}, and its units never come back")
        for row in self.books.orders.values():
            if row.round_id == ref.id and row.state in LIVE and row.id not in holdings:
                raise Broken(f"I8: order {row.id} is {row.state}, and the gate never admitted it")

    def _check_kept(self, number: int, streams: set[int]) -> None:
        if not (
            number in self.books.orders or number in streams or number in self.books.letters or number in self.lost
        ):
            raise Broken(f"I11: order {number}, which a buyer was told of, is nowhere")

    @contextmanager
    def losing(self, now_s: float) -> Iterator[None]:
        """Around a step in which the gate forgets things."""
        for ref, held in self._held.items():
            self._note_short(ref, held, now_s)
        numbers = self._numbers_in_gate()
        before = self._store.contents
        yield
        now = self._store.contents
        for ref in before.rounds:
            row = self.books.rounds[ref.id]
            # One that is not open in its epoch is going to be: from nothing, if it is the first, or from the ledger.
            sound_after = row.epoch - (row.opened_ms is None)
            changed = before.rounds[ref] != now.rounds.get(ref) or before.buyers.get(ref) != now.buyers.get(ref)
            if changed:
                self.ever_lost.add(ref)
            if sound_after and changed:
                self.wounded[ref] = sound_after
                self.ever_wounded.add(ref)
        self.lost |= numbers - self._in_streams() - self.books.orders.keys() - self.books.letters
        self._held.clear()

    def _numbers_in_gate(self) -> set[int]:
        holdings = {
            int(holding.number)
            for buyers in self._store.contents.buyers.values()
            for mine in buyers.values()
            for holding in mine
        }
        return holdings | self._in_streams()
