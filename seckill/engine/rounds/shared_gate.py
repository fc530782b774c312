"""Makes rounds with several lanes out of the shares that a gate has in each lane.

A round with one lane goes straight through. Any other round has a share in each of its lanes, which the gate below sees
as a round with a part of the units and of the buyers. Only the buyer's share decides a claim, so lanes do not wait for
each other. A question about the whole round goes to all shares, and the answers are added up.

A share that has too few units for a claim gets them from the others before it refuses the claim: `give` there, `take`
here. A crash between the two leaves nothing to repair. The units are then on their way, every count of units left
includes them, and the next claim that would otherwise be refused brings them to where they were sent.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace

from seckill.domain.admission import Answer, Claim, Holding
from seckill.domain.item import NO_ITEM
from seckill.domain.lane_shares import Move, Share, deal, even_out, on_the_way, units_left, went_back
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundRef
from seckill.domain.space import Space
from seckill.errors import GateError, GateUnavailable
from seckill.failpoints import reached
from seckill.ports.gate import (
    NO_ITEMS,
    Found,
    GateReply,
    GateStatus,
    GateView,
    ItemView,
    MovedLane,
    Opening,
    Pulse,
    Release,
    Released,
    ReleaseReply,
    Sold,
    Update,
)
from seckill.ports.share_gate import Carried, ShareGate
from seckill.telemetry import UNITS_MOVED

# How often a share tries to get the units for a claim while there are enough elsewhere. A try only fails if the units
# are sold or go to another share meanwhile, so one is usually enough.
TRIES_MAX = 10

Shares = dict[int, GateView]  # by lane


class SharedGate:
    """Implements `seckill.ports.gate.Gate`."""

    def __init__(self, gate: ShareGate) -> None:
        self._gate = gate
        # Round → the token of the current rebuild, and what it has filled in so far, by lane and item.
        self._filled: dict[int, tuple[str, dict[int, dict[int, Sold]]]] = {}

    async def admit(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        if ref.lanes == 1:
            return await self._gate.admit(ref, claims)
        lane = ref.lane_of(claims[0].user)
        if any(ref.lane_of(claim.user) != lane for claim in claims):
            raise ValueError("these claims are of buyers of several lanes")
        reply = await self._gate.admit(_share(ref, lane), claims)
        if all(answer.outcome is not Outcome.SOLD_OUT for answer in reply.answers):
            return reply
        return await self._try_again(ref, lane, claims, reply)

    async def _try_again(self, ref: RoundRef, lane: int, claims: Sequence[Claim], reply: GateReply) -> GateReply:
        """Tries again with claims that the share alone had to refuse. A buyer who was admitted stays admitted, whatever
        happens here."""
        answers = list(reply.answers)
        refused = [i for i, answer in enumerate(answers) if answer.outcome is Outcome.SOLD_OUT]
        outcome = Outcome.OVERLOADED  # if the units move away faster than we can fetch them
        for _ in range(TRIES_MAX):
            try:
                standing = await self._gate.standing(ref.every_lane)
                shares = await self._open_shares(ref)
                stocks = {item: _stocks(shares, item) for item in {claims[i].item for i in refused}}
                left = {item: units_left(stock) for item, stock in stocks.items()}
                wanted: Counter[int] = Counter()
                for claim in (claims[i] for i in refused):
                    if claim.quantity <= left[claim.item]:
                        wanted[claim.item] += claim.quantity
                if not wanted:
                    version = sum(share.version for share in shares.values())
                    gone = frozenset(item for item, units in left.items() if item and not units)
                    return replace(reply, version=version, available=units_left(shares), answers=answers, gone=gone)
                for item, units in sorted(wanted.items()):
                    epoch = shares[lane].epoch
                    await self._fetch(ref, lane, epoch, stocks[item], item, min(units, left[item]), standing)
            except GateError:  # another lane may have failed, so it is unknown whether anything is left
                outcome = Outcome.NOT_READY
                break
            try:
                again = await self._gate.admit(_share(ref, lane), [claims[i] for i in refused])
            except GateError as error:
                outcome = Outcome.NOT_READY if isinstance(error, GateUnavailable) else Outcome.UNKNOWN
                break
            for i, answer in zip(refused, again.answers, strict=True):
                answers[i] = answer
            refused = [i for i in refused if answers[i].outcome is Outcome.SOLD_OUT]
            if not refused:
                return replace(again, answers=answers, gone=frozenset())
        for i in refused:
            answers[i] = Answer(outcome)
        return replace(reply, answers=answers, gone=frozenset())

    async def _fetch(
        self,
        ref: RoundRef,
        lane: int,
        epoch: int,
        shares: Mapping[int, Share],
        item: int,
        wanted: int,
        standing: Mapping[int, str],
    ) -> None:
        """Brings the wanted units of an item, or of a round without items, to a lane, as far as they are still where
        they were."""
        missing = wanted - shares[lane].available
        for origin, to, sent in on_the_way(shares):
            # otherwise a server that takes over there would have them again
            await self._gate.assure([origin], standing)
            came = await self._take(ref, to, epoch, origin, sent, item)
            missing -= came if to == lane else 0
        others = sorted((other for other in shares if other != lane), key=lambda other: -shares[other].available)
        for other in others:
            donor = shares[other]
            if missing <= 0 or donor.available <= 0:
                return
            # Half of what it has, so that the next claims need no other call.
            units = min(donor.available, max(missing, donor.available // 2))
            sent_now = await self._gate.give(_share(ref, other), epoch, lane, donor.sent.get(lane, 0), units, item)
            reached("lanes.give.after")
            if sent_now:
                missing -= await self._take(ref, lane, epoch, other, sent_now, item)
                reached("lanes.take.after")

    async def _take(self, ref: RoundRef, lane: int, epoch: int, origin: int, sent: int, item: int) -> int:
        came = await self._gate.take(_share(ref, lane), epoch, origin, sent, item) or 0
        UNITS_MOVED.inc(came)
        return came

    async def _open_shares(self, ref: RoundRef) -> Shares:
        shares = await self._read(ref)
        if shares is None or not _sells(_whole(shares)) or len({s.epoch for s in shares.values()}) > 1:
            raise GateUnavailable(f"Not all lanes of round {ref.id} are open.")
        return shares

    async def _read(self, ref: RoundRef) -> Shares | None:
        """Returns None if one of the shares is missing."""
        views = await asyncio.gather(*[self._gate.inspect(_share(ref, lane)) for lane in ref.every_lane])
        found = {lane: view for lane, view in zip(ref.every_lane, views, strict=True) if view is not None}
        return found if len(found) == ref.lanes else None

    async def open_round(self, round_: Round) -> Opening:
        first, *others = _shares(round_)
        opening = await self._gate.open_round(first)
        found = [opening.found]
        found += [(await self._gate.open_round(share, opening.opened_ms)).found for share in others]
        for worst in (Found.OTHER_EPOCH, Found.REMNANT, Found.ROUND):
            if worst in found:
                return Opening(worst, opening.opened_ms)
        return opening

    async def update_round(self, round_: Round) -> Update:
        updates = [await self._gate.update_round(share) for share in _shares(round_)]
        for worst in (Update.MISSING, Update.OTHER_EPOCH, Update.OTHER_OPENING, Update.APPLIED):
            if worst in updates:
                return worst
        return Update.CURRENT

    async def release(self, ref: RoundRef, releases: Sequence[Release]) -> ReleaseReply:
        if ref.lanes == 1:
            return await self._gate.release(ref, releases)
        results = [Released.UNKNOWN] * len(releases)
        for lane in ref.every_lane:
            of_lane = [i for i, release in enumerate(releases) if release.number.lane == lane]
            for i, result in zip(of_lane, await self._release(ref, lane, [releases[i] for i in of_lane]), strict=True):
                results[i] = result
        try:
            shares = await self._read(ref) or {}
        except GateError:  # the version only serves an announcement, on which nothing relies
            shares = {}
        return ReleaseReply(sum(share.version for share in shares.values()), results)

    async def _release(self, ref: RoundRef, lane: int, releases: Sequence[Release]) -> Sequence[Released]:
        if not releases:
            return []
        try:
            return (await self._gate.release(_share(ref, lane), releases)).results
        except GateError:  # one lane must not hold up the others
            return [Released.NOT_YET] * len(releases)

    async def fence(self, round_: Round) -> None:
        for share in _shares(round_):
            await self._gate.fence(share)

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        if round_.lanes > 1:
            items = [item.id for item in round_.items] or [NO_ITEM]
            self._filled[round_.id] = token, {lane: dict.fromkeys(items, Sold()) for lane in round_.every_lane}
        return all([await self._gate.begin_rebuild(share, token) for share in _shares(round_)])

    async def fill(self, ref: RoundRef, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool:
        if ref.lanes == 1:
            return await self._gate.fill(ref, token, holdings)
        for lane, part in _by_lane(ref, holdings).items():
            if not await self._gate.fill(_share(ref, lane), token, part):
                return False
            current, units = self._filled[ref.id]
            if current != token:
                return False
            for holding in (holding for held in part.values() for holding in held):
                units[lane][holding.item] = units[lane][holding.item].and_of(holding)
        return True

    async def finish_rebuild(
        self, ref: RoundRef, token: str, admitted: int, released: int, items: Mapping[int, Sold] = NO_ITEMS
    ) -> int | None:
        if ref.lanes == 1:
            return await self._gate.finish_rebuild(ref, token, admitted, released, items)
        current, filled = self._filled.get(ref.id, ("", {}))
        shares = await self._read(ref)
        if current != token or shares is None:
            return None
        moves = {item: _moves(ref, item, shares, filled) for item in items or [NO_ITEM]}
        opened_ms = 0
        for place, lane in enumerate(ref.every_lane):
            by_item = {item: _carried(ref, place, of_item) for item, of_item in moves.items()}
            carried = Carried(items=by_item) if items else by_item[NO_ITEM]
            admitted = sum(sold.admitted for sold in filled[lane].values())
            released = sum(sold.released for sold in filled[lane].values())
            finished_ms = await self._gate.finish_rebuild(
                _share(ref, lane), token, admitted, released, filled[lane] if items else NO_ITEMS, opened_ms, carried
            )
            if finished_ms is None:
                return None
            opened_ms = finished_ms
        if self._filled.get(ref.id, ("", {}))[0] == token:  # another process may have begun the rebuild again
            del self._filled[ref.id]
        return opened_ms

    async def forget(self, ref: RoundRef) -> None:
        for lane in ref.every_lane:
            await self._gate.forget(_share(ref, lane))

    async def inspect(self, ref: RoundRef) -> GateView | None:
        if ref.lanes == 1:
            return await self._gate.inspect(ref)
        shares = await self._read(ref)
        return None if shares is None else _whole(shares)

    async def pulses(self, refs: Sequence[RoundRef]) -> tuple[int, list[Pulse | None]]:
        now_ms, pulses = await self._gate.pulses([ref for ref in refs if ref.lanes == 1])
        of_one_lane = iter(pulses)
        return now_ms, [next(of_one_lane) if ref.lanes == 1 else await self._pulse(ref) for ref in refs]

    async def _pulse(self, ref: RoundRef) -> Pulse | None:
        """Also None if a lane has gone back in time and forgotten units that it sent: those units exist twice."""
        shares = await self._read(ref)
        if shares is None:
            return None
        view = _whole(shares)
        if not _sells(view):
            return None
        if _went_back(shares, shares):  # as far as one reading can tell
            later = await self._read(ref)
            if later is None or _went_back(shares, later):
                return None
        items = {item: stock.available for item, stock in view.items.items()}
        return Pulse(view.version, view.available, view.admitted, view.epoch, view.revision, items)

    async def damage(self, ref: RoundRef) -> Sequence[str]:
        return [each for lane in ref.every_lane for each in await self._gate.damage(_share(ref, lane))]

    async def discard_damage(self, lanes: Collection[int]) -> Sequence[str]:
        return await self._gate.discard_damage(lanes)

    async def holdings(self, refs: Sequence[RoundRef], user: str) -> list[tuple[Holding, ...] | None]:
        return await self._gate.holdings([_share(ref, ref.lane_of(user)) for ref in refs], user)

    async def remembered(
        self, ref: RoundRef, holdings: Mapping[str, Sequence[Holding]]
    ) -> dict[str, dict[OrderNumber, Holding]]:
        found: dict[str, dict[OrderNumber, Holding]] = {}
        for lane, part in _by_lane(ref, holdings).items():
            found |= await self._gate.remembered(_share(ref, lane), part)
        return found

    async def buyers(self, ref: RoundRef) -> AsyncIterator[Sequence[str]]:
        for lane in ref.every_lane:
            async for portion in self._gate.buyers(_share(ref, lane)):
                yield portion

    async def orders(self, ref: RoundRef) -> AsyncIterator[Mapping[str, Sequence[Holding]]]:
        for lane in ref.every_lane:
            async for portion in self._gate.orders(_share(ref, lane)):
                yield portion

    async def bind(self, ledger: str) -> None:
        await self._gate.bind(ledger)

    async def check(self, durability: str) -> list[str]:
        return await self._gate.check(durability)

    async def watch_servers(self) -> Mapping[str, str]:
        return await self._gate.watch_servers()

    def full_servers(self) -> Collection[str]:
        return self._gate.full_servers()

    async def spaces(self) -> Sequence[Space]:
        return await self._gate.spaces()

    async def moved_lanes(self, lanes: Collection[int]) -> dict[int, MovedLane]:
        return await self._gate.moved_lanes(lanes)

    async def standing(self, lanes: Collection[int]) -> Mapping[int, str]:
        return await self._gate.standing(lanes)

    async def assure(self, lanes: Collection[int], standing: Mapping[int, str]) -> None:
        await self._gate.assure(lanes, standing)

    async def vouch(self, lane: int, server: str, *, for_good: bool) -> None:
        await self._gate.vouch(lane, server, for_good=for_good)

    async def ping(self) -> None:
        await self._gate.ping()

    async def close(self) -> None:
        await self._gate.close()


def _share(ref: RoundRef, lane: int) -> RoundRef:
    return RoundRef(id=ref.id, lane=lane)


def _by_lane(ref: RoundRef, holdings: Mapping[str, Sequence[Holding]]) -> dict[int, dict[str, Sequence[Holding]]]:
    by_lane: dict[int, dict[str, Sequence[Holding]]] = {}
    for user, held in holdings.items():
        by_lane.setdefault(ref.lane_of(user), {})[user] = held
    return by_lane


def _shares(round_: Round) -> list[Round]:
    if not round_.items:
        dealt = zip(round_.every_lane, deal(round_.total, round_.lanes), strict=True)
        return [replace(round_, lane=lane, lanes=1, total=units) for lane, units in dealt]
    of_items = [deal(item.total, round_.lanes) for item in round_.items]
    shares = []
    for place, lane in enumerate(round_.every_lane):
        items = tuple(item._replace(total=dealt[place]) for item, dealt in zip(round_.items, of_items, strict=True))
        total = sum(item.total for item in items)
        shares.append(replace(round_, lane=lane, lanes=1, total=total, items=items))
    return shares


def _stocks(shares: Shares, item: int) -> Mapping[int, Share]:
    """What each lane has of an item, or of a round without items."""
    return {lane: share.items[item] for lane, share in shares.items()} if item else shares


def _went_back(shares: Shares, later: Shares) -> bool:
    items = {item for share in shares.values() for item in share.items}
    return any(went_back(_items_of(shares, item), _items_of(later, item)) for item in items) or went_back(shares, later)


def _moves(ref: RoundRef, item: int, shares: Shares, filled: Mapping[int, Mapping[int, Sold]]) -> list[Move]:
    units = sum(share.items[item].dealt if item else share.dealt for share in shares.values())
    live = [filled[lane][item].admitted - filled[lane][item].released for lane in ref.every_lane]
    return even_out(units, live)


def _carried(ref: RoundRef, place: int, moves: Sequence[Move]) -> Carried:
    return Carried(
        sent={ref.lane + move.to: move.units for move in moves if move.origin == place},
        got={ref.lane + move.origin: move.units for move in moves if move.to == place},
    )


def _sells(view: GateView) -> bool:
    return view.whole and view.status is not GateStatus.PREPARING


def _whole(shares: Shares) -> GateView:
    views = list(shares.values())
    # The last lane to be updated speaks for all: what it does not have yet is not in force.
    last = min(views, key=lambda view: (view.epoch, view.revision))
    closed = any(view.status is GateStatus.PREPARING for view in views)
    return replace(
        last,
        total=sum(view.dealt for view in views),
        dealt=sum(view.dealt for view in views),
        available=units_left(shares),
        admitted=sum(view.admitted for view in views),
        released=sum(view.released for view in views),
        version=sum(view.version for view in views),
        buyers=sum(view.buyers for view in views),
        backlog=sum(view.backlog for view in views),
        status=GateStatus.PREPARING if closed else last.status,
        sold_out_ms=max((view.sold_out_ms for view in views if view.sold_out_ms is not None), default=None),
        whole=all(view.whole for view in views) and len({frozenset(view.items) for view in views}) == 1,
        sent={},
        got={},
        items={item: _whole_item(_items_of(shares, item)) for item in views[0].items},
    )


def _items_of(shares: Shares, item: int) -> dict[int, ItemView]:
    """An item that some of the lanes have forgotten is not whole."""
    return {lane: share.items[item] for lane, share in shares.items() if item in share.items}


def _whole_item(shares: Mapping[int, ItemView]) -> ItemView:
    dealt = sum(share.dealt for share in shares.values())
    return ItemView(
        total=dealt,
        dealt=dealt,
        available=units_left(shares),
        admitted=sum(share.admitted for share in shares.values()),
        released=sum(share.released for share in shares.values()),
    )
