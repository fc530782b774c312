"""Alembic runs this file. The connection comes from `seckill.backends.sql.migration`, in a transaction already."""

from alembic import context

from seckill.backends.sql import access_tables, figure_tables, line_tables  # noqa: F401 (so the metadata has them)
from seckill.backends.sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
