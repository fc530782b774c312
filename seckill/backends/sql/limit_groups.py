"""Sales that share one limit. A sale that shares none costs no statement.

The rounds of a group are in the same lanes, so that the gate has a buyer's orders in all of them in one place.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow
from seckill.backends.sql.tables import rounds, sales
from seckill.domain.sale import SaleDraft
from seckill.errors import NotOfThatGroup, NotPossible

SIBLINGS_MAX = 31  # each claim reads what its buyer has in all of them


async def read_siblings(connection: AsyncConnection, rows: Sequence[AnyRow]) -> dict[int, tuple[int, ...]]:
    """Returns, for each of these rounds, the other rounds that share its limit and that the gate has or will get."""
    groups = {row.limit_group for row in rows if row.limit_group is not None}
    if not groups:
        return {}
    wanted = select(rounds.c.id, rounds.c.limit_group).where(rounds.c.limit_group.in_(groups))
    found = (await connection.execute(wanted.where(rounds.c.retired_ms.is_(None)).order_by(rounds.c.id))).all()
    return {
        row.id: tuple(other.id for other in found if other.limit_group == row.limit_group and other.id != row.id)
        for row in rows
        if row.limit_group is not None
    }


async def lane_in_group(connection: AsyncConnection, draft: SaleDraft, lane: int) -> int:
    """Returns the lane for a new sale of the group. The catalogue is locked, so no other sale joins at the same time.
    Raises NotOfThatGroup."""
    if draft.limit_group is None:
        return lane
    wanted = select(rounds, sales.c.limit_by).join(sales, sales.c.id == rounds.c.sale_id)
    found = (await connection.execute(wanted.where(rounds.c.limit_group == draft.limit_group))).all()
    if not found:
        return lane
    for row in found:
        if row.retired_ms is not None:
            raise NotOfThatGroup("limit_group", "is of sales that are over: choose another name")
        for field in ("lanes", "limit_per_buyer", "limit_by"):
            if getattr(row, field) != getattr(draft, field):
                says = f"must be {getattr(row, field) or 'sub'}, as in the other sales of its limit_group"
                raise NotOfThatGroup(field, says)
    if len(found) > SIBLINGS_MAX:
        raise NotOfThatGroup("limit_group", f"has {len(found)} sales, and can have no more")
    lane_of_group: int = found[0].lane
    return lane_of_group


async def require_group(connection: AsyncConnection, group: str | None) -> None:
    """Called before a window changes: a sale cannot be on again if the others of its group have left the gate."""
    if group is None:
        return
    gone = select(rounds.c.id).where(rounds.c.limit_group == group, rounds.c.retired_ms.is_not(None)).limit(1)
    if (await connection.execute(gone)).first() is not None:
        raise NotPossible("Sales that share its limit have been over for long: announce a new one.")


def is_needed(before_ms: int) -> ColumnElement[bool]:
    """Whether another round of the group goes on after that time: units bought in this round count there."""
    others = rounds.alias("siblings")
    on = and_(
        others.c.limit_group == rounds.c.limit_group, others.c.ends_ms >= literal(before_ms, others.c.ends_ms.type)
    )
    return select(others.c.id).where(on).exists()
