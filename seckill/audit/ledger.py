"""Reads the ledger for the auditor, with statements of its own."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    String,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    union_all,
)

from seckill.audit.database import AnyRow, AnySelect, ReadOnlyDatabase
from seckill.audit.held_units import above_limit, holds_units
from seckill.audit.sale_rules import Rules
from seckill.backends.sql.tables import (
    ID_KEY,
    dead_letters,
    meta,
    order_events,
    orders,
    outbox,
    payments,
    refunds,
    round_items,
    rounds,
    sales,
    voucher_uploads,
    vouchers,
)

# About twenty milliseconds of work: no one has to wait long, and at a hundredth of the time it is soon made up for.
PORTION = 500
# How many orders one statement asks about.
LIST = 1000
# How long after its end a round counts as recent.
RECENT_MS = 24 * 3600 * 1000
RELEASE = "release"
# This long after a round's end, its unsold units need no codes any more.
CODES_KEPT_MS = 600_000

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
    "refunded_cents",
    "item_id",
)
_OF_EVENT = ("order_id", "from_state", "to_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRound:
    """A round's counters, all from one instant."""

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
    retired: bool  # the gate no longer needs to have it
    moving: bool  # its orders can still end, or units are on the way back
    items: dict[int, int]  # item → units, read a moment later
    gives_codes: bool

    @property
    def rules(self) -> Rules:
        return Rules(self.limit, self.cool_down_s, self.begins_ms, self.ends_ms, self.status)

    @property
    def decided(self) -> int:
        """Units whose release the ledger has decided."""
        return self.written - self.sold + self.buried

    @property
    def at_rest(self) -> bool:
        return self.retired or (not self.moving and (self.status == "closed" or self.ends_ms <= self.now_ms))


@dataclass(frozen=True, slots=True)
class Portion:
    """Some orders of a round with everything that belongs to them, from one instant."""

    rows: Sequence[AnyRow]
    events: dict[int, list[AnyRow]]  # in the order in which they were made
    releases: dict[int, list[AnyRow]]
    payments: Sequence[AnyRow]  # payments that name or pay one of the orders, with the refunded part of each
    codes: dict[int, tuple[int, int]]  # how many valid codes each order has, and how many of them are for another item
    last: bool  # there are no more


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLapses:
    """A buyer's lapsed orders in a round: cancelled or not paid in time, and given back in the gate."""

    lapsed: int
    last_ms: int  # when the last of them ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """A round's counters and the sums of its rows, from one instant."""

    id: int
    sale_id: int
    total: int
    sold: int
    written: int
    live_units: int
    written_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSums:
    """The same by item, for a round with items."""

    id: int
    sale_id: int
    sold: int
    of_items: dict[int, tuple[int, int]]  # item → units counted as sold, and units of its live orders
    astray: int  # orders that name none of the items


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSums:
    """The codes of a sale that gives codes, from one instant."""

    sale_id: int
    given: int  # and not void
    paid: int  # units of paid orders, unless they are back on sale
    free: Mapping[int, int]  # by the only item they are for; 0: for any
    needed: Mapping[int, int]  # for units that may still be paid for, by item; 0: in a sale without items

    @property
    def missing(self) -> int:
        own = sum(max(0, needed - self.free.get(item, 0)) for item, needed in self.needed.items() if item)
        return max(0, self.needed.get(0, 0) + own - self.free.get(0, 0))


