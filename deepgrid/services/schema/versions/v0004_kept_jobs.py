"""Add what is kept of a job for its customer."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary, String

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "grid_kept_job",
        Column("definition_hash", String, primary_key=True),
        Column("customer", String, nullable=False, index=True),
        Column("sealed", LargeBinary, nullable=False),
        Column("sealed_mark", LargeBinary),
        Column("sweep", String, index=True),
        Column("size", BigInteger, nullable=False),
        Column("touched_at", BigInteger, nullable=False, index=True),
    )
