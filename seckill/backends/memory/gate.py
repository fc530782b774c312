"""The gate in this process, built on the pure rule of admission. It is the reference for the other gates, and stores
nothing permanently."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from msgspec import structs

from seckill.backends.memory.shared_limits import add_person, beside, tell_siblings, with_persons
from seckill.backends.memory.store import HeldRound, MemoryStore, Travel, at_once, one_call
from seckill.domain.admission import Admission, Answer, Claim, Holding, Record, RoundState, admit
from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundRef, RoundStatus
from seckill.domain.space import Space
from seckill.errors import GateUnavailable, GateUnclear, StartError
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
from seckill.ports.queue_entry import write_entry, write_together
from seckill.ports.share_gate import NOTHING_CARRIED, Carried

BUYERS_PORTION = 1000
DAYS_KEPT = 40
# Versions for each epoch, so that the first one after a rebuild is never one that a node has seen before.
VERSIONS_OF_AN_EPOCH = 1_000_000_000


class MemoryGate:
    def __init__(self, store: MemoryStore, *, backlog_max: int, travel: Travel = at_once) -> None:
        self._store = store
        self._travel = travel
        self._backlog_max = backlog_max

    def _reached(self) -> AbstractAsyncContextManager[None]:
        return one_call(self._travel, GateUnavailable, GateUnclear)

    async def admit(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        async with self._reached():
            return self._decide(ref, claims)

    def _decide(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        """Decides everything, then writes everything."""
        now_ms = self._store.now_ms()
        held = self._round(ref)
        today = _day(now_ms)
        state = None
        if held is not None and held.status is not GateStatus.PREPARING and self._is_whole(ref, held):
            state = _state(held, ref, self._store, today)
        before = self._store.contents.buyers.get(ref, {})
        records: dict[str, Record] = {}
        contents = self._store.contents
        joined: list[Claim] = []  # admitted claims
        answers: list[Answer] = []
        entries: list[Admission] = []
        for claim in claims:
            if state is not None:  # the rule gets one buyer at a time, so that it does not copy the others
                mine = records.get(claim.user) or before.get(claim.user, Record())
                state = replace(state, buyers={claim.user: mine})
            others = beside(contents, ref, claim, records, joined, self._is_whole)
            state, answer = admit(state, claim, now_ms, self._backlog_max, others)
            answers.append(answer)
            if answer.outcome is Outcome.ADMITTED:
                assert state is not None
                assert held is not None
                records[claim.user] = state.buyers[claim.user]
                joined.append(claim)
                entries.append(_entry(ref, held.epoch, claim, answer.holdings[0], now_ms))
        if held is None or state is None:
            return GateReply(now_ms=now_ms, version=0, available=None, answers=answers)
        if entries:
            buyers = self._store.contents.buyers.setdefault(ref, {})
            buyers.update(records)
            tell_siblings(contents, ref)
            for claim in joined:
                add_person(contents, ref, claim.person, claim.user)
            taken = {item: held.items[item].available - left for item, left in state.items.items()}
            self._put(
                ref,
                replace(
                    held,
                    available=state.available,
                    admitted=state.admitted,
                    buyers=len(buyers),
                    persons=len(contents.persons.get(ref, {})),
                    sold_out_ms=held.sold_out_ms if state.available else now_ms,
                    items=_changed(held.items, taken, available=-1, admitted=1),
                ),
            )
            self._count(ref.lane, today, state.counter, now_ms)
            traces = [claim.trace for claim in joined]
            if self._store.together and len(entries) > 1 and not any(traces):
                self._store.add_shared(ref.lane, write_together(entries), len(entries))
            else:
                self._store.add_entries(ref.lane, list(map(write_entry, entries)), traces)
        refused = [answer.outcome is Outcome.SOLD_OUT for answer in answers]
        sold_out = {claim.item for claim, is_refused in zip(claims, refused, strict=True) if is_refused}
        gone = frozenset(item for item in sold_out if state.items.get(item) == 0)
        return GateReply(now_ms=now_ms, version=held.version, available=state.available, answers=answers, gone=gone)

    def _count(self, lane: int, today: str, counter: int, now_ms: int) -> None:
        oldest = _day(now_ms, DAYS_KEPT)
        days = self._store.contents.days.get(lane, {})
        self._store.contents.days[lane] = {day: n for day, n in days.items() if day >= oldest} | {today: counter}

    async def open_round(self, round_: Round, opened_ms: int = 0) -> Opening:
        async with self._reached():
            held = self._round(round_.ref)
            if held is not None:
                found = Found.ROUND if held.epoch == round_.epoch else Found.OTHER_EPOCH
                return Opening(found, held.opened_ms or 0)
            if self._store.contents.buyers.get(round_.ref) or self._store.contents.past.get(round_.ref):
                return Opening(Found.REMNANT, 0)
            opened_ms = opened_ms or self._store.now_ms()
            self._put(round_.ref, _new(round_, version=1, available=round_.total, opened_ms=opened_ms))
            return Opening(Found.NOTHING, opened_ms)

    async def update_round(self, round_: Round) -> Update:
        assert round_.opened_ms is not None, "open it first"
        async with self._reached():
            held = self._round(round_.ref)
            if held is None:
                return Update.MISSING
            if held.epoch != round_.epoch:
                return Update.OTHER_EPOCH
            if held.opened_ms != round_.opened_ms:
                return Update.OTHER_OPENING
            if round_.revision <= held.revision:
                return Update.CURRENT
            added = round_.total - held.dealt
            of_items = {item.id: item.total - held.items[item.id].dealt for item in round_.items}
            if min(added, *of_items.values(), 0) < 0:
                raise GateUnavailable("The gate refuses: units can be added to a round, not taken away.")
            changed = replace(
                held,
                revision=round_.revision,
                status=GateStatus(round_.gate_word),
                limit_per_buyer=round_.limit_per_buyer,
                cool_down_s=round_.cool_down_s,
                begins_ms=round_.begins_ms,
                ends_ms=round_.ends_ms,
                dealt=round_.total,
                total=held.total + added,
                available=held.available + added,
                version=held.version + 1,
                items=_changed(held.items, of_items, dealt=1, total=1, available=1),
            )
            self._put(round_.ref, changed)
            return Update.APPLIED

    async def release(self, ref: RoundRef, releases: Sequence[Release]) -> ReleaseReply:
        async with self._reached():
            results = [self._release(ref, release) for release in releases]
            held = self._round(ref)
            return ReleaseReply(0 if held is None else held.version, results)

    def _release(self, ref: RoundRef, release: Release) -> Released:
        held = self._round(ref)
        if held is None or held.status is GateStatus.PREPARING or held.epoch < release.epoch:
            return Released.NOT_YET
        if not self._is_whole(ref, held):
            return Released.NOT_YET
        buyers = self._store.contents.buyers.get(ref, {})
        mine = buyers.get(release.user, Record())
        found = next((holding for holding in mine.live if holding.number == release.number), None)
        if found is None:
            place = _place(release.user, release.request_id, release.number)
            over = self._store.contents.past.get(ref, {}).get(place, ())
            is_over = any(holding.number == release.number for holding in over)
            return Released.ALREADY if is_over else Released.UNKNOWN
        buyers[release.user] = mine.without(found, self._store.now_ms(), lapsed=release.lapsed)
        self._put_by(ref, release.user, structs.replace(found, live=False))
        changed = replace(
            held,
            available=held.available + found.quantity,
            released=held.released + found.quantity,
            version=held.version + 1,
            past=self._past(ref),
            items=_changed(held.items, {found.item: found.quantity}, available=1, released=1),
        )
        self._put(ref, changed)
        return Released.RELEASED

    async def fence(self, round_: Round) -> None:
        async with self._reached():
            held = self._round(round_.ref)
            if held is not None and held.epoch <= round_.epoch:
                # Closed so that no update can open it again.
                self._put(round_.ref, replace(held, status=GateStatus.PREPARING, opened_ms=0))

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        async with self._reached():
            held = self._round(round_.ref)
            if held is not None and held.epoch >= round_.epoch and held.status is not GateStatus.PREPARING:
                return False
            begun = _new(round_, version=round_.epoch * VERSIONS_OF_AN_EPOCH, available=0, opened_ms=None)
            self._store.contents.buyers.pop(round_.ref, None)
            self._store.contents.past.pop(round_.ref, None)
            self._store.contents.persons.pop(round_.ref, None)
            self._put(round_.ref, replace(begun, rebuild=token, begun_s=self._store.now_ms() // 1000))
            return True

    async def fill(self, ref: RoundRef, token: str, holdings: Mapping[str, Sequence[Holding]]) -> bool:
        async with self._reached():
            begun = self._rebuilding(ref, token)
            if begun is None:
                return False
            now_ms = self._store.now_ms()
            records = {user: Record.of(held, now_ms) for user, held in holdings.items()}
            buyers = self._store.contents.buyers.setdefault(ref, {})
            new_buyers, past = len(records.keys() - buyers.keys()), self._past(ref)
            buyers.update(records)
            for user, held in holdings.items():
                for holding in held:
                    if not holding.live:
                        self._put_by(ref, user, structs.replace(holding, lapsed_ms=0))
            new_past = self._past(ref) - past
            for user, held in holdings.items():
                for holding in held:
                    add_person(self._store.contents, ref, holding.person, user)
            persons = len(self._store.contents.persons.get(ref, {}))
            filled = replace(begun, buyers=begun.buyers + new_buyers, past=begun.past + new_past, persons=persons)
            self._put(ref, filled)
            return True

    def _put_by(self, ref: RoundRef, user: str, over: Holding) -> None:
        past = self._store.contents.past.setdefault(ref, {})
        place = _place(user, over.request_id, over.number)
        past[place] = (*past.get(place, ()), over)

    async def finish_rebuild(
        self,
        ref: RoundRef,
        token: str,
        admitted: int,
        released: int,
        items: Mapping[int, Sold] = NO_ITEMS,
        opened_ms: int = 0,
        carried: Carried = NOTHING_CARRIED,
    ) -> int | None:
        while True:
            async with self._reached():
                held = self._rebuilding(ref, token)
                if held is None:
                    return None
                now_ms = self._store.now_ms()
                left_ms = (held.begun_s + 1) * 1000 - now_ms
                if left_ms <= 0:
                    total = held.total + carried.units
                    finished = replace(
                        held,
                        admitted=admitted,
                        released=released,
                        total=total,
                        available=total - admitted + released,
                        sent=carried.sent,
                        got=carried.got,
                        items={
                            item: _rebuilt(stock, items[item], carried.items.get(item, NOTHING_CARRIED))
                            for item, stock in held.items.items()
                        },
                        opened_ms=opened_ms or now_ms,
                        rebuild=None,
                    )
                    self._put(ref, finished)
                    return finished.opened_ms
            # Order numbers of the second in which the rebuild began may have been given out before the loss.
            await asyncio.sleep(left_ms / 1000)

    def _rebuilding(self, ref: RoundRef, token: str) -> HeldRound | None:
        """Returns None if another rebuild has begun since, or if this one is finished."""
        held = self._round(ref)
        return held if held is not None and held.rebuild == token else None

    async def give(self, ref: RoundRef, epoch: int, to: int, sent: int, units: int, item: int = NO_ITEM) -> int | None:
        async with self._reached():
            return self._give(ref, epoch, to, sent, units, item)

    def _give(self, ref: RoundRef, epoch: int, to: int, sent: int, units: int, item: int) -> int | None:
        held = self._open(ref, epoch)
        if held is None:
            return None
        stock = held.items[item] if item else held
        known = stock.sent.get(to, 0)
        giving = min(units, stock.available)
        if known != sent or giving <= 0:
            return known
        rest = replace(held, total=held.total - giving, available=held.available - giving)
        counts = {**stock.sent, to: sent + giving}
        if not item:
            self._put(ref, replace(rest, sent=counts))
            return sent + giving
        left = _changed(held.items, {item: giving}, total=-1, available=-1)
        self._put(ref, replace(rest, items={**left, item: replace(left[item], sent=counts)}))
        return sent + giving

    async def take(self, ref: RoundRef, epoch: int, origin: int, sent: int, item: int = NO_ITEM) -> int | None:
        async with self._reached():
            return self._take(ref, epoch, origin, sent, item)

    def _take(self, ref: RoundRef, epoch: int, origin: int, sent: int, item: int) -> int | None:
        held = self._open(ref, epoch)
        if held is None:
            return None
        stock = held.items[item] if item else held
        coming = sent - stock.got.get(origin, 0)
        if coming <= 0:
            return 0
        more = replace(held, total=held.total + coming, available=held.available + coming)
        counts = {**stock.got, origin: sent}
        if not item:
            self._put(ref, replace(more, got=counts))
            return coming
        there = _changed(held.items, {item: coming}, total=1, available=1)
        self._put(ref, replace(more, items={**there, item: replace(there[item], got=counts)}))
        return coming

    def _open(self, ref: RoundRef, epoch: int) -> HeldRound | None:
        held = self._round(ref)
        if held is None or held.epoch != epoch or held.status is GateStatus.PREPARING or not self._adds_up(held):
            return None
        return held

    async def forget(self, ref: RoundRef) -> None:
        async with self._reached():
            self._store.contents.rounds.pop(ref, None)
            self._store.contents.buyers.pop(ref, None)
            self._store.contents.past.pop(ref, None)
            self._store.contents.persons.pop(ref, None)

    async def inspect(self, ref: RoundRef) -> GateView | None:
        async with self._reached():
            held = self._round(ref)
            if held is None:
                return None
            return GateView(
                now_ms=self._store.now_ms(),
                total=held.total,
                available=held.available,
                admitted=held.admitted,
                released=held.released,
                limit_per_buyer=held.limit_per_buyer,
                begins_ms=held.begins_ms,
                ends_ms=held.ends_ms,
                status=held.status,
                epoch=held.epoch,
                version=held.version,
                revision=held.revision,
                buyers=len(self._store.contents.buyers.get(ref, {})),
                backlog=self._store.backlog(ref.lane),
                dealt=held.dealt,
                sold_out_ms=held.sold_out_ms,
                whole=self._is_whole(ref, held) and self._adds_up(held),
                sent=_together([held.sent, *(item.sent for item in held.items.values())]),
                got=_together([held.got, *(item.got for item in held.items.values())]),
                items=held.items,
            )

    async def pulses(self, refs: Sequence[RoundRef]) -> tuple[int, list[Pulse | None]]:
        async with self._reached():
            return self._store.now_ms(), [self._pulse(ref) for ref in refs]

    async def damage(self, ref: RoundRef) -> Sequence[str]:
        """Finds nothing: no other program writes here."""
        return []

    async def discard_damage(self, lanes: Collection[int]) -> Sequence[str]:
        return []

    async def holdings(self, refs: Sequence[RoundRef], user: str) -> list[tuple[Holding, ...] | None]:
        async with self._reached():
            return [self._live(ref, user) for ref in refs]

    def _live(self, ref: RoundRef, user: str) -> tuple[Holding, ...] | None:
        record = self._store.contents.buyers.get(ref, {}).get(user)
        if record is None:
            return None if self._pulse(ref) is None else ()
        return record.live

    async def remembered(
        self, ref: RoundRef, holdings: Mapping[str, Sequence[Holding]]
    ) -> dict[str, dict[OrderNumber, Holding]]:
        async with self._reached():
            buyers, past = self._store.contents.buyers.get(ref, {}), self._store.contents.past.get(ref, {})
            found = {user: {held.number: held for held in buyers.get(user, Record()).live} for user in holdings}
            for user, mine in holdings.items():
                for wanted in mine:
                    place = _place(user, wanted.request_id, wanted.number)
                    found[user] |= {held.number: held for held in past.get(place, ())}
            return found

    async def buyers(self, ref: RoundRef) -> AsyncIterator[Sequence[str]]:
        async with self._reached():
            users = list(self._store.contents.buyers.get(ref, {}))
        for start in range(0, len(users), BUYERS_PORTION):
            yield users[start : start + BUYERS_PORTION]

    async def orders(self, ref: RoundRef) -> AsyncIterator[Mapping[str, Sequence[Holding]]]:
        async with self._reached():
            live = with_persons(self._store.contents, ref)
            past = list(self._store.contents.past.get(ref, {}).items())
        yield live
        for (user, _), over in past:
            yield {user: over}

    async def bind(self, ledger: str) -> None:
        async with self._reached():
            if self._store.contents.ledger is None:
                self._store.contents.ledger = ledger
            if self._store.contents.ledger != ledger:
                raise StartError("This memory holds the rounds of another database: use one for each database.")

    async def check(self, durability: str) -> list[str]:
        """Reminds the operator that this gate stores nothing permanently. There is no server whose settings could be
        wrong."""
        return []

    async def watch_servers(self) -> Mapping[str, str]:
        return {}

    def full_servers(self) -> Collection[str]:
        return ()

    async def spaces(self) -> Sequence[Space]:
        return ()

    async def moved_lanes(self, lanes: Collection[int]) -> dict[int, MovedLane]:
        return {}

    async def standing(self, lanes: Collection[int]) -> Mapping[int, str]:
        return {}

    async def assure(self, lanes: Collection[int], standing: Mapping[int, str]) -> None:
        """Does nothing: there is no server that could take over."""

    async def vouch(self, lane: int, server: str, *, for_good: bool) -> None:
        """Does nothing: there is one memory, and nothing can replace it."""

    async def ping(self) -> None:
        async with self._reached():
            pass

    async def close(self) -> None:
        """Does nothing: others use the store, too."""

    def _pulse(self, ref: RoundRef) -> Pulse | None:
        held = self._round(ref)
        if held is None or held.status is GateStatus.PREPARING or not self._is_whole(ref, held):
            return None
        items = {item: stock.available for item, stock in held.items.items()}
        return Pulse(held.version, held.available, held.admitted, held.epoch, held.revision, items)

    def _is_whole(self, ref: RoundRef, held: HeldRound) -> bool:
        contents = self._store.contents
        buyers, persons = contents.buyers.get(ref, {}), contents.persons.get(ref, {})
        return len(buyers) >= held.buyers and self._past(ref) >= held.past and len(persons) >= held.persons

    def _adds_up(self, held: HeldRound) -> bool:
        """Whether the counts add up. Otherwise the lane has forgotten units that it sent or got, and would send or get
        them again."""
        if held.items:
            return all(item.adds_up for item in held.items.values())
        return held.total == held.dealt - sum(held.sent.values()) + sum(held.got.values())

    def _past(self, ref: RoundRef) -> int:
        return len(self._store.contents.past.get(ref, {}))

    def _round(self, ref: RoundRef) -> HeldRound | None:
        return self._store.contents.rounds.get(ref)

    def _put(self, ref: RoundRef, held: HeldRound) -> None:
        self._store.contents.rounds[ref] = held


def _new(round_: Round, *, version: int, available: int, opened_ms: int | None) -> HeldRound:
    return HeldRound(
        epoch=round_.epoch,
        dealt=round_.total,
        total=round_.total,
        available=available,
        limit_per_buyer=round_.limit_per_buyer,
        cool_down_s=round_.cool_down_s,
        begins_ms=round_.begins_ms,
        ends_ms=round_.ends_ms,
        version=version,
        opened_ms=opened_ms,
        siblings=round_.siblings,
        items={
            item.id: ItemView(total=item.total, dealt=item.total, available=min(available, item.total))
            for item in round_.items
        },
    )


def _changed(items: Mapping[int, ItemView], units: Mapping[int, int], **counts: int) -> dict[int, ItemView]:
    """Returns the items with these units added to their counts, or taken away."""
    return {
        item: replace(
            stock, **{name: getattr(stock, name) + sign * units.get(item, 0) for name, sign in counts.items()}
        )
        for item, stock in items.items()
    }


def _rebuilt(stock: ItemView, sold: Sold, carried: Carried) -> ItemView:
    total = stock.total + carried.units
    return replace(
        stock,
        admitted=sold.admitted,
        released=sold.released,
        total=total,
        available=total - sold.admitted + sold.released,
        sent=carried.sent,
        got=carried.got,
    )


def _together(units: Sequence[Mapping[int, int]]) -> dict[int, int]:
    return {
        lane: sum(each.get(lane, 0) for each in units) for lane in sorted({lane for each in units for lane in each})
    }


def _state(held: HeldRound, ref: RoundRef, store: MemoryStore, today: str) -> RoundState:
    return RoundState(
        lane=ref.lane,
        total=held.total,
        available=held.available,
        admitted=held.admitted,
        released=held.released,
        limit_per_buyer=held.limit_per_buyer,
        cool_down_s=held.cool_down_s,
        begins_ms=held.begins_ms,
        ends_ms=held.ends_ms,
        status=RoundStatus.OPEN if held.status is GateStatus.LINE else RoundStatus(held.status),
        lined=held.status is GateStatus.LINE,
        backlog=store.backlog(ref.lane),
        counter=store.contents.days.get(ref.lane, {}).get(today, 0),
        past=store.contents.past.get(ref, {}),
        items={item: stock.available for item, stock in held.items.items()},
    )


def _place(user: str, request_id: str, number: OrderNumber) -> tuple[str, str]:
    """Returns the key of an order that has ended. Buyers' request ids contain no colon."""
    return user, request_id or f"{number.seconds}:{number.counter}"


def _entry(ref: RoundRef, epoch: int, claim: Claim, holding: Holding, now_ms: int) -> Admission:
    return Admission(
        number=holding.number,
        round_id=ref.id,
        epoch=epoch,
        user=claim.user,
        quantity=holding.quantity,
        slot=holding.slot,
        request_id=holding.request_id,
        admitted_ms=now_ms,
        metadata=claim.metadata,
        item=claim.item,
        person=claim.person,
    )


def _day(now_ms: int, days_ago: int = 0) -> str:
    moment = datetime.fromtimestamp(now_ms // 1000, UTC) - timedelta(days=days_ago)
    return moment.strftime("%Y%m%d")
