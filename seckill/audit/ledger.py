"""The ledger as the auditor reads it, with its own statements."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, String, and_, bindparam, case, exists, func, or_, select, tuple_

from seckill.audit.database import AnyRow, AnySelect, ReadOnlyDatabase
from seckill.backends.sql.tables import (
    ID_KEY,
    dead_letters,
    meta,
    order_events,
    orders,
    outbox,
    payments,
    refunds,
    rounds,
    sales,
)

LIVE = ("unpaid", "paid")
# Some twenty milliseconds of work: no one has to wait for long, and at a hundredth of the time it is soon made up for.
PORTION = 500
# How many a statement asks about at once.
LIST = 1000
# How long after its end a round counts as recent.
RECENT_MS = 24 * 3600 * 1000
RELEASE = "release"

_OF_ORDER = (
    "id",
    "user_id",
    "quantity",
    "state",
    "active_slot",
    "slot",
    "request_id",
    "epoch",
    "recorded_ms",
    "expires_ms",
    "paid_ms",
    "closed_ms",
    "price_cents",
    "currency",
)
_OF_EVENT = ("order_id", "from_state", "to_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRound:
    """A round's counters, all of one instant."""

    now_ms: int
    id: int
    sale_id: int
    lane: int  # the first of its lanes
    lanes: int
    total: int
    sold: int
    written: int
    limit: int
    cool_down_s: int
    limit_max: int  # the highest there ever was
    begins_ms: int
    ends_ms: int
    status: str
    epoch: int
    revision: int
    opened_ms: int | None
    pay_within_s: int
    buried: int  # units of orders that failed without ever having been written
    retired: bool  # the gate need not have it any more
    moving: bool  # orders of it can still end, or their units are on the way back

    @property
    def decided(self) -> int:
        """Units whose release the ledger has decided."""
        return self.written - self.sold + self.buried

    @property
    def at_rest(self) -> bool:
        return self.retired or (not self.moving and (self.status == "closed" or self.ends_ms <= self.now_ms))


@dataclass(frozen=True, slots=True)
class Portion:
    """Some orders of a round with all that belongs to them, of one instant."""

    rows: Sequence[AnyRow]
    events: dict[int, list[AnyRow]]  # in the order of their making
    releases: dict[int, list[AnyRow]]
    payments: Sequence[AnyRow]  # that name one of them or pay for one, with their refunds
    last: bool  # there are no more


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
    """Rows that were written when their entry was given up, not by a worker: they had no time to pay and were not
    free."""
    return and_(orders.c.expires_ms.is_(None), orders.c.paid_ms.is_(None))


def _moving() -> ColumnElement[bool]:
    unpaid = exists().where(orders.c.round_id == rounds.c.id, orders.c.state == "unpaid")
    return or_(unpaid, exists().where(outbox.c.round_id == rounds.c.id, outbox.c.done_ms.is_(None)))


