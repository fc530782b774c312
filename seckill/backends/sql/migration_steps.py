"""Steps of migrations.

MySQL commits every CREATE and ALTER separately, so a migration that is interrupted there is half done. It then begins
again from its first step, and each step finds out whether it has been done already.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from seckill.backends.sql.tables import OF_ALL

# MySQL's TEXT ends after 64 kB.
LongText = sa.Text().with_variant(LONGTEXT(), "mysql")


def create_table(name: str, *parts: Any, **options: Any) -> None:
    op.create_table(name, *parts, if_not_exists=_is_mysql(), **options)


def create_index(
    name: str, table: str, columns: list[str], *, where: str | None = None, instead: list[str] | None = None
) -> None:
    """`where`: the rows to be indexed; `instead`: the columns to index where the database has no partial indexes."""
    if not _is_mysql():
        condition = None if where is None else sa.text(where)
        op.create_index(name, table, columns, postgresql_where=condition, sqlite_where=condition)
        return
    if where is not None:
        name, columns = f"{name}{OF_ALL}", instead or columns
    if name not in _indexes(table):
        op.create_index(name, table, columns)


def drop_index(name: str, table: str) -> None:
    if not _is_mysql() or name in _indexes(table):
        op.drop_index(name, table)


def add_column(table: str, column: sa.Column[Any]) -> None:
    present = {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)} if _is_mysql() else set()
    if column.name not in present:
        op.add_column(table, column)


def drop_unique(name: str, table: str, create: Callable[[], None]) -> None:
    """Drops a constraint. SQLite cannot do that, so there `create` makes a table without it, with its indexes, and the
    rows move."""
    if not _is_sqlite():
        if not _is_mysql() or name in _indexes(table):
            op.drop_constraint(name, table, type_="unique")
        return
    for index in _indexes(table):
        op.drop_index(index, table)
    before = f"{table}_before"
    op.rename_table(table, before)
    create()
    names = [each["name"] for each in sa.inspect(op.get_bind()).get_columns(before)]
    source, target = (sa.table(each, *map(sa.column, names)) for each in (before, table))
    op.execute(sa.insert(target).from_select(names, sa.select(source)))
    op.drop_table(before)


def insert_row(table: str, **values: str) -> None:
    """Inserts a row of strings. A row that already exists is left alone."""
    into = sa.table(table, *[sa.column(name, sa.String) for name in values])
    same = sa.exists().where(*[into.c[name] == value for name, value in values.items()])
    row = sa.select(*[sa.literal(value) for value in values.values()]).where(~same)
    op.execute(sa.insert(into).from_select(list(values), row))


def _indexes(table: str) -> set[str]:
    return {str(index["name"]) for index in sa.inspect(op.get_bind()).get_indexes(table)}


def _is_mysql() -> bool:
    return op.get_context().dialect.name == "mysql"


def _is_sqlite() -> bool:
    return op.get_context().dialect.name == "sqlite"
