"""Run by alembic for each migration, on the connection that `migrate` gives it."""

from __future__ import annotations

from alembic import context

from deepgrid.services.schema import NOTED_IN

context.configure(connection=context.config.attributes["connection"], version_table=NOTED_IN)
with context.begin_transaction():
    context.run_migrations()
