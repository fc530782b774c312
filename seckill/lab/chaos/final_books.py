"""When the faults are over: everything sold that is wanted, everything come to rest, and the books read."""

import asyncio
import itertools
from collections.abc import Callable, Sequence

from sqlalchemy import func, select

from seckill.audit import Auditor, Report, Verdict
from seckill.audit.database import ReadOnlyDatabase
from seckill.audit.ledger import LedgerReader
from seckill.backends.sql.tables import dead_letters, orders, outbox, payments, refunds, rounds, sales
from seckill.domain.public_id import PublicIds
from seckill.errors import SeckillError
from seckill.lab.chaos.audit_watch import findings
from seckill.lab.chaos.buyers import ChaosBuyers, OnSale
from seckill.lab.chaos.evidence import Books, Evidence, Money, OrderRow, RoundEnd
from seckill.lab.chaos.http import Caller
from seckill.settings import Settings

POLL_S = 0.2
# However slow the machine is: with buyers there, some unit is paid for within this time.
SELL_WITHIN_S = 60.0
REST_WITHIN_S = 180.0
PAYERS = 6
LIVE = ("unpaid", "paid")


class Closing:
    def __init__(self, settings: Settings, auditor: Auditor, evidence: Evidence, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._auditor = auditor
        self._evidence = evidence
        self._clock = clock
        self._database = ReadOnlyDatabase(settings.database_url)

    async def close(self) -> None:
        await self._database.close()

    async def sell_out(self, buyers: ChaosBuyers, wanted: Sequence[OnSale], ports: Sequence[int]) -> None:
        """Buyers who pay at once, until every unit is paid for. What is not sold by then is for the books to tell."""
        numbers = itertools.count()
        never = asyncio.Event()
        done = {sale.id: asyncio.Event() for sale in wanted}

        async def buy(sale: OnSale, first: int) -> None:
            caller = Caller(ports, first)
            while not done[sale.id].is_set():
                user = f"payer{next(numbers)}"
                order_id = await buyers.buy(caller, sale, user, f"of {user}", 1, never)
                if order_id is None:
                    await asyncio.sleep(POLL_S)
                elif sale.offer.price_cents:
                    await buyers.wish(caller, user, order_id, "pay", never)
            await caller.close()

        async def look(sale: OnSale) -> None:
            paid, since_s = -1, self._clock()
            while paid < sale.offer.units and self._clock() - since_s < SELL_WITHIN_S:
                now = await self._paid(sale)
                if now > paid:
                    paid, since_s = now, self._clock()
                await asyncio.sleep(POLL_S)
            done[sale.id].set()

        async with asyncio.TaskGroup() as people:
            for sale in wanted:
                people.create_task(look(sale))
                for first in range(PAYERS):
                    people.create_task(buy(sale, first))

    async def _paid(self, sale: OnSale) -> int:
        paid = select(func.coalesce(func.sum(orders.c.quantity), 0)).join(sales, sales.c.id == orders.c.sale_id)
        try:
            rows = await self._database.rows(paid.where(sales.c.title == sale.offer.title, orders.c.state == "paid"))
        except SeckillError:
            return 0
        return int(rows[0][0])

    async def rest(self) -> None:
        """Until nothing is on the move and every invariant holds; or until it is clear that it will not."""
        began_s = self._clock()
        report, told = None, ""
        while self._clock() - began_s < REST_WITHIN_S:
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
                told = why
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
        """What still has to be done; empty if nothing."""
        if report.verdict is not Verdict.HOLDS:
            return "; ".join(report.broken() + report.reasons())
        if any(units.queued or units.returning for units in report.units):
            return "units are queued or on their way back"
        waiting = {
            "to relay": select(func.count()).select_from(outbox).where(outbox.c.done_ms.is_(None)),
            "to try again": select(func.count()).select_from(dead_letters).where(dead_letters.c.next_ms.is_not(None)),
            "to decide": select(func.count()).select_from(payments).where(payments.c.next_ms.is_not(None)),
            "to refund": select(func.count()).select_from(refunds).where(refunds.c.next_ms.is_not(None)),
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
        ids = PublicIds(key, "order")
        told = self._evidence.told
        self._evidence.numbers = {
            order_id: number for order_id in told.acks if (number := ids.decode(order_id)) is not None
        }
        rows = await self._database.rows(
            select(
                orders.c.id,
                orders.c.round_id,
                orders.c.user_id,
                orders.c.quantity,
                orders.c.state,
                orders.c.request_id,
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
                )
                for row in rows
            },
            rounds=await self._rounds({sale.offer.title for sale in wanted}),
            money=await self._money(),
        )

    async def _rounds(self, wanted: set[str]) -> list[RoundEnd]:
        report = await self._auditor.read(full=True)
        available = {units.round_id: units.available for units in report.units}
        live = func.coalesce(
            select(func.sum(orders.c.quantity))
            .where(orders.c.round_id == rounds.c.id, orders.c.state.in_(LIVE))
            .scalar_subquery(),
            0,
        ).label("live")
        found = await self._database.rows(
            select(rounds, sales.c.title, live).join(sales, sales.c.id == rounds.c.sale_id).order_by(rounds.c.id)
        )
        return [
            RoundEnd(
                round_id=row.id,
                title=row.title,
                total=row.total,
                sold=row.sold,
                live=int(row.live),
                available=available.get(row.id),
                limit=row.limit_per_buyer,
                wanted=row.title in wanted,
            )
            for row in found
            if row.opened_ms is not None
        ]

    async def _money(self) -> Money:
        async def total(column: object, *where: object) -> int:
            statement = select(func.coalesce(func.sum(column), 0)).where(*where)  # type: ignore[arg-type]
            return int((await self._database.rows(statement))[0][0])

        return Money(
            taken=await total(payments.c.amount_cents),
            earned=await total(orders.c.price_cents, orders.c.state == "paid"),
            refunds=await total(refunds.c.amount_cents),
            undecided=await total(payments.c.amount_cents, payments.c.next_ms.is_not(None)),
        )