def _code_counts(giving: AnySelect, now_ms: ColumnElement[int]) -> Iterator[AnySelect]:
    """Selects, for these sales: the sale, what is counted, the item (0: for any, or without one), and how many."""
    of_upload = func.coalesce(voucher_uploads.c.item_id, 0)
    codes = (
        select(vouchers.c.sale_id, literal("free"), of_upload, func.count())
        .join(voucher_uploads, voucher_uploads.c.id == vouchers.c.upload_id)
        .where(vouchers.c.sale_id.in_(giving), voucher_uploads.c.complete_ms.is_not(None))
    )
    yield codes.where(vouchers.c.order_id.is_(None)).group_by(vouchers.c.sale_id, of_upload)
    yield (
        select(vouchers.c.sale_id, literal("given"), literal(0), func.count())
        .where(vouchers.c.sale_id.in_(giving), vouchers.c.order_id.is_not(None), vouchers.c.void_ms.is_(None))
        .group_by(vouchers.c.sale_id)
    )
    of_order = func.coalesce(orders.c.item_id, 0)
    units = func.sum(orders.c.quantity)
    sold = select(rounds.c.sale_id, literal("paid"), of_order, units).join(rounds, rounds.c.id == orders.c.round_id)
    sold = sold.where(rounds.c.sale_id.in_(giving)).group_by(rounds.c.sale_id, of_order)
    yield sold.where(orders.c.state == "paid", holds_units())
    unpaid = sold.with_only_columns(rounds.c.sale_id, literal("needed"), of_order, units)
    yield unpaid.where(orders.c.state == "unpaid")
    sells = and_(rounds.c.sale_id.in_(giving), rounds.c.covered == 1, rounds.c.retired_ms.is_(None))
    sells = and_(sells, rounds.c.ends_ms + CODES_KEPT_MS > now_ms)
    yield (
        select(rounds.c.sale_id, literal("needed"), literal(0), func.sum(rounds.c.total - rounds.c.sold))
        .where(sells, rounds.c.item_count == 0)
        .group_by(rounds.c.sale_id)
    )
    left = func.sum(round_items.c.total - round_items.c.sold)
    yield (
        select(rounds.c.sale_id, literal("needed"), round_items.c.item_id, left)
        .join(rounds, rounds.c.id == round_items.c.round_id)
        .where(sells)
        .group_by(rounds.c.sale_id, round_items.c.item_id)
    )


def _buried() -> ColumnElement[bool]:
    """Whether the row was not written by a worker, but when its entry was given up: it had no time to pay and was not
    free."""
    return and_(orders.c.expires_ms.is_(None), orders.c.paid_ms.is_(None))


def _gate_status() -> ColumnElement[str]:
    """The status that the gate should have. A hidden round, or one that lacks codes, is not open there, and one with a
    line is not open to buyers who press."""
    shut = or_(rounds.c.published == 0, rounds.c.covered == 0)
    opened = rounds.c.status == "open"
    return case((and_(opened, shut), "paused"), (and_(opened, rounds.c.lined == 1), "line"), else_=rounds.c.status)


def _lapsed() -> ColumnElement[bool]:
    """Whether the buyer let the order lapse, even if it was paid too late and refunded afterwards. A failed order never
    had a time to pay, and one that an operator ended is not the buyer's lapse."""
    refunded = and_(orders.c.state == "refunded", orders.c.expires_ms.is_not(None))
    return and_(or_(orders.c.state.in_(("cancelled", "expired")), refunded), orders.c.closed_by.is_(None))


def _moving() -> ColumnElement[bool]:
    unpaid = exists().where(orders.c.round_id == rounds.c.id, orders.c.state == "unpaid")
    return or_(unpaid, exists().where(outbox.c.round_id == rounds.c.id, outbox.c.done_ms.is_(None)))


