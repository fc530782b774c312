"""Alembic runs this file. The connection comes from `seckill.ledgers.migrating`, in a transaction already."""

from alembic import context

from seckill.ledgers.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
