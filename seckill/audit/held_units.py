"""The units that buyers hold according to the ledger, and the buyers who hold too many."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, select

from seckill.audit.database import AnySelect
from seckill.backends.sql.tables import orders, rounds


def holds_units() -> ColumnElement[bool]:
    """Whether an order's units count as sold and towards the limit: it is not over, or it is refunded and its units
    stay sold."""
    return orders.c.active_slot.is_not(None)


def above_limit(ids: Sequence[int], where: ColumnElement[Any], whom: ColumnElement[Any], at_most: int) -> AnySelect:
    """Selects buyers who hold more than the highest limit there ever was. `round_id`: one of the rounds."""
    units = func.sum(orders.c.quantity)
    before = func.max(func.coalesce(rounds.c.limit_before, 0))
    about = (
        func.min(orders.c.round_id).label("round_id"),
        func.min(orders.c.sale_id).label("sale_id"),
        func.min(orders.c.user_id).label("user_id"),
    )
    return (
        select(*about, units.label("units"))
        .join(rounds, rounds.c.id == orders.c.round_id)
        .where(orders.c.round_id.in_(ids), holds_units(), whom.is_not(None), where.is_not(None))
        .group_by(where, whom)
        .having(units > func.max(rounds.c.limit_per_buyer), units > before)
        .limit(at_most)
    )
