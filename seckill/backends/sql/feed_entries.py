"""Writes to the feed, in the transaction that makes the change.

An entry is written after the change that it describes. So a transaction that waited for another one to change the same
order gets the greater id, and a later place in the feed. This takes no lock, and no writer waits for another.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, FromClause, Insert, func, insert, literal, or_, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.line_tables import line_entries as _line_entries
from seckill.backends.sql.tables import feed
from seckill.domain.event import EventType
from seckill.domain.order import Order, OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Round, Sale
from seckill.ports.payment import Capture, Refund

_e = _line_entries.c
# The events of orders that have just been written, each with the states to which it applies.
_OF_NEW = {EventType.ORDER_CREATED: (OrderState.UNPAID, OrderState.PAID), EventType.ORDER_PAID: (OrderState.PAID,)}


class FeedEntries:
    """Also implements `seckill.backends.sql.database.NewOrderEntries`."""

    def __init__(self, database: Database) -> None:
        self._insert = insert(feed).values(at_ms=database.now_ms).inline()  # its id is not needed

    async def orders(self, connection: AsyncConnection, type_: EventType, numbers: Sequence[int]) -> None:
        entry = {"type": type_, "events": len(numbers), "numbers": _json(sorted(numbers))}
        await connection.execute(self._insert, entry)

    async def of_new(self, connection: AsyncConnection, numbers: Mapping[str, Sequence[int]]) -> None:
        for type_, states in _OF_NEW.items():
            if told := [number for state in states for number in numbers.get(state, ())]:
                await self.orders(connection, type_, told)

    def insert_of(self, new: FromClause, listed: ColumnElement[str]) -> Insert:
        entries = [
            select(
                literal(type_).label("type"),
                func.count().label("events"),
                listed.label("numbers"),
                func.max(new.c.recorded_ms).label("at_ms"),
            )
            .where(new.c.state.in_(states))
            .having(func.count() > 0)
            for type_, states in _OF_NEW.items()
        ]
        return insert(feed).from_select(["type", "events", "numbers", "at_ms"], union_all(*entries))

    async def other(
        self, connection: AsyncConnection, type_: EventType, sale_id: int, round_id: int, facts: Mapping[str, Any]
    ) -> None:
        entry = {"type": type_, "events": 1, "sale_id": sale_id, "round_id": round_id, "facts": _json(facts)}
        await connection.execute(self._insert, entry)

    async def line_entries(
        self, connection: AsyncConnection, type_: EventType, line: AnyRow, numbers: Sequence[int]
    ) -> None:
        """Writes events about entries of a line. The feed only keeps their numbers: a million of them take ten
        megabytes. Quantities other than 1 and reasons are kept beside the numbers, because they may change when a buyer
        joins again."""
        unlike = or_(_e.quantity != 1, _e.reason.is_not(None))
        found = (
            await connection.execute(select(_e.id, _e.quantity, _e.reason).where(_e.id.in_(numbers), unlike))
        ).all()
        reasons = {row.id: row.reason for row in found if row.reason is not None}
        quantities = {row.id: row.quantity for row in found if row.quantity != 1}
        await self._of_line(connection, type_, line, numbers, quantities, reasons)

    async def joined(self, connection: AsyncConnection, line: AnyRow, quantities: Mapping[int, int]) -> None:
        """The same for entries that were just written, whose quantities are given, so nothing has to be looked up."""
        unlike = {number: quantity for number, quantity in quantities.items() if quantity != 1}
        await self._of_line(connection, EventType.ENTRY_JOINED, line, list(quantities), unlike, {})

    async def _of_line(
        self,
        connection: AsyncConnection,
        type_: EventType,
        line: AnyRow,
        numbers: Sequence[int],
        quantities: Mapping[int, int],
        reasons: Mapping[int, str],
    ) -> None:
        facts: dict[str, Any] = {"quantities": {str(number): quantity for number, quantity in quantities.items()}}
        # one reason for all of them, as when a round is over
        if len(reasons) == len(numbers) and len(set(reasons.values())) == 1:
            facts["reason"] = next(iter(reasons.values()))
        else:
            facts["reasons"] = {str(number): reason for number, reason in reasons.items()}
        entry = {"type": type_, "events": len(numbers), "numbers": _json(sorted(numbers)), "facts": _json(facts)}
        of_round = {"sale_id": line.sale_id, "round_id": line.round_id}
        await connection.execute(self._insert, entry | of_round)

    async def sale(
        self, connection: AsyncConnection, type_: EventType, sale: Sale, changed: Sequence[str] = ()
    ) -> None:
        facts = {
            "title": sale.title,
            "price_cents": sale.price_cents,
            "currency": sale.currency,
            "pay_within_s": sale.pay_within_s,
            "confirm": sale.confirm,
            "published": sale.published,
            "external_id": sale.goods.external_id,
            "metadata": None if sale.goods.metadata is None else msgspec.json.decode(sale.goods.metadata),
            **_facts_of(sale.round),
        }
        if sale.items:
            units = dict(sale.round.items)
            facts["items"] = [
                {
                    "item": item.id,
                    "title": item.title,
                    "units": units.get(item.id, item.units),
                    "price_cents": item.price_cents,
                    "external_id": item.external_id,
                }
                for item in sale.items
            ]
        if changed:
            facts["changed"] = list(changed)
        await self.other(connection, type_, sale.id, sale.round.id, facts)

    async def round(self, connection: AsyncConnection, type_: EventType, round_: Round) -> None:
        await self.other(connection, type_, round_.sale_id, round_.id, _facts_of(round_))

    async def payment(
        self,
        connection: AsyncConnection,
        type_: EventType,
        order: Order,
        capture: Capture,
        pays: OrderNumber | None,
    ) -> None:
        """`order`: the order for which the money was meant."""
        facts = {"order_number": int(order.number), "buyer": order.user, **_facts_of_capture(capture)}
        facts["pays_number"] = None if pays is None else int(pays)
        await self.other(connection, type_, order.sale_id, order.round_id, facts)

    async def refund(
        self, connection: AsyncConnection, type_: EventType, order: Order, refund: Refund, units_back: int = 0
    ) -> None:
        """`units_back`: how many go back on sale because of it."""
        facts = {
            "order_number": int(order.number),
            "buyer": order.user,
            **_facts_of_capture(refund.capture),
            "amount_cents": refund.amount_cents,  # may be less than what was taken
            "refund_id": str(refund.id),
            "reason": refund.reason,
            "explanation": refund.explanation,
        }
        if type_ is EventType.REFUND_REQUESTED:
            facts["units_back"] = units_back
        if type_ is EventType.REFUND_REFUSED:
            facts["refused"] = refund.refused
        await self.other(connection, type_, order.sale_id, order.round_id, facts)

    async def vouchers_voided(self, connection: AsyncConnection, order: Order, *, void: int, returned: int) -> None:
        facts = {"order_number": int(order.number), "buyer": order.user, "void": void, "returned": returned}
        await self.other(connection, EventType.VOUCHER_VOIDED, order.sale_id, order.round_id, facts)

    async def voucher_redeemed(self, connection: AsyncConnection, order: Order, voucher_id: int) -> None:
        facts = {"order_number": int(order.number), "buyer": order.user, "voucher_id": str(voucher_id)}
        await self.other(connection, EventType.VOUCHER_REDEEMED, order.sale_id, order.round_id, facts)


def _facts_of_capture(capture: Capture) -> dict[str, Any]:
    return {
        "payment_id": capture.ref,
        "provider": capture.provider,
        "amount_cents": capture.amount_cents,
        "currency": capture.currency,
    }


def _facts_of(round_: Round) -> dict[str, Any]:
    return {
        "ordinal": round_.ordinal,
        "units": round_.total,
        "limit_per_buyer": round_.limit_per_buyer,
        "cool_down_s": round_.cool_down_s,
        "begins_ms": round_.begins_ms,
        "ends_ms": round_.ends_ms,
        "status": round_.status,
        "epoch": round_.epoch,
    }


def _json(content: object) -> str:
    return msgspec.json.encode(content).decode()
