"""The ledger as the auditor reads it, in statements of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Row, Select, String, and_, exists, func, literal, or_, select, tuple_

from seckill.audit.database import ReadOnlyDatabase
from seckill.ledgers.tables import ID_KEY, dead_letters, meta, order_events, orders, outbox, rounds, sales

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
AnySelect: TypeAlias = Select[*tuple[Any, ...]]

LIVE = ("unpaid", "paid")
PORTION = 1000
# How long after its end a round counts as recent.
RECENT_MS = 24 * 3600 * 1000
RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRound:
    """A round's counters, all of one instant."""

    now_ms: int
    id: int
    sale_id: int
    lane: int
    total: int
    sold: int
    written: int
    limit: int
    limit_max: int  # the highest there ever was
    begins_ms: int
    ends_ms: int
    status: str
    epoch: int
    revision: int
    opened_ms: int | None
    pay_within_s: int
    buried: int  # units of orders that failed without ever having been written
    moving: bool  # orders of it can still end, or their units are on the way back

    @property
    def decided(self) -> int:
        """Units whose release the ledger has decided."""
        return self.written - self.sold + self.buried

    @property
    def at_rest(self) -> bool:
        return not self.moving and (self.status == "closed" or self.ends_ms <= self.now_ms)


@dataclass(frozen=True, slots=True)
class Portion:
    """Some orders of a round with all that belongs to them, of one instant."""

    rows: Sequence[AnyRow]
    events: dict[int, list[AnyRow]]  # in the order of their making
    releases: dict[int, list[AnyRow]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """A round's counters and what its rows add up to, of one instant."""

    id: int
    sale_id: int
    total: int
    sold: int
    written: int
    live_units: int
    written_units: int


def _buried() -> ColumnElement[bool]:
    """Rows that no worker has written, but who gave their entry up: they never had a time to pay and were not free."""
    return and_(orders.c.expires_ms.is_(None), orders.c.paid_ms.is_(None))


def _moving() -> ColumnElement[bool]:
    unpaid = exists().where(orders.c.round_id == rounds.c.id, orders.c.state == "unpaid")
    return or_(unpaid, exists().where(outbox.c.round_id == rounds.c.id, outbox.c.done_ms.is_(None)))


class LedgerReader:
    def __init__(self, url: str) -> None:
        self._database = ReadOnlyDatabase(url)
        self._counts = self._select_counts()

    async def close(self) -> None:
        await self._database.close()

    async def id_key(self) -> bytes | None:
        found = await self._rows(select(meta.c.value).where(meta.c.name == ID_KEY))
        return bytes.fromhex(found[0].value) if found else None

    async def _rows(self, statement: AnySelect) -> list[AnyRow]:
        async with self._database.snapshot() as connection:
            return list(await connection.execute(statement))

    def _select_counts(self) -> AnySelect:
        now_ms = self._database.now_ms
        of_this = orders.c.round_id == rounds.c.id
        buried = (
            select(func.coalesce(func.sum(orders.c.quantity), 0))
            .where(of_this, orders.c.state.in_(("failed", "refunded")), _buried())
            .scalar_subquery()
        )
        return (
            select(
                *[rounds.c[name] for name in ("id", "sale_id", "lane", "total", "sold", "written", "status", "epoch")],
                *[rounds.c[name] for name in ("revision", "opened_ms", "begins_ms", "ends_ms", "limit_before")],
                rounds.c.limit_per_buyer.label("limit"),
                sales.c.pay_within_s,
                buried.label("buried"),
                _moving().label("moving"),
                now_ms.label("now_ms"),
            )
            .join(sales, sales.c.id == rounds.c.sale_id)
            # What was never opened has nothing that could be wrong.
            .where(or_(rounds.c.opened_ms.is_not(None), rounds.c.epoch > 1))
            .order_by(rounds.c.id)
        )

    async def recent_rounds(self) -> list[LedgerRound]:
        """Those that are on, to come or just over, and older ones whose orders are not all at rest."""
        recent = rounds.c.ends_ms + RECENT_MS > self._database.now_ms
        return _to_rounds(await self._rows(self._counts.where(or_(recent, _moving()))))

    async def all_rounds(self) -> list[LedgerRound]:
        return _to_rounds(await self._rows(self._counts))

    async def rounds(self, ids: Sequence[int]) -> dict[int, LedgerRound]:
        found = _to_rounds(await self._rows(self._counts.where(rounds.c.id.in_(ids)))) if ids else []
        return {round_.id: round_ for round_ in found}

    async def now_ms(self) -> int:
        return int((await self._rows(select(self._database.now_ms.label("now_ms"))))[0].now_ms)

    async def overdue(self, by_ms: int, count: int) -> list[AnyRow]:
        """Unpaid orders whose time was over so long ago."""
        return await self._rows(
            select(orders.c.id, orders.c.round_id, orders.c.sale_id, orders.c.user_id, orders.c.expires_ms)
            .where(orders.c.state == "unpaid", orders.c.expires_ms < self._database.now_ms - by_ms)
            .order_by(orders.c.expires_ms)
            .limit(count)
        )

    async def waiting(self, for_ms: int, count: int) -> list[AnyRow]:
        """What the ledger has decided so long ago and nobody has relayed."""
        return await self._rows(
            select(outbox.c.order_id, outbox.c.round_id, outbox.c.kind)
            .where(outbox.c.done_ms.is_(None), outbox.c.created_ms < self._database.now_ms - for_ms)
            .order_by(outbox.c.id)
            .limit(count)
        )

    async def portion(self, round_id: int, after: tuple[str, int]) -> Portion:
        wanted = (
            select(orders)
            .where(orders.c.round_id == round_id)
            .where(tuple_(orders.c.user_id, orders.c.id) > tuple_(literal(after[0], String), literal(after[1])))
            .order_by(orders.c.user_id, orders.c.id)
            .limit(PORTION)
        )
        async with self._database.snapshot() as connection:
            rows = list(await connection.execute(wanted))
            ids = [row.id for row in rows]
            events = select(order_events).where(order_events.c.order_id.in_(ids)).order_by(order_events.c.id)
            releases = select(outbox).where(outbox.c.kind == RELEASE, outbox.c.order_id.in_(ids))
            return Portion(
                rows, _by_order(await connection.execute(events)), _by_order(await connection.execute(releases))
            )

    async def states(self, numbers: Sequence[int]) -> dict[int, str]:
        found = await self._in_portions(
            numbers, lambda part: select(orders.c.id, orders.c.state).where(orders.c.id.in_(part))
        )
        return {row.id: row.state for row in found}

    async def set_aside(self, numbers: Sequence[int]) -> set[int]:
        """Those of them that are letters, whatever became of these."""
        found = await self._in_portions(
            numbers, lambda part: select(dead_letters.c.order_id).where(dead_letters.c.order_id.in_(part))
        )
        return {row.order_id for row in found}

    async def with_history(self, numbers: Sequence[int]) -> set[int]:
        """Those of them that something was once noted about."""
        found = await self._in_portions(
            numbers, lambda part: select(order_events.c.order_id).where(order_events.c.order_id.in_(part))
        )
        return {row.order_id for row in found}

    async def _in_portions(self, numbers: Sequence[int], statement: Any) -> list[AnyRow]:
        found: list[AnyRow] = []
        for start in range(0, len(numbers), PORTION):
            found += await self._rows(statement(numbers[start : start + PORTION]))
        return found

    async def sums(self, ids: Sequence[int]) -> list[Sums]:
        units = (
            select(
                orders.c.round_id,
                func.sum(orders.c.quantity).filter(orders.c.state.in_(LIVE)).label("live"),
                func.sum(orders.c.quantity).filter(~_buried()).label("written"),
            )
            .where(orders.c.round_id.in_(ids))
            .group_by(orders.c.round_id)
            .subquery()
        )
        counted = (
            select(
                *[rounds.c[name] for name in ("id", "sale_id", "total", "sold", "written")],
                func.coalesce(units.c.live, 0).label("live_units"),
                func.coalesce(units.c.written, 0).label("written_units"),
            )
            .outerjoin(units, units.c.round_id == rounds.c.id)
            .where(rounds.c.id.in_(ids))
        )
        return [Sums(**{name: int(value) for name, value in row._mapping.items()}) for row in await self._rows(counted)]

    async def above_limit(self, ids: Sequence[int]) -> list[AnyRow]:
        units = func.sum(orders.c.quantity)
        limit = func.coalesce(rounds.c.limit_before, 0)
        return await self._rows(
            select(orders.c.round_id, orders.c.sale_id, orders.c.user_id, units.label("units"))
            .join(rounds, rounds.c.id == orders.c.round_id)
            .where(orders.c.round_id.in_(ids), orders.c.state.in_(LIVE))
            .group_by(
                orders.c.round_id, orders.c.sale_id, orders.c.user_id, rounds.c.limit_per_buyer, rounds.c.limit_before
            )
            .having(units > rounds.c.limit_per_buyer, units > limit)
            .limit(PORTION)
        )

    async def releases_without_order(self, ids: Sequence[int]) -> list[AnyRow]:
        return await self._rows(
            select(outbox.c.order_id, outbox.c.round_id)
            .where(outbox.c.kind == RELEASE, outbox.c.round_id.in_(ids))
            .where(~exists().where(orders.c.id == outbox.c.order_id))
            .limit(PORTION)
        )


def _by_order(found: Any) -> dict[int, list[AnyRow]]:
    grouped: dict[int, list[AnyRow]] = {}
    for row in found:
        grouped.setdefault(row.order_id, []).append(row)
    return grouped


def _to_rounds(found: Sequence[AnyRow]) -> list[LedgerRound]:
    return [
        LedgerRound(
            limit_max=max(row.limit, row.limit_before or 0),
            buried=int(row.buried),
            moving=bool(row.moving),
            **{
                name: getattr(row, name)
                for name in (
                    "now_ms",
                    "id",
                    "sale_id",
                    "lane",
                    "total",
                    "sold",
                    "written",
                    "limit",
                    "begins_ms",
                    "ends_ms",
                    "status",
                    "epoch",
                    "revision",
                    "opened_ms",
                    "pay_within_s",
                )
            },
        )
        for row in found
    ]
