"""What operators do to orders. Each action is one transaction, which also writes the record, and happens once for each
request."""

from sqlalchemy import BigInteger, Integer, String, bindparam, insert, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.end_orders import Endings, Reversal, to_order
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.payments import select_refunds, to_refund
from seckill.backends.sql.sales import lock_catalogue
from seckill.backends.sql.tables import order_actions, orders, payments, refunds
from seckill.backends.sql.transactions import writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.backends.sql.voucher_cover import spare
from seckill.backends.sql.voucher_gifts import VoucherGifts
from seckill.domain.event import EventType
from seckill.domain.order import OPERATOR, Order, OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.refund import NoRefund, cents_to_refund, left_of_price
from seckill.failpoints import reached
from seckill.ports.order_action import Acted, ActionKind, ActionOutcome, OrderAction, RecordedAction

# The reason of refunds by operators. The operator's own reason is in the action.
BY_OPERATOR = "operator"
_NO_REFUND = {NoRefund.NOT_PAID: ActionOutcome.WRONG_STATE, NoRefund.TOO_MUCH: ActionOutcome.TOO_MUCH}


class _Refused(Exception):
    """Leaves a transaction so that nothing of it remains."""

    def __init__(self, outcome: ActionOutcome) -> None:
        self.outcome = outcome


