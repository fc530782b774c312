"""Waits, when the faults are over, until everything has come to rest, and then reads the books."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from sqlalchemy import and_, func, select

from seckill.audit import Auditor, Report, Verdict
from seckill.audit.database import AnyRow, ReadOnlyDatabase
from seckill.audit.ledger import LedgerReader
from seckill.backends.sql.line_tables import STATE_OF, STATES, line_entries
from seckill.backends.sql.tables import (
    dead_letters,
    items,
    orders,
    outbox,
    payments,
    refunds,
    round_items,
    rounds,
    sales,
    vouchers,
)
from seckill.domain.line import EntryState
from seckill.domain.public_id import PublicIds
from seckill.errors import SeckillError
from seckill.lab.chaos.audit_watch import findings
from seckill.lab.chaos.buyers import OnSale
from seckill.lab.chaos.evidence import Books, EntryRow, Evidence, ItemEnd, Money, OrderRow, RoundEnd
from seckill.settings import Settings

POLL_S = 0.2
# However slow the machine is, the outstanding work changes within this time.
REST_WITHIN_S = 180.0
REST_MAX_S = 900.0


class Closing:
    def __init__(self, settings: Settings, auditor: Auditor, evidence: Evidence, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._auditor = auditor
        self._evidence = evidence
        self._clock = clock
        self._database = ReadOnlyDatabase(settings.database_url)

    async def close(self) -> None:
        await self._database.close()

    async def paid(self, sale: OnSale) -> int:
        """Returns the paid units of the sale; none if the database does not answer."""
        paid = select(func.coalesce(func.sum(orders.c.quantity), 0)).join(sales, sales.c.id == orders.c.sale_id)
        try:
            rows = await self._database.rows(paid.where(sales.c.title == sale.offer.title, orders.c.state == "paid"))
        except SeckillError:
            return 0
        return int(rows[0][0])

    async def rest(self) -> None:
        """Waits until nothing is on the move and every invariant holds, or until it is clear that this will not
        happen."""
        began_s = changed_s = self._clock()
        report, told = None, ""
        while self._clock() - changed_s < REST_WITHIN_S and self._clock() - began_s < REST_MAX_S:
            try:
                report = await self._auditor.read(full=True)
                why = await self._moving(report)
            except SeckillError as error:
                why = str(error)
            if not why:
                self._evidence.rested_s = round(self._clock() - began_s, 2)
                break
            if why != told:
                self._evidence.notes.append(f"{self._clock() - began_s:.1f} s after the faults: {why}")
                told, changed_s = why, self._clock()
            await asyncio.sleep(POLL_S)
        if report is not None:
            self._note(report)

    def _note(self, report: Report) -> None:
        found = findings(report, self._auditor)
        self._evidence.final = {
            result.invariant.name: (str(result.verdict), found.get(result.invariant.name, []) or list(result.reasons))
            for result in report.results
        }

    async def _moving(self, report: Report) -> str:
        """Describes the outstanding work; empty if there is none."""
        if report.verdict is not Verdict.HOLDS:
            return "; ".join(report.broken() + report.reasons())
        if _moves(report):
            return "units are queued or on their way back"
        waiting = {
            "to pass on": select(func.count()).select_from(outbox).where(outbox.c.done_ms.is_(None)),
            "to try again": select(func.count()).select_from(dead_letters).where(dead_letters.c.next_ms.is_not(None)),
            "to decide": select(func.count()).select_from(payments).where(payments.c.next_ms.is_not(None)),
            "to refund": select(func.count()).select_from(refunds).where(refunds.c.next_ms.is_not(None)),
            "to serve": select(func.count())
            .select_from(line_entries)
            .where(line_entries.c.state == STATES[EntryState.CALLED]),
            "to expire": select(func.count())
            .select_from(orders)
            .where(orders.c.state == "unpaid", orders.c.expires_ms < self._database.now_ms),
        }
        counts = {what: int((await self._database.rows(statement))[0][0]) for what, statement in waiting.items()}
        return ", ".join(f"{count} {what}" for what, count in counts.items() if count)

    async def read_books(self, wanted: Sequence[OnSale]) -> None:
        reader = LedgerReader(self._settings.database_url)
        try:
            key = await reader.id_key()
        finally:
            await reader.close()
        assert key is not None, "it was made when the ledger was opened"
        ids, item_ids = PublicIds(key, "order"), PublicIds(key, "item")
        told = self._evidence.told
        known = {*told.acks, *told.paid, *told.cancelled}
        self._evidence.numbers = {
            order_id: number for order_id in known if (number := ids.decode(order_id)) is not None
        }
        rows = await self._database.rows(
            select(
                orders.c.id,
                orders.c.round_id,
                orders.c.user_id,
                orders.c.quantity,
                orders.c.state,
                orders.c.request_id,
                orders.c.item_id,
            )
        )
        self._evidence.books = Books(
            rows={
                row.id: OrderRow(
                    number=row.id,
                    order_id=ids.encode(row.id),
                    round_id=row.round_id,
                    user=row.user_id,
                    quantity=row.quantity,
                    state=row.state,
                    request_id=row.request_id,
                    item_id=None if row.item_id is None else item_ids.encode(row.item_id),
                )
                for row in rows
            },
            rounds=await self._rounds({sale.offer.title for sale in wanted}),
            money=await self._money(),
            codes=await self._codes(),
            entries=await self._entries(PublicIds(key, "entry")),
        )

    async def _entries(self, ids: PublicIds) -> dict[str, EntryRow]:
        found = [
            EntryRow(
                entry_id=ids.encode(row.id),
                round_id=row.round_id,
                user=row.user_id,
                quantity=row.quantity,
                item_id=row.item_id,
                state=STATE_OF[row.state],
                place=row.place or 0,
                order=row.order_id,
            )
            for row in await self._database.rows(select(line_entries))
        ]
        return {entry.entry_id: entry for entry in found}

    async def _codes(self) -> Counter[int]:
        given = select(vouchers.c.order_id).where(vouchers.c.order_id.is_not(None), vouchers.c.void_ms.is_(None))
        return Counter(row.order_id for row in await self._database.rows(given))

    async def _rounds(self, wanted: set[str]) -> list[RoundEnd]:
        """Reads gate and ledger as of the same moment. An unpaid order may expire while the books are read, and then
        its unit would appear in neither."""
        began_s = self._clock()
        found, of_rounds = await self._counted(), await self._items()
        while True:
            before, report = (found, of_rounds), await self._auditor.read(full=True)
            found, of_rounds = await self._counted(), await self._items()
            if ((found, of_rounds) == before and not _moves(report)) or self._clock() - began_s > REST_WITHIN_S:
                break
        available = {units.round_id: units.available for units in report.units}
        return [
            RoundEnd(
                items=tuple(of_rounds.get(row.id, ())),
                round_id=row.id,
                title=row.title,
                total=row.total,
                sold=row.sold,
                live=int(row.live),
                available=available.get(row.id),
                limit=row.limit_per_buyer,
                wanted=row.title in wanted,
                gives_codes=bool(row.vouchers),
                group=row.limit_group,
            )
            for row in found
            if row.opened_ms is not None
        ]

    async def _counted(self) -> Sequence[AnyRow]:
        live = func.coalesce(
            select(func.sum(orders.c.quantity))
            .where(orders.c.round_id == rounds.c.id, orders.c.active_slot.is_not(None))
            .scalar_subquery(),
            0,
        ).label("live")
        return await self._database.rows(
            select(rounds, sales.c.title, sales.c.vouchers, live)
            .join(sales, sales.c.id == rounds.c.sale_id)
            .order_by(rounds.c.id)
        )

    async def _items(self) -> dict[int, list[ItemEnd]]:
        """Returns the items by round, for rounds that have any."""
        of_item = and_(
            orders.c.round_id == round_items.c.round_id,
            orders.c.item_id == round_items.c.item_id,
            orders.c.active_slot.is_not(None),
        )
        of_round = round_items.c
        counted = (of_round.round_id, of_round.item_id, of_round.total, of_round.sold, items.c.title)
        found: dict[int, list[ItemEnd]] = {}
        for row in await self._database.rows(
            select(*counted, func.coalesce(func.sum(orders.c.quantity), 0).label("live"))
            .select_from(round_items.join(items, items.c.id == round_items.c.item_id).outerjoin(orders, of_item))
            .group_by(*counted)
            .order_by(round_items.c.round_id, round_items.c.item_id)
        ):
            end = ItemEnd(title=row.title, total=row.total, sold=row.sold, live=int(row.live))
            found.setdefault(row.round_id, []).append(end)
        return found

    async def _money(self) -> Money:
        async def total(column: object, *where: object) -> int:
            statement = select(func.coalesce(func.sum(column), 0)).where(*where)  # type: ignore[arg-type]
            return int((await self._database.rows(statement))[0][0])

        return Money(
            taken=await total(payments.c.amount_cents),
            earned=await total(orders.c.price_cents - orders.c.refunded_cents, orders.c.state == "paid"),
            refunds=await total(refunds.c.amount_cents),
            undecided=await total(payments.c.amount_cents, payments.c.next_ms.is_not(None)),
        )


def _moves(report: Report) -> bool:
    return any(units.queued or units.returning for units in report.units)
