"""Add the grid whose jobs the database keeps. The next start of the services notes it."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "grid_of_jobs",
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("chain_id", BigInteger, nullable=False),
        Column("meta_scheduler", String, nullable=False),
    )