class LedgerReader:
    """The statements are made once: making one takes longer than running it."""

    def __init__(self, url: str) -> None:
        self.database = database = ReadOnlyDatabase(url)
        self._all_rounds = self._select_counts()
        self._recent_rounds = self._all_rounds.where(
            or_(rounds.c.ends_ms + RECENT_MS > database.now_ms, and_(rounds.c.retired_ms.is_(None), _moving()))
        )
        self._these_rounds = self._all_rounds.where(database.among(rounds.c.id, "ids"))
        self._items = select(round_items).where(database.among(round_items.c.round_id, "ids"))
        self._item_sums = _select_item_sums()
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
        back = select(func.sum(refunds.c.amount_cents)).where(refunds.c.payment_id == payments.c.id).scalar_subquery()
        # NULL: no part is refunded.
        self._payments = select(payments, back.label("back_cents")).where(of_these)
        holds = case((holds_units(), 1), else_=0).label("holds")
        self._states = select(orders.c.id, orders.c.state, holds).where(database.among(orders.c.id, "ids"))
        self._lapses = self._select_lapses()
        given = and_(database.among(vouchers.c.order_id, "ids"), vouchers.c.void_ms.is_(None))
        of_item = voucher_uploads.c.item_id
        elsewhere = and_(of_item.is_not(None), of_item != func.coalesce(orders.c.item_id, 0))
        self._codes = (
            select(
                vouchers.c.order_id,
                func.count().label("codes"),
                func.count(case((elsewhere, 1))).label("astray"),
            )
            .join(orders, orders.c.id == vouchers.c.order_id)
            .outerjoin(voucher_uploads, voucher_uploads.c.id == vouchers.c.upload_id)
            .where(given)
            .group_by(vouchers.c.order_id)
        )
        self._letters = select(dead_letters.c.order_id).where(database.among(dead_letters.c.order_id, "ids"))
        self._with_history = select(order_events.c.order_id).where(database.among(order_events.c.order_id, "ids"))

    async def close(self) -> None:
        await self.database.close()

    async def id_key(self) -> bytes | None:
        found = await self.database.rows(select(meta.c.value).where(meta.c.name == ID_KEY))
        return bytes.fromhex(found[0].value) if found else None

    def _select_counts(self) -> AnySelect:
        now_ms = self.database.now_ms
        of_this = orders.c.round_id == rounds.c.id
        buried = (
            select(func.coalesce(func.sum(orders.c.quantity), 0))
            .where(of_this, orders.c.state.in_(("failed", "refunded")), _buried())
            .scalar_subquery()
        )
        return (
            select(
                *[rounds.c[name] for name in ("id", "sale_id", "lane", "total", "sold", "written", "epoch")],
                _gate_status().label("status"),
                *[
                    rounds.c[name]
                    for name in ("lanes", "revision", "opened_ms", "begins_ms", "ends_ms", "limit_before", "retired_ms")
                ],
                rounds.c.item_count,
                rounds.c.limit_per_buyer.label("limit"),
                rounds.c.cool_down_s,
                sales.c.pay_within_s,
                sales.c.vouchers,
                buried.label("buried"),
                _moving().label("moving"),
                now_ms.label("now_ms"),
            )
            .join(sales, sales.c.id == rounds.c.sale_id)
            # A round that was never opened has nothing that could be wrong.
            .where(or_(rounds.c.opened_ms.is_not(None), rounds.c.epoch > 1, rounds.c.retired_ms.is_not(None)))
            .order_by(rounds.c.id)
        )

    async def recent_rounds(self) -> list[LedgerRound]:
        """Returns rounds that are on, to come or just over, and older ones whose orders are not all final."""
        return await self._to_rounds(await self.database.rows(self._recent_rounds))

    async def all_rounds(self) -> list[LedgerRound]:
        return await self._to_rounds(await self.database.rows(self._all_rounds))

    async def rounds(self, ids: Sequence[int]) -> dict[int, LedgerRound]:
        found = await self.database.rows(self._these_rounds, {"ids": self.database.listed(ids)}) if ids else []
        return {round_.id: round_ for round_ in await self._to_rounds(found)}

    async def _to_rounds(self, found: Sequence[AnyRow]) -> list[LedgerRound]:
        items: dict[int, dict[int, int]] = {}
        for row in await self._in_portions(self._items, [row.id for row in found if row.item_count]):
            items.setdefault(row.round_id, {})[row.item_id] = row.total
        return [_to_round(row, items.get(row.id, {})) for row in found]

    def _select_overdue(self) -> AnySelect:
        by_ms = bindparam("by_ms", type_=BigInteger)
        return (
            select(orders.c.id, orders.c.round_id, orders.c.sale_id, orders.c.user_id, orders.c.expires_ms)
            .where(orders.c.state == "unpaid", orders.c.expires_ms < self.database.now_ms - by_ms)
            .order_by(orders.c.expires_ms)
            .limit(bindparam("count"))
        )

    async def overdue(self, by_ms: int, count: int) -> list[AnyRow]:
        """Returns unpaid orders whose time to pay ended this long ago."""
        return await self.database.rows(self._overdue, {"by_ms": by_ms, "count": count})

    def _select_waiting(self) -> AnySelect:
        for_ms = bindparam("for_ms", type_=BigInteger)
        return (
            select(outbox.c.order_id, outbox.c.round_id, outbox.c.kind)
            .where(outbox.c.done_ms.is_(None), outbox.c.created_ms < self.database.now_ms - for_ms)
            .order_by(outbox.c.id)
            .limit(bindparam("count"))
        )

    async def waiting(self, for_ms: int, count: int) -> list[AnyRow]:
        """Returns what the ledger decided this long ago and no keeper has passed on."""
        return await self.database.rows(self._waiting, {"for_ms": for_ms, "count": count})

    async def portion(self, round_: LedgerRound, after: tuple[str, int]) -> Portion:
        wanted = {"round": round_.id, "user": after[0], "number": after[1]}
        async with self.database.snapshot() as connection:
            found = await connection.execute(self._portion, wanted)
            rows = list(found)
            if not rows:
                return Portion([], {}, {}, [], {}, last=True)
            these = {"ids": self.database.listed([row.id for row in rows])}
            return Portion(
                rows,
                _by_order(await connection.execute(self._events, these)),
                _by_order(await connection.execute(self._releases, these)),
                list(await connection.execute(self._payments, these)),
                {row.order_id: (row.codes, row.astray) for row in await connection.execute(self._codes, these)}
                if round_.gives_codes
                else {},
                last=len(rows) < PORTION,
            )

    def _select_lapses(self) -> AnySelect:
        given_back = exists().where(
            outbox.c.order_id == orders.c.id, outbox.c.kind == RELEASE, outbox.c.done_ms.is_not(None)
        )
        last_ms = func.coalesce(func.max(orders.c.closed_ms), 0).label("last_ms")
        return (
            select(orders.c.user_id, func.count().label("lapsed"), last_ms)
            .where(orders.c.round_id == bindparam("round", type_=BigInteger), _lapsed(), given_back)
            .where(orders.c.user_id.in_(bindparam("users", expanding=True)))
            .group_by(orders.c.user_id)
        )

    async def lapses(self, round_id: int, users: Sequence[str]) -> dict[str, KnownLapses]:
        """Returns the lapses of users who have any."""
        found: dict[str, KnownLapses] = {}
        for start in range(0, len(users), LIST):
            these = {"round": round_id, "users": list(users[start : start + LIST])}
            for row in await self.database.rows(self._lapses, these):
                found[row.user_id] = KnownLapses(lapsed=row.lapsed, last_ms=int(row.last_ms))
        return found

    async def states(self, numbers: Sequence[int]) -> dict[int, tuple[str, bool]]:
        """Returns each order's state, and whether it holds its units."""
        return {row.id: (row.state, bool(row.holds)) for row in await self._in_portions(self._states, numbers)}

    async def set_aside(self, numbers: Sequence[int]) -> set[int]:
        """Returns those that have a letter, whatever became of it."""
        return {row.order_id for row in await self._in_portions(self._letters, numbers)}

    async def with_history(self, numbers: Sequence[int]) -> set[int]:
        """Returns those that have events."""
        return {row.order_id for row in await self._in_portions(self._with_history, numbers)}

    async def _in_portions(self, statement: AnySelect, numbers: Sequence[int]) -> list[AnyRow]:
        found: list[AnyRow] = []
        for start in range(0, len(numbers), LIST):
            part = self.database.listed(numbers[start : start + LIST])
            found += await self.database.rows(statement, {"ids": part})
        return found

    async def sums(self, ids: Sequence[int]) -> list[Sums]:
        units = (
            select(
                orders.c.round_id,
                func.sum(case((holds_units(), orders.c.quantity))).label("live"),
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
            for row in await self.database.rows(counted)
        ]

    async def item_sums(self, ids: Sequence[int]) -> list[ItemSums]:
        """Returns the sums of rounds with items, each from one instant."""
        with_items = select(rounds.c.id).where(rounds.c.id.in_(ids), rounds.c.item_count > 0)
        found = []
        for round_ in await self.database.rows(with_items):
            rows = await self.database.rows(self._item_sums, {"round": round_.id})
            if not rows:
                continue
            found.append(
                ItemSums(
                    id=round_.id,
                    sale_id=rows[0].sale_id,
                    sold=rows[0].sold,
                    of_items={row.item_id: (row.sold_of_item, int(row.live_units)) for row in rows},
                    astray=rows[0].astray,
                )
            )
        return found

    async def code_sums(self, ids: Sequence[int]) -> list[CodeSums]:
        """Returns the sums for those of the rounds' sales that give codes, in one statement and so from one instant."""
        giving = select(sales.c.id).where(
            sales.c.vouchers == 1, sales.c.id.in_(select(rounds.c.sale_id).where(rounds.c.id.in_(ids)))
        )
        counted = union_all(*_code_counts(giving, self.database.now_ms))
        sums: dict[int, dict[str, Counter[int]]] = {}
        for sale_id, kind, item, count in await self.database.rows(counted):
            of_sale = sums.setdefault(sale_id, {name: Counter() for name in ("given", "paid", "free", "needed")})
            of_sale[kind][item] += int(count)
        return [
            CodeSums(
                sale_id=sale_id,
                given=of_sale["given"].total(),
                paid=of_sale["paid"].total(),
                free=of_sale["free"],
                needed=of_sale["needed"],
            )
            for sale_id, of_sale in sums.items()
        ]

    async def above_limit(self, ids: Sequence[int]) -> list[AnyRow]:
        return await self.database.rows(above_limit(ids, orders.c.round_id, orders.c.user_id, LIST))

    async def above_shared_limit(self, ids: Sequence[int]) -> list[AnyRow]:
        """Returns those above a shared limit. `user_id`: one of the users who have too much together, perhaps in
        several rounds."""
        found = await self.database.rows(above_limit(ids, orders.c.round_id, orders.c.person, LIST))
        of_rounds = select(rounds.c.limit_group).where(rounds.c.id.in_(ids), rounds.c.limit_group.is_not(None))
        groups = [row.limit_group for row in await self.database.rows(of_rounds.distinct())]
        if groups:
            rows = await self.database.rows(select(rounds.c.id).where(rounds.c.limit_group.in_(groups)))
            together = [row.id for row in rows]
            for whom in (orders.c.user_id, orders.c.person):
                found += await self.database.rows(above_limit(together, rounds.c.limit_group, whom, LIST))
        return found

    async def releases_without_order(self, ids: Sequence[int]) -> list[AnyRow]:
        return await self.database.rows(
            select(outbox.c.order_id, outbox.c.round_id)
            .where(outbox.c.kind == RELEASE, outbox.c.round_id.in_(ids))
            .where(~exists().where(orders.c.id == outbox.c.order_id))
            .limit(LIST)
        )


def _select_item_sums() -> AnySelect:
    of_round = rounds.c.id == bindparam("round", type_=BigInteger)
    of_item = and_(orders.c.round_id == round_items.c.round_id, orders.c.item_id == round_items.c.item_id)
    others = orders.alias("others")
    is_known = exists().where(round_items.c.round_id == others.c.round_id, round_items.c.item_id == others.c.item_id)
    astray = (
        select(func.count())
        .select_from(others)
        .where(others.c.round_id == rounds.c.id, ~is_known.correlate(others))
        .scalar_subquery()
    )
    live_units = func.coalesce(func.sum(case((holds_units(), orders.c.quantity))), 0)
    return (
        select(
            rounds.c.sale_id,
            rounds.c.sold,
            round_items.c.item_id,
            round_items.c.sold.label("sold_of_item"),
            live_units.label("live_units"),
            astray.label("astray"),
        )
        .select_from(rounds.join(round_items, round_items.c.round_id == rounds.c.id).outerjoin(orders, of_item))
        .where(of_round)
        .group_by(rounds.c.id, rounds.c.sale_id, rounds.c.sold, round_items.c.item_id, round_items.c.sold)
        .order_by(round_items.c.item_id)
    )


def _select_portion() -> AnySelect:
    after = tuple_(bindparam("user", type_=String), bindparam("number", type_=BigInteger))
    return (
        select(*[orders.c[name] for name in _OF_ORDER])
        .where(orders.c.round_id == bindparam("round", type_=BigInteger))
        # The second condition would be enough; the first lets every database find the place with an index.
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


def _to_round(row: AnyRow, items: dict[int, int]) -> LedgerRound:
    return LedgerRound(
        items=items,
        limit_max=max(row.limit, row.limit_before or 0),
        buried=int(row.buried),
        moving=bool(row.moving),
        retired=row.retired_ms is not None,
        gives_codes=bool(row.vouchers),
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