class SqlOrderActions:
    """Implements `seckill.ports.order_action.OrderActionLedger`."""

    def __init__(
        self,
        database: Database,
        endings: Endings,
        entries: FeedEntries,
        gifts: VoucherGifts,
        tasks: Calls,
    ) -> None:
        self.tasks = tasks
        self._gifts = gifts
        self._database = database
        self._endings = endings
        self._entries = entries
        self._note = database.insert_missing(order_actions, ["request_id"], _new_action(database), returning=["id"])

    @to_the_end
    async def act(self, action: OrderAction) -> Acted | None:
        try:
            async with writing(self._database) as connection:
                before = await self._order(connection, action)
                if before is None:
                    return None
                # Comes first: another transaction with the same request waits here and then finds this one's.
                noted = await self._note.run(connection, _parameters(action))
                if not noted:
                    return await self._known(connection, action)
                if action.kind is ActionKind.CANCEL:
                    await self._cancel(connection, action)
                else:
                    await self._refund(connection, action, noted[0].id)
                acted = await self._acted(connection, action, ActionOutcome.DONE)
                await self._record(connection, action, before, acted.order)
                reached("ledger.act.inside")
                return acted
        except _Refused as refused:
            async with writing(self._database) as connection:
                return await self._acted(connection, action, refused.outcome)

    async def _known(self, connection: AsyncConnection, action: OrderAction) -> Acted:
        same = select(order_actions).where(order_actions.c.request_id == action.request_id)
        found = to_action((await connection.execute(same)).one()).action
        return await self._acted(
            connection, action, ActionOutcome.REPEATED if found == action else ActionOutcome.KEY_REUSED
        )

    async def _cancel(self, connection: AsyncConnection, action: OrderAction) -> None:
        ended = await self._endings.end(
            connection, [int(action.number)], OrderState.CANCELLED, "cancelled by an operator", closed_by=OPERATOR
        )
        if not ended:
            raise _Refused(ActionOutcome.WRONG_STATE)

    async def _refund(self, connection: AsyncConnection, action: OrderAction, action_id: int) -> None:
        # Two refunds of one order wait for each other here, so each knows how much of the price the other has left.
        order = await self._order(connection, action, locked=True)
        assert order is not None, "orders are never deleted"
        cents = cents_to_refund(order, action.amount_cents)
        if isinstance(cents, NoRefund):
            raise _Refused(_NO_REFUND[cents])
        whole = cents == left_of_price(order)
        reversal = Reversal(action_id=action_id, cents=cents, whole=whole, return_units=action.return_unit)
        # Before the round, as in every transaction that needs both.
        gives = await self._gifts.sale_of(connection, order.round_id) if action.return_unit else None
        if gives is not None:
            await lock_catalogue(connection)
        units = await self._endings.reverse(connection, order, reversal)
        # The unit comes back without its code if its buyer has seen that: there has to be another code for it.
        if gives is not None and await spare(connection, self._database, gives) < 0:
            raise _Refused(ActionOutcome.OUT_OF_CODES)
        if cents > 0:  # a free order has no money to give back
            await self._owe(connection, order, cents, action_id)
            await self._tell_refund(connection, order, action_id, units)

    async def _record(self, connection: AsyncConnection, action: OrderAction, before: Order, after: Order) -> None:
        what = "order.cancelled" if action.kind is ActionKind.CANCEL else "order.refunded"
        facts = [{"state": order.state, "refunded_cents": order.refunded_cents} for order in (before, after)]
        if action.kind is ActionKind.REFUND:
            facts[1]["return_unit"] = action.return_unit
        await note(
            connection,
            self._database,
            what,
            int(action.number),
            sale_id=after.sale_id,
            before=facts[0],
            after=facts[1],
            why=action.reason,
        )

    async def _owe(self, connection: AsyncConnection, order: Order, cents: int, action_id: int) -> None:
        owed = select(
            payments.c.id.label("payment_id"),
            literal(cents, BigInteger).label("amount_cents"),
            payments.c.currency,
            literal(BY_OPERATOR).label("reason"),
            literal(0).label("attempts"),
            self._database.now_ms.label("next_ms"),
            self._database.now_ms.label("created_ms"),
            literal(action_id, BigInteger).label("action_id"),
        ).where(payments.c.settles == int(order.number))
        await connection.execute(insert(refunds).from_select(owed.selected_columns.keys(), owed))

    async def _tell_refund(self, connection: AsyncConnection, order: Order, action_id: int, units: int) -> None:
        row = (await connection.execute(select_refunds().where(refunds.c.action_id == action_id))).one()
        await self._entries.refund(connection, EventType.REFUND_REQUESTED, order, to_refund(row), units_back=units)

    async def _acted(self, connection: AsyncConnection, action: OrderAction, outcome: ActionOutcome) -> Acted:
        order = await self._order(connection, action)
        assert order is not None, "orders are never deleted"
        return Acted(outcome, order)

    async def _order(self, connection: AsyncConnection, action: OrderAction, *, locked: bool = False) -> Order | None:
        this = select(orders).where(orders.c.id == int(action.number))
        row = (await connection.execute(this.with_for_update() if locked else this)).one_or_none()
        return None if row is None else to_order(row)


def _new_action(database: Database) -> AnySelect:
    return select(
        bindparam("number", type_=BigInteger).label("order_id"),
        bindparam("request", type_=String).label("request_id"),
        bindparam("kind", type_=String).label("action"),
        bindparam("cents", type_=BigInteger).label("amount_cents"),
        bindparam("returns", type_=Integer).label("return_unit"),
        bindparam("why", type_=String).label("reason"),
        database.now_ms.label("created_ms"),
    ).where(literal(True))  # without a WHERE, SQLite takes the ON of ON CONFLICT for a join's


def _parameters(action: OrderAction) -> dict[str, object]:
    return {
        "number": int(action.number),
        "request": action.request_id,
        "kind": action.kind.value,
        "cents": action.amount_cents,
        "returns": int(action.return_unit),
        "why": action.reason,
    }


def to_action(row: AnyRow) -> RecordedAction:
    return RecordedAction(
        action=OrderAction(
            number=OrderNumber.from_int(row.order_id),
            request_id=row.request_id,
            kind=ActionKind(row.action),
            reason=row.reason,
            amount_cents=row.amount_cents,
            return_unit=bool(row.return_unit),
        ),
        at_ms=row.created_ms,
    )
