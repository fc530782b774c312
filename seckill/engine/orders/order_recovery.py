"""Recovers orders that were accepted but are not in the ledger.

Usually such orders are queued, and a worker is about to write them. But a queue may be lost, workers may be away when
the gate is rebuilt, and the ledger may be an older copy. Then every place that may still know of an order is read: the
buyers' records in the gate, the queue, and the entries that are set aside. The orders found are written, the earliest
first, as far as the ledger has room for them. No unit is sold twice and none is invented: the ledger's own rules
decide, as they do for a worker.

Where the gate has admitted orders that the ledger has never heard of, the units that the gate has given back count as
well: it gives units back only when a ledger has decided so, and that ledger was later than this one.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter

import structlog
from msgspec import structs

from seckill.domain.admission import Admission, admission_of
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Round
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.errors import LedgerRefused
from seckill.failpoints import reached
from seckill.ports.gate import UnwrittenGate
from seckill.ports.ledger import UnwrittenLedger
from seckill.ports.queue_entry import read_entry, salvage, write_entry
from seckill.ports.transport import Delivery, UnwrittenTransport

log = structlog.get_logger()

PORTION = 500
# After this time an order that the ledger refuses is tried again, as with a worker.
RETRY_S = 5.0


@dataclass(slots=True)
class Written:
    """What was done, counted in orders."""

    new: int = 0
    ended: int = 0  # live in the ledger, but given back in the gate
    buried: int = 0  # given back in the gate, unknown to the ledger
    refused: int = 0

    def __bool__(self) -> bool:
        return bool(self.new or self.ended or self.buried or self.refused)


@dataclass(slots=True)
class _Known:
    """What the gate knows about a round's orders and the ledger does not."""

    live: dict[OrderNumber, Admission] = field(default_factory=dict)
    over: dict[OrderNumber, Admission] = field(default_factory=dict)
    given_back: list[OrderNumber] = field(default_factory=list)  # those that are live in the ledger
    units: int = 0  # of all orders, to be compared with the gate's own count


def _salvaged(delivery: Delivery) -> Admission | None:
    """Reads an entry. One that another version wrote is also waited for: it is not lost and may be understood later."""
    return delivery.admission or salvage(delivery.lane, delivery.payload)


async def note(round_: Round, written: Written) -> None:
    log.warning("orders that nobody had written are kept", round=round_.id, **asdict(written))


async def raise_alarm(alarm: Alarm, round_: Round, written: Written) -> None:
    """Asks people to compare payments: an older copy of the ledger does not know those made after it."""
    facts = {"round": round_.id, **asdict(written)}
    await alarm.raise_(AlarmCause.ORDERS_RECOVERED, facts)


