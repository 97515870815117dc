"""Add what jobs use over time."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "grid_job_use",
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("sealed", LargeBinary, nullable=False),
        Column("updated_at", BigInteger, nullable=False, index=True),
    )
