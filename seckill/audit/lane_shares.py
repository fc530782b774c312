"""Rounds with several lanes, as the auditor sees them: a share in each lane, and their sums.

Each share is read in one instant, but the shares one after another. Units that move between them meanwhile do no harm:
the counts of units sent and got only grow, and their difference is added to the available units. A lane must not have
got more than was sent to it; the units sent are read after those got.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol
from zlib import crc32

from seckill.audit.gate import PREPARING, Absent, GateItem, GateReader, GateRound, Held, read_orders, read_record
from seckill.audit.ledger import LedgerRound
from seckill.audit.report import Notes, finding_about


@dataclass(frozen=True, slots=True)
class ShareRef:
    id: int
    lane: int


class Spread(Protocol):
    """A round and its lanes."""

    @property
    def id(self) -> int: ...

    @property
    def lane(self) -> int: ...

    @property
    def lanes(self) -> int: ...


def shares_of(round_: Spread) -> list[ShareRef]:
    return [ShareRef(round_.id, round_.lane + place) for place in range(round_.lanes)]


def lane_of(round_: Spread, user: str) -> int:
    return round_.lane if round_.lanes == 1 else round_.lane + crc32(user.encode()) % round_.lanes


def lanes_of(rounds: Sequence[Spread]) -> list[int]:
    return sorted({share.lane for round_ in rounds for share in shares_of(round_)})


@dataclass(frozen=True, slots=True)
class Shares:
    """One reading of all shares, and another one after it."""

    first: Sequence[GateRound]
    later: Sequence[GateRound]

    def forgotten(self) -> Iterator[tuple[int, int, int, int]]:
        """Yields (to, from, got, sent) wherever more units were got than were ever sent. Nothing can be said across
        epochs."""
        later = {(share.lane, share.epoch): share for share in self.later if not share.preparing}
        for share in self.first:
            for origin, got in share.got.items():
                donor = later.get((origin, share.epoch))
                if donor is not None and got > donor.sent.get(share.lane, 0):
                    yield share.lane, origin, got, donor.sent.get(share.lane, 0)


async def read_rounds(gate: GateReader, rounds: Sequence[Spread]) -> list[tuple[GateRound | Absent, Shares | None]]:
    """Returns each round as a whole, in order, with the shares of those that have several."""
    refs = [shares_of(round_) for round_ in rounds]
    spread = [share for shares in refs if len(shares) > 1 for share in shares]
    first = iter(await gate.rounds([share for shares in refs for share in shares]))
    later = iter(await gate.rounds(spread) if spread else [])
    found: list[tuple[GateRound | Absent, Shares | None]] = []
    for shares in refs:
        mine = [next(first) for _ in shares]
        if len(mine) == 1:
            found.append((mine[0], None))
            continue
        again = [next(later) for _ in shares]
        there = [share for share in mine if isinstance(share, GateRound)]
        if len(there) < len(mine):
            found.append((next(share for share in mine if isinstance(share, Absent)), None))
        else:
            found.append((_whole(there), Shares(there, [share for share in again if isinstance(share, GateRound)])))
    return found


def _whole(shares: Sequence[GateRound]) -> GateRound:
    behind = min(shares, key=lambda share: (share.epoch, share.revision))
    oldest = [share.oldest_entry_ms for share in shares if share.oldest_entry_ms is not None]
    sent_not_got = sum(sum(share.sent.values()) - sum(share.got.values()) for share in shares)
    items = sorted({item for share in shares for item in share.items})
    return replace(
        behind,
        status=PREPARING if any(share.preparing for share in shares) else behind.status,
        total=sum(share.dealt for share in shares),
        dealt=sum(share.dealt for share in shares),
        available=sum(share.available for share in shares) + sent_not_got,
        admitted=sum(share.admitted for share in shares),
        released=sum(share.released for share in shares),
        buyers=sum(share.buyers for share in shares),
        buyers_gone=sum(share.buyers_gone for share in shares),
        backlog=sum(share.backlog for share in shares),
        oldest_entry_ms=min(oldest, default=None),
        sent={},
        got={},
        items={item: _whole_item([share.items[item] for share in shares if item in share.items]) for item in items},
    )


def _whole_item(stocks: Sequence[GateItem]) -> GateItem:
    sent_not_got = sum(sum(stock.sent.values()) - sum(stock.got.values()) for stock in stocks)
    dealt = sum(stock.dealt for stock in stocks)
    return GateItem(
        total=dealt,
        dealt=dealt,
        available=sum(stock.available for stock in stocks) + sent_not_got,
        admitted=sum(stock.admitted for stock in stocks),
        released=sum(stock.released for stock in stocks),
        sent={},
        got={},
    )


def judge_shares(shares: Shares, before: LedgerRound, after: LedgerRound, notes: Notes) -> None:
    """Judges what the sums of a round do not show."""
    add = partial(finding_about, after)
    for place, share in enumerate(shares.first):
        sent, got = sum(share.sent.values()), sum(share.got.values())
        if share.total != share.dealt - sent + got:
            says = f"lane {share.lane} has {share.total} units, but was dealt {share.dealt}, sent {sent} and got {got}"
            notes.add(add("stock", "units", says))
        due = share.total - share.admitted + share.released
        if share.available != due or not 0 <= share.available <= share.total:
            says = (
                f"{share.available} units available in lane {share.lane}, but {share.total} − {share.admitted} "
                f"admitted + {share.released} released = {due}"
            )
            notes.add(add("stock", "sum", says))
        if (share.epoch, share.opened_ms) != (after.epoch, after.opened_ms) and before.epoch == after.epoch:
            kind = "other_epoch" if share.epoch != after.epoch else "other_opening"
            notes.add(add("epoch", kind, f"lane {share.lane} sells in another epoch or from another opening"))
        # Each item is dealt separately.
        parts = list(after.items.values()) or [after.total]
        dealt = sum(units // after.lanes + (place < units % after.lanes) for units in parts)
        if not share.revision == before.revision == after.revision:
            continue
        if share.dealt != dealt:
            says = f"lane {share.lane} was dealt {share.dealt} units of {after.total}, its share is {dealt}"
            notes.add(add("epoch", "other_rules", says))
        if share.rules != after.rules:
            says = f"in lane {share.lane} {share.rules}; in the ledger {after.rules}"
            notes.add(add("epoch", "other_rules", says))
    for to, origin, got, sent in shares.forgotten():
        says = f"lane {to} has got {got} units from lane {origin}, which has sent only {sent}"
        notes.add(add("stock", "gift", says))


async def all_records(gate: GateReader, round_: Spread) -> AsyncIterator[tuple[ShareRef, dict[str, str]]]:
    """Yields shares with their records, in portions. They include every buyer who was there at the start, each once."""
    for share in shares_of(round_):
        async for portion in _each_once(gate.all_records(share)):
            yield share, portion


async def all_past(gate: GateReader, round_: Spread) -> AsyncIterator[tuple[ShareRef, dict[str, str]]]:
    """The same for orders that are over, by their places."""
    for share in shares_of(round_):
        async for portion in _each_once(gate.all_past(share)):
            yield share, portion


async def _each_once(portions: AsyncIterator[dict[str, str]]) -> AsyncIterator[dict[str, str]]:
    seen: set[int] = set()  # a hash is enough to recognise a field and takes little room
    async for portion in portions:
        fresh = {field: value for field, value in portion.items() if hash(field) not in seen}
        seen.update(map(hash, fresh))
        yield fresh


async def orders_of(
    gate: GateReader, round_: Spread, wanted: Mapping[str, Sequence[Held]]
) -> dict[str, dict[int, Held]]:
    """Returns the gate's data on these orders of these users. An order moves from the record to `past` and never back,
    so they are read in this sequence."""
    by_lane: dict[int, list[str]] = {}
    for user in wanted:
        by_lane.setdefault(lane_of(round_, user), []).append(user)
    found: dict[str, dict[int, Held]] = {user: {} for user in wanted}
    for lane, users in by_lane.items():
        share = ShareRef(round_.id, lane)
        for user, text in (await gate.records(share, users)).items():
            record = read_record(lane, text)
            found[user] = {} if record is None else {order.number: order for order in record.orders}
        places = {
            order.place(user): user for user in users for order in wanted[user] if order.number not in found[user]
        }
        for place, text in (await gate.past(share, list(places))).items():
            found[places[place]] |= {order.number: order for order in read_orders(lane, text) or ()}
    return found