class Unwritten:
    def __init__(self, gate: UnwrittenGate, transport: UnwrittenTransport, ledger: UnwrittenLedger) -> None:
        self._gate = gate
        self._transport = transport
        self._ledger = ledger

    async def write(self, round_: Round) -> Written:
        """For a round that sells: writes orders that the gate remembers and that are neither queued nor in the
        ledger."""
        standing = await self._gate.standing(round_.every_lane)
        known = await self._of_gate(round_)
        if not (known.live or known.over):
            return Written()
        for waiting in await self._waiting(round_, read=_salvaged):
            known.live.pop(waiting.number, None)
        # An order that a server taking over may lack must not be in the ledger: its buyer could buy once more.
        await self._gate.assure(round_.every_lane, standing)
        return await self._write(round_, known, known.live, voided=False)

    async def keep(self, round_: Round) -> Written:
        """For a round that has got a new epoch and is closed until it is rebuilt: writes all orders that were accepted
        before. An order for which there is no room is void, and fails."""
        known = await self._of_gate(round_)
        accepted = {admission.number: admission for admission in await self._waiting(round_)}
        for number, live in known.live.items():
            queued = accepted.get(number)
            # The gate says whose order it is, but only the queue has what the shop has said about it.
            accepted[number] = live if queued is None else structs.replace(live, metadata=queued.metadata)
        return await self._write(round_, known, accepted, voided=True)

    async def _of_gate(self, round_: Round) -> _Known:
        known = _Known()
        seen: set[OrderNumber] = set()  # reading in portions may return an order twice
        async for portion in self._gate.orders(round_.ref):
            rows = await self._ledger.holdings_of(round_.id, list(portion))
            for user, holdings in portion.items():
                live = {row.number: row.live for row in rows.get(user, ())}
                for held in holdings:
                    if held.number in seen:
                        continue
                    seen.add(held.number)
                    known.units += held.quantity
                    if held.number not in live:
                        (known.live if held.live else known.over)[held.number] = admission_of(round_, user, held)
                    elif live[held.number] and not held.live:
                        known.given_back.append(held.number)
        view = await self._gate.inspect(round_.ref)
        if view is not None and known.units > view.admitted and (known.live or known.over):
            # Records that the counters do not confirm may be made up: people have to look at them.
            log.error("the gate's records are more than it has admitted: none of them is believed", round=round_.id)
            return _Known()
        return known

    async def _waiting(
        self, round_: Round, read: Callable[[Delivery], Admission | None] = attrgetter("admission")
    ) -> list[Admission]:
        """Reads the queue before the entries that are set aside, as entries move that way."""
        found: list[Admission | None] = []
        async for portion in self._transport.entries(round_.every_lane):
            found += map(read, portion)
        for letter in await self._ledger.letters_in(round_.id):
            found.append(read(read_entry(letter.lane, letter.entry_id, letter.payload.encode())))
        return [admission for admission in found if admission is not None and admission.round_id == round_.id]

    async def _write(
        self, round_: Round, known: _Known, accepted: dict[OrderNumber, Admission], *, voided: bool
    ) -> Written:
        written = Written()
        if known.live or known.over:  # otherwise nothing suggests that this ledger is not the newest
            if known.given_back:
                written.ended = await self._ledger.end_forgotten(known.given_back)
            over = list(known.over.values())
            for start in range(0, len(over), PORTION):
                written.buried += await self._ledger.bury_forgotten(over[start : start + PORTION])
        numbers = sorted(accepted)
        for start in range(0, len(numbers), PORTION):
            batch = [accepted[number] for number in numbers[start : start + PORTION]]
            fit = [each for each in batch if each.number in known.live]
            fit += await self._within_limit(round_, [each for each in batch if each.number not in known.live], written)
            reached("unwritten.record.before")
            await self._record(round_, sorted(fit, key=lambda each: each.number), written, voided=voided)
        return written

    async def _within_limit(self, round_: Round, batch: Sequence[Admission], written: Written) -> list[Admission]:
        """Refuses orders above the buyer's limit: the gate has no record of them any more, and may have admitted them
        because it had forgotten earlier ones."""
        rows = await self._ledger.holdings_of(round_.id, sorted({each.user for each in batch})) if batch else {}
        fit = []
        units = {user: sum(row.quantity for row in held if row.live) for user, held in rows.items()}
        there = {row.number for held in rows.values() for row in held}
        for each in (each for each in batch if each.number not in there):
            units[each.user] = units.get(each.user, 0) + each.quantity
            if units[each.user] <= round_.limit_per_buyer:
                fit.append(each)
            else:
                await self._refuse(round_, each, "the buyer has reached the limit", written, voided=True)
        return fit

    async def _record(self, round_: Round, batch: Sequence[Admission], written: Written, *, voided: bool) -> None:
        """Writes the batch in one transaction. If the ledger refuses it, halves it until the entry at fault stands
        alone."""
        if not batch:
            return
        try:
            current = [structs.replace(each, epoch=round_.epoch) for each in batch]
            written.new += (await self._ledger.record(current)).new
        except LedgerRefused as error:
            if len(batch) == 1:
                await self._refuse(round_, batch[0], str(error), written, voided=voided)
                return
            middle = len(batch) // 2
            await self._record(round_, batch[:middle], written, voided=voided)
            await self._record(round_, batch[middle:], written, voided=voided)

    async def _refuse(self, round_: Round, refused: Admission, reason: str, written: Written, *, voided: bool) -> None:
        """Sets a refused order aside, like one that a worker cannot write. A rebuilt gate has no unit for it, so then
        it is void."""
        epoch = min(refused.epoch, round_.epoch - 1) if voided else round_.epoch
        entry = structs.replace(refused, epoch=epoch)
        delivery = Delivery(entry.number.lane, f"unwritten-{int(entry.number)}", write_entry(entry), entry)
        await self._ledger.set_aside(delivery, reason, 0.0 if voided else RETRY_S)
        written.refused += 1
        log.error("an order that was accepted cannot be kept", order=int(entry.number), reason=reason)