class LedgerReader:
    """The statements are made once: making one takes longer than running it."""

    def __init__(self, url: str) -> None:
        self._database = database = ReadOnlyDatabase(url)
        self._all_rounds = self._select_counts()
        self._recent_rounds = self._all_rounds.where(
            or_(rounds.c.ends_ms + RECENT_MS > database.now_ms, and_(rounds.c.retired_ms.is_(None), _moving()))
        )
        self._these_rounds = self._all_rounds.where(database.among(rounds.c.id, "ids"))
        self._overdue = self._select_overdue()
        self._waiting = self._select_waiting()
        self._portion = _select_portion()
        self._events = (
            select(*[order_events.c[name] for name in _OF_EVENT])
            .where(database.among(order_events.c.order_id, "ids"))
            .order_by(order_events.c.id)
        )
        self._releases = select(outbox.c.order_id, outbox.c.done_ms).where(
            outbox.c.kind == RELEASE, database.among(outbox.c.order_id, "ids")
        )
        of_these = or_(database.among(payments.c.settles, "ids"), database.among(payments.c.order_id, "ids"))
        self._payments = (
            select(payments, refunds.c.id.label("refund_id"), refunds.c.amount_cents.label("refunded_cents"))
            .outerjoin(refunds, refunds.c.payment_id == payments.c.id)
            .where(of_these)
        )
        self._states = select(orders.c.id, orders.c.state).where(database.among(orders.c.id, "ids"))
        self._letters = select(dead_letters.c.order_id).where(database.among(dead_letters.c.order_id, "ids"))
        self._with_history = select(order_events.c.order_id).where(database.among(order_events.c.order_id, "ids"))

    async def close(self) -> None:
        await self._database.close()

    async def id_key(self) -> bytes | None:
        found = await self._database.rows(select(meta.c.value).where(meta.c.name == ID_KEY))
        return bytes.fromhex(found[0].value) if found else None

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
                *[
                    rounds.c[name]
                    for name in ("lanes", "revision", "opened_ms", "begins_ms", "ends_ms", "limit_before", "retired_ms")
                ],
                rounds.c.limit_per_buyer.label("limit"),
                rounds.c.cool_down_s,
                sales.c.pay_within_s,
                buried.label("buried"),
                _moving().label("moving"),
                now_ms.label("now_ms"),
            )
            .join(sales, sales.c.id == rounds.c.sale_id)
            # What was never opened has nothing that could be wrong.
            .where(or_(rounds.c.opened_ms.is_not(None), rounds.c.epoch > 1, rounds.c.retired_ms.is_not(None)))
            .order_by(rounds.c.id)
        )

    async def recent_rounds(self) -> list[LedgerRound]:
        """Those that are on, to come or just over, and older ones whose orders are not all at rest."""
        return _to_rounds(await self._database.rows(self._recent_rounds))

    async def all_rounds(self) -> list[LedgerRound]:
        return _to_rounds(await self._database.rows(self._all_rounds))

    async def rounds(self, ids: Sequence[int]) -> dict[int, LedgerRound]:
        found = await self._database.rows(self._these_rounds, {"ids": self._database.listed(ids)}) if ids else []
        return {round_.id: round_ for round_ in _to_rounds(found)}

    def _select_overdue(self) -> AnySelect:
        by_ms = bindparam("by_ms", type_=BigInteger)
        return (
            select(orders.c.id, orders.c.round_id, orders.c.sale_id, orders.c.user_id, orders.c.expires_ms)
            .where(orders.c.state == "unpaid", orders.c.expires_ms < self._database.now_ms - by_ms)
            .order_by(orders.c.expires_ms)
            .limit(bindparam("count"))
        )

    async def overdue(self, by_ms: int, count: int) -> list[AnyRow]:
        """Unpaid orders whose time to pay was over this long ago."""
        return await self._database.rows(self._overdue, {"by_ms": by_ms, "count": count})

    def _select_waiting(self) -> AnySelect:
        for_ms = bindparam("for_ms", type_=BigInteger)
        return (
            select(outbox.c.order_id, outbox.c.round_id, outbox.c.kind)
            .where(outbox.c.done_ms.is_(None), outbox.c.created_ms < self._database.now_ms - for_ms)
            .order_by(outbox.c.id)
            .limit(bindparam("count"))
        )

    async def waiting(self, for_ms: int, count: int) -> list[AnyRow]:
        """What the ledger decided this long ago and no keeper has relayed."""
        return await self._database.rows(self._waiting, {"for_ms": for_ms, "count": count})

    async def portion(self, round_id: int, after: tuple[str, int]) -> Portion:
        async with self._database.snapshot() as connection:
            found = await connection.execute(self._portion, {"round": round_id, "user": after[0], "number": after[1]})
            rows = list(found)
            if not rows:
                return Portion([], {}, {}, [], last=True)
            these = {"ids": self._database.listed([row.id for row in rows])}
            return Portion(
                rows,
                _by_order(await connection.execute(self._events, these)),
                _by_order(await connection.execute(self._releases, these)),
                list(await connection.execute(self._payments, these)),
                last=len(rows) < PORTION,
            )

    async def states(self, numbers: Sequence[int]) -> dict[int, str]:
        return {row.id: row.state for row in await self._in_portions(self._states, numbers)}

    async def set_aside(self, numbers: Sequence[int]) -> set[int]:
        """Those of them that are letters, whatever became of these."""
        return {row.order_id for row in await self._in_portions(self._letters, numbers)}

    async def with_history(self, numbers: Sequence[int]) -> set[int]:
        """Those of them that have events."""
        return {row.order_id for row in await self._in_portions(self._with_history, numbers)}

    async def _in_portions(self, statement: AnySelect, numbers: Sequence[int]) -> list[AnyRow]:
        found: list[AnyRow] = []
        for start in range(0, len(numbers), LIST):
            part = self._database.listed(numbers[start : start + LIST])
            found += await self._database.rows(statement, {"ids": part})
        return found

    async def sums(self, ids: Sequence[int]) -> list[Sums]:
        units = (
            select(
                orders.c.round_id,
                func.sum(case((orders.c.state.in_(LIVE), orders.c.quantity))).label("live"),
                func.sum(case((~_buried(), orders.c.quantity))).label("written"),
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
        return [
            Sums(**{name: int(value) for name, value in row._mapping.items()})
            for row in await self._database.rows(counted)
        ]

    async def above_limit(self, ids: Sequence[int]) -> list[AnyRow]:
        units = func.sum(orders.c.quantity)
        limit = func.coalesce(rounds.c.limit_before, 0)
        return await self._database.rows(
            select(orders.c.round_id, orders.c.sale_id, orders.c.user_id, units.label("units"))
            .join(rounds, rounds.c.id == orders.c.round_id)
            .where(orders.c.round_id.in_(ids), orders.c.state.in_(LIVE))
            .group_by(
                orders.c.round_id, orders.c.sale_id, orders.c.user_id, rounds.c.limit_per_buyer, rounds.c.limit_before
            )
            .having(units > rounds.c.limit_per_buyer, units > limit)
            .limit(LIST)
        )

    async def releases_without_order(self, ids: Sequence[int]) -> list[AnyRow]:
        return await self._database.rows(
            select(outbox.c.order_id, outbox.c.round_id)
            .where(outbox.c.kind == RELEASE, outbox.c.round_id.in_(ids))
            .where(~exists().where(orders.c.id == outbox.c.order_id))
            .limit(LIST)
        )


def _select_portion() -> AnySelect:
    after = tuple_(bindparam("user", type_=String), bindparam("number", type_=BigInteger))
    return (
        select(*[orders.c[name] for name in _OF_ORDER])
        .where(orders.c.round_id == bindparam("round", type_=BigInteger))
        # The second condition is enough; the first lets every database find the place by an index.
        .where(orders.c.user_id >= bindparam("user", type_=String))
        .where(tuple_(orders.c.user_id, orders.c.id) > after)
        .order_by(orders.c.user_id, orders.c.id)
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
            retired=row.retired_ms is not None,
            **{
                name: getattr(row, name)
                for name in (
                    "now_ms",
                    "id",
                    "sale_id",
                    "lane",
                    "lanes",
                    "total",
                    "sold",
                    "written",
                    "limit",
                    "cool_down_s",
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
