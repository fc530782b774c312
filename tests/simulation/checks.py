"""Checks what must hold at every instant. They read the contents of the stores, apart from the engine's code, with
which they share the names of tables and fields and nothing else.

Only one thing happens at a time here, so gate and ledger can be compared exactly at every step, without regard to the
order of reading.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from seckill.backends.memory.store import HeldRound, MemoryStore
from seckill.domain.admission import Holding, Record
from seckill.domain.sale import RoundRef
from seckill.ports.gate import GateStatus, ItemView

FOLLOWS = {
    "queued": {"unpaid", "paid", "failed"},
    "unpaid": {"paid", "cancelled", "expired"},
    "paid": {"refunded"},
    "cancelled": {"refunded"},
    "expired": {"refunded"},
    "failed": {"refunded"},
    "refunded": set(),
}
LIVE = {"unpaid", "paid"}
# For this long after units came back, a node may still say that there are none: what it knows by heart is as old as
# that.
FLAG_S_MAX = 2.0

Past = dict[tuple[str, str], tuple[Holding, ...]]


def _sent(stock: HeldRound | ItemView) -> int:
    items = stock.items.values() if isinstance(stock, HeldRound) else ()
    return sum(stock.sent.values()) + sum(sum(item.sent.values()) for item in items)


def _got(stock: HeldRound | ItemView) -> int:
    items = stock.items.values() if isinstance(stock, HeldRound) else ()
    return sum(stock.got.values()) + sum(sum(item.got.values()) for item in items)


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
    refunded_cents: int
    paid_ms: int | None
    closed_by: str | None
    item_id: int | None

    @property
    def holds_units(self) -> bool:
        return self.active_slot is not None

    @property
    def is_refunded_by_operator(self) -> bool:
        """Then its units may be back on sale or stay sold, whatever its state."""
        return self.paid_ms is not None and (self.refunded_cents > 0 or self.state == "refunded")


class RoundRow(NamedTuple):
    id: int
    sale_id: int
    lane: int
    lanes: int
    total: int
    sold: int
    limit: int
    epoch: int
    opened_ms: int | None
    status: str
    begins_ms: int
    ends_ms: int
    retired_ms: int | None
    group: str | None  # rounds that share one limit

    @property
    def shares(self) -> list[RoundRef]:
        return [RoundRef(id=self.id, lane=self.lane + place) for place in range(self.lanes)]


def lane_in(number: int) -> int:
    return number >> 24 & 0xFF


@dataclass
class Books:
    """The ledger as it was committed last."""

    orders: dict[int, OrderRow] = field(default_factory=dict)
    rounds: dict[int, RoundRow] = field(default_factory=dict)
    releases: dict[int, bool] = field(default_factory=dict)  # order → relayed
    letters: set[int] = field(default_factory=set)  # orders of entries that are set aside, tried again or given up
    unsettled: Counter[str] = field(default_factory=Counter)  # what still has to be done
    items: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # round and item → total and sold

    def has_lapsed(self, user: str, round_id: int) -> bool:
        mine = [row for row in self.orders.values() if (row.user_id, row.round_id) == (user, round_id)]
        return any(row.state in ("cancelled", "expired", "refunded") and row.closed_by is None for row in mine)

    def units(self, round_id: int, states: Collection[str]) -> int:
        """Adds up the units that orders of these states hold."""
        mine = [row for row in self.orders.values() if row.round_id == round_id and row.holds_units]
        return sum(row.quantity for row in mine if row.state in states)


def numbers_in(payload: bytes) -> frozenset[int]:
    """Returns the numbers of the orders that an entry says it is about."""
    if payload[:1] == b"\x9e":  # several orders: fourteen things, of which these say which
        _, _, _, lane, seconds, _, counter, users, *_ = msgspec.msgpack.decode(payload)
        return frozenset(seconds << 32 | lane << 24 | counter + place for place in range(len(users)))
    try:
        entry = json.loads(payload)
        return frozenset({int(entry["seconds"]) << 32 | int(entry["lane"]) << 24 | int(entry["counter"])})
    except (ValueError, KeyError, TypeError):
        return frozenset()


class Checks:
    def __init__(self, store: MemoryStore, reader: sqlite3.Connection) -> None:
        self._store = store
        self._reader = reader
        self.books = Books()
        self.wounded: dict[RoundRef, int] = {}  # rounds that the gate has lost or had before, and their epoch then
        self.ever_wounded: set[int] = set()  # rounds
        self.ever_forgot: set[int] = set()  # rounds of which orders may be gone that buyers were told of
        self.ever_lost: set[int] = set()  # also those that were just being opened: the ledger may note that later
        self.deceived = False  # forged entries were put in, which look as if the gate had forgotten admitting them
        self.lost: set[int] = set()  # orders that were in the gate and nowhere else when it lost them
        self.promised: dict[int, RoundRef] = {}  # orders that a buyer was told of
        self._held: dict[RoundRef, HeldRound] = {}  # by share: a round of one lane has one
        # Round and item → units on sale or on their way from one lane to another. Item 0: all of the round.
        self._left: dict[tuple[int, int], int] = {}
        self._short_until_s: dict[tuple[int, int, int], float] = {}  # by round, item and quantity
        self._numbers: dict[bytes, frozenset[int]] = {}

    # The ledger

    def after_commit(self) -> None:
        before, self.books = self.books, self._read()
        self._check_orders(before)
        self._check_items()
        self._check_history()
        self._check_money()
        self._check_both()

    def _read(self) -> Books:
        rows = self._reader.execute(
            "SELECT id, round_id, user_id, quantity, state, active_slot, request_id, epoch, price_cents, replaced_by,"
            " refunded_cents, paid_ms, closed_by, item_id FROM orders"
        ).fetchall()
        rounds = self._reader.execute(
            "SELECT id, sale_id, lane, lanes, total, sold, max(limit_per_buyer, coalesce(limit_before, 0)), epoch,"
            " opened_ms, status, begins_ms, ends_ms, retired_ms, limit_group FROM rounds"
        ).fetchall()
        books = Books({row[0]: OrderRow(*row) for row in rows}, {row[0]: RoundRow(*row) for row in rounds})
        for order_id, kind, done_ms in self._reader.execute("SELECT order_id, kind, done_ms FROM outbox"):
            books.unsettled["outbox"] += done_ms is None
            if kind == "release":
                books.releases[order_id] = done_ms is not None
        for order_id, next_ms in self._reader.execute("SELECT order_id, next_ms FROM dead_letters"):
            books.unsettled["letters"] += next_ms is not None
            books.letters.add(order_id)
        for round_id, item_id, total, sold in self._reader.execute(
            "SELECT round_id, item_id, total, sold FROM round_items"
        ):
            books.items[round_id, item_id] = total, sold
        return books

    def _check_items(self) -> None:
        """Checks each item's units in the ledger, and that they add up to the round's."""
        sold: Counter[tuple[int, int | None]] = Counter()
        with_items = {round_id for round_id, _ in self.books.items}
        for row in self.books.orders.values():
            if (row.item_id is not None) != (row.round_id in with_items):
                raise Broken(f"I4: order {row.id} of round {row.round_id} is of item {row.item_id}")
            sold[row.round_id, row.item_id] += row.quantity if row.holds_units else 0
        for (round_id, item), (total, counted) in self.books.items.items():
            if not counted == sold[round_id, item] <= total:
                units = f"counts {counted} sold, has {sold[round_id, item]} of {total}"
                raise Broken(f"I4: item {item} of round {round_id} {units}")
        for round_id in with_items:
            parts = [units for (other, _), units in self.books.items.items() if other == round_id]
            row_ = self.books.rounds[round_id]
            if (sum(total for total, _ in parts), sum(units for _, units in parts)) != (row_.total, row_.sold):
                raise Broken(f"I4: items of round {round_id} have {parts}, the round {row_.total} and {row_.sold}")

    def _check_orders(self, before: Books) -> None:
        sold: Counter[int] = Counter()
        held: Counter[tuple[int, str]] = Counter()
        keys: Counter[tuple[int, str, str]] = Counter()
        for row in self.books.orders.values():
            keys[row.round_id, row.user_id, row.request_id] += row.request_id != ""
            if row.holds_units:
                sold[row.round_id] += row.quantity
                held[row.round_id, row.user_id] += row.quantity
            if row.holds_units != (row.state in LIVE) and not row.is_refunded_by_operator:
                raise Broken(f"order {row.id} is {row.state} with slot {row.active_slot}")
            if (row.id in self.books.releases) == row.holds_units:
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
            if round_.epoch > 1 and round_.id not in self.ever_lost and not self.deceived:
                raise Broken(f"round {round_.id} is in epoch {round_.epoch}, and the gate has lost nothing")
        for (round_id, user, key), orders in keys.items():
            if orders > 1 and round_id not in self.ever_forgot and not self.deceived:
                raise Broken(f"{user} has {orders} orders for the key {key} in round {round_id}")
        for (round_id, user), units in held.items():
            # The ledger guards a buyer's number of orders; a gate that forgot some may let one have more units.
            if units > self.books.rounds[round_id].limit and round_id not in self.ever_wounded:
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
        given_back: Counter[int] = Counter()
        for payment_id, settles, next_ms, cents, refunded, to_do in self._reader.execute(
            "SELECT p.id, p.settles, p.next_ms, p.amount_cents, sum(r.amount_cents), count(r.next_ms) FROM payments p"
            " LEFT JOIN refunds r ON r.payment_id = p.id GROUP BY p.id"
        ):
            goes_back = settles is None and refunded is not None
            uses = (settles is not None) + (next_ms is not None) + goes_back
            if uses != 1 or (goes_back and refunded != cents) or (refunded or 0) > cents:
                raise Broken(f"I14: payment {payment_id} pays {settles}, waits {next_ms}, goes back {refunded}")
            self.books.unsettled["late payments"] += next_ms is not None
            self.books.unsettled["refunds"] += to_do
            if settles is not None:
                settled[settles] += cents
                given_back[settles] += refunded or 0
        for row in self.books.orders.values():
            was_paid = row.state in ("paid", "refunded") and row.paid_ms is not None
            if settled[row.id] != (row.price_cents if was_paid else 0):
                raise Broken(f"I14: order {row.id} of {row.price_cents} is {row.state}, {settled[row.id]} was paid")
            back = given_back[row.id] if was_paid else row.price_cents if row.state == "refunded" else 0
            whole = row.refunded_cents == row.price_cents
            if row.refunded_cents != back or (row.state == "refunded") > whole:
                raise Broken(f"I14: order {row.id} is {row.state}, says {row.refunded_cents} are refunded, {back} are")

    def check_given_back(self, by_provider: Mapping[int, int]) -> None:
        """The provider was asked for what the ledger owed, for each refund once."""
        owed = dict(self._reader.execute("SELECT id, amount_cents FROM refunds").fetchall())
        if owed != by_provider:
            raise Broken(f"I14: {owed} are to go back, the provider has given back {by_provider}")

    # The gate

    def after_gate(self, now_ms: int, now_s: float) -> None:
        contents = self._store.contents
        changed: set[int] = set()
        for ref, held in contents.rounds.items():
            before = self._held.get(ref)
            if before is held:
                continue
            changed.add(ref.id)
            self._held[ref] = held
            if before is not None:
                self._check_growth(ref, before, held, now_ms)
            if held.status is not GateStatus.PREPARING:
                self._check_held(ref, held, contents.buyers.get(ref, {}), contents.past.get(ref, {}))
        for round_id in sorted(changed):
            self._note_short(round_id, now_s)
            self._check_whole(self.books.rounds[round_id])
        if changed:
            self._check_both()

    def _note_short(self, round_id: int, now_s: float) -> None:
        """Notes what was left until now."""
        for item in (0, *(item for other, item in self.books.items if other == round_id)):
            for quantity in range(self._left.get((round_id, item), 1 << 30) + 1, self.books.rounds[round_id].limit + 1):
                self._short_until_s[round_id, item, quantity] = now_s
            left = self.units_left(self.books.rounds[round_id], item)
            if left is None:
                self._left.pop((round_id, item), None)
            else:
                self._left[round_id, item] = left

    def units_left(self, row: RoundRow, item: int = 0) -> int | None:
        """Counts for the round or one of its items. Returns None if a share is not on sale."""
        shares = [self._store.contents.rounds.get(ref) for ref in row.shares]
        if any(held is None or held.status is GateStatus.PREPARING for held in shares):
            return None
        stocks = [held.items[item] if item else held for held in shares if held is not None]
        return sum(stock.available + _sent(stock) - _got(stock) for stock in stocks)

    def may_say_sold_out(self, ref: RoundRef, item: int, quantity: int, asked_s: float) -> bool:
        """Whether there were too few units at some time since then, or a moment before."""
        left = self.units_left(self.books.rounds[ref.id], item)
        if left is not None and left < quantity:
            return True
        return self._short_until_s.get((ref.id, item, quantity), -1.0) >= asked_s - FLAG_S_MAX

    def _check_whole(self, row: RoundRow) -> None:
        """Units that go from lane to lane are nowhere twice."""
        shares = [self._store.contents.rounds.get(ref) for ref in row.shares]
        sound = [held for ref, held in zip(row.shares, shares, strict=True) if held and self.is_sound(ref, held)]
        if row.lanes == 1 or len(sound) < row.lanes:
            return
        for item in (0, *sound[0].items):
            stocks = [held.items[item] if item else held for held in sound]
            sent, got, dealt = sum(map(_sent, stocks)), sum(map(_got, stocks)), sum(stock.dealt for stock in stocks)
            total = self.books.items[row.id, item][0] if item else row.total
            if not sum(stock.total for stock in stocks) + sent - got == dealt <= total or got > sent:
                raise Broken(f"I1: round {row.id} of {total} has shares {stocks}")

    def _check_growth(self, ref: RoundRef, before: HeldRound, held: HeldRound, now_ms: int) -> None:
        if before.epoch != held.epoch or GateStatus.PREPARING in (before.status, held.status) or ref in self.wounded:
            return
        if held.admitted < before.admitted or held.released < before.released or held.version < before.version:
            raise Broken(f"round {ref.id} went from {before} to {held}")
        if held.admitted > before.admitted and (
            before.status not in (GateStatus.OPEN, GateStatus.LINE) or not before.begins_ms <= now_ms < before.ends_ms
        ):
            raise Broken(f"F5: round {ref.id} admits at {now_ms}, while {before}")

    def _check_held(self, ref: RoundRef, held: HeldRound, buyers: dict[str, Record], past: Past) -> None:
        if not (held.available == held.total - held.admitted + held.released and 0 <= held.available <= held.total):
            raise Broken(f"I1: round {ref.id}: {held}")
        if held.items:
            self._check_held_items(ref, held, buyers, past)
        live = over = 0
        for user, record in buyers.items():
            units = sum(holding.quantity for holding in record.live)
            live += units
            over += record.units_over
            limit = max(held.limit_per_buyer, self.books.rounds[ref.id].limit)
            if units > limit and ref.id not in self.ever_wounded:
                raise Broken(f"I2: {user} holds {units} units of round {ref.id}")
            keys = [holding.request_id for holding in record.live if holding.request_id]
            keys += [key for key in set(keys) if (user, key) in past]
            if len(keys) != len(set(keys)) and ref.id not in self.ever_wounded:
                raise Broken(f"{user} has two orders for one key in round {ref.id}: {record}")
        if not over == held.released == sum(order.quantity for orders in past.values() for order in orders):
            raise Broken(f"I2: buyers of round {ref.id} gave back {over}, the gate counts {held.released}: {past}")
        if any(len(orders) > 1 for orders in past.values()) and ref.id not in self.ever_wounded:
            raise Broken(f"a buyer had two orders for one key in round {ref.id}: {past}")
        if live != held.admitted - held.released:
            raise Broken(f"I2: buyers of round {ref.id} hold {live}, the gate counts {held.admitted - held.released}")

    def _check_held_items(self, ref: RoundRef, held: HeldRound, buyers: dict[str, Record], past: Past) -> None:
        for name in ("total", "available", "admitted", "released"):
            if sum(getattr(stock, name) for stock in held.items.values()) != getattr(held, name):
                raise Broken(f"I1: the items of round {ref.id} do not add up to its {name}: {held}")
        live: Counter[int] = Counter()
        over: Counter[int] = Counter()
        for record in buyers.values():
            for order in record.live:
                live[order.item] += order.quantity
        for orders in past.values():
            for order in orders:
                over[order.item] += order.quantity
        for item, stock in held.items.items():
            if not 0 <= stock.available == stock.total - stock.admitted + stock.released <= stock.total:
                raise Broken(f"I1: item {item} of round {ref.id}: {stock}")
            if (live[item], over[item]) != (stock.admitted - stock.released, stock.released):
                raise Broken(f"I2: {live[item]} live and {over[item]} over of item {item}, the gate counts {stock}")

    # Both

    def _in_streams(self) -> set[int]:
        found: set[int] = set()
        for lane in self._store.contents.lanes.values():
            for payload in lane.entries.values():
                if payload not in self._numbers:
                    self._numbers[payload] = numbers_in(payload)
                found |= self._numbers[payload]
        return found

    def is_sound(self, ref: RoundRef, held: HeldRound) -> bool:
        """True if what the gate has of the round is right."""
        row = self.books.rounds.get(ref.id)
        if held.status is GateStatus.PREPARING or row is None or held.epoch != row.epoch:
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
        holdings = {int(holding.number): holding for mine in self._orders_in(ref) for holding in mine}
        for number, holding in holdings.items():
            row = self.books.orders.get(number)
            if row is not None and (row.item_id or 0) != holding.item:
                raise Broken(f"order {number} is of item {row.item_id} in the ledger, of {holding.item} in the gate")
            if row is None:
                if not holding.live:
                    raise Broken(f"I9: order {number} was released, the ledger has not decided that")
                if number not in streams and number not in self.books.letters:
                    raise Broken(f"I13: order {number} is neither in the stream nor in the ledger")
            elif row.holds_units and not holding.live:
                raise Broken(f"I9: order {number} is {row.state}, and its units are on sale again")
            elif not row.holds_units and holding.live and self.books.releases[number] and not self._is_retired(row):
                raise Broken(f"I7: order {number} is {row.state}, and its units never come back")
        for row in self.books.orders.values():
            of_share = row.round_id == ref.id and lane_in(row.id) == ref.lane
            if of_share and row.holds_units and row.id not in holdings:
                raise Broken(f"I8: order {row.id} is {row.state}, and the gate never admitted it")

    def _is_retired(self, row: OrderRow) -> bool:
        """Then its round takes nothing back any more."""
        return self.books.rounds[row.round_id].retired_ms is not None

    def at_rest(self) -> None:
        """Checks that everything is whole, also what was wounded."""
        streams = self._in_streams()
        for row in self.books.rounds.values():
            for ref in row.shares if row.retired_ms is None else ():
                self.compare(ref, streams)

    def _is_somewhere(self, number: int, streams: set[int]) -> bool:
        return number in self.books.orders or number in streams or number in self.books.letters

    def are_somewhere(self, payloads: Iterable[bytes]) -> set[bytes]:
        """Those that say of which orders they are, and of whose orders none has been lost."""
        streams = self._in_streams()
        numbers = {payload: numbers_in(payload) for payload in payloads}
        return {
            each for each, of in numbers.items() if of and all(self._is_somewhere(number, streams) for number in of)
        }

    def _check_kept(self, number: int, streams: set[int]) -> None:
        if not (self._is_somewhere(number, streams) or number in self.lost):
            raise Broken(f"I11: order {number}, which a buyer was told of, is nowhere")

    @contextmanager
    def losing(self, now_s: float, *, declared: bool = True) -> Iterator[None]:
        """Wraps a step in which the gate forgets things. `declared`: orders that only the gate had may be gone, too."""
        numbers = self._numbers_in_gate()
        before = self._store.contents
        yield
        now = self._store.contents
        for ref in before.rounds:
            row = self.books.rounds[ref.id]
            # One that is not open in its epoch is going to be: from nothing, if it is the first, or from the ledger.
            sound_after = row.epoch - (row.opened_ms is None)
            changed = before.rounds[ref] != now.rounds.get(ref) or before.buyers.get(ref) != now.buyers.get(ref)
            changed = changed or before.past.get(ref) != now.past.get(ref)
            if changed:
                self.ever_lost.add(ref.id)
            if sound_after and changed:
                self.wounded[ref] = sound_after
                self.ever_wounded.add(ref.id)
            if declared and changed:
                self.ever_forgot.add(ref.id)
        if declared:
            self.lost |= numbers - self._in_streams() - self.books.orders.keys() - self.books.letters
        for round_id in sorted({ref.id for ref in (*before.rounds, *now.rounds)}):
            self._note_short(round_id, now_s)
        self._held.clear()

    def _orders_in(self, ref: RoundRef) -> Iterator[tuple[Holding, ...]]:
        yield from (record.live for record in self._store.contents.buyers.get(ref, {}).values())
        yield from self._store.contents.past.get(ref, {}).values()

    def after_loss(self) -> None:
        streams = self._in_streams()
        for number in self.promised:
            self._check_kept(number, streams)

    def _numbers_in_gate(self) -> set[int]:
        holdings = {
            int(holding.number)
            for ref in self._store.contents.buyers
            for mine in self._orders_in(ref)
            for holding in mine
        }
        return holdings | self._in_streams()
