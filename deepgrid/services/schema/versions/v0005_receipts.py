"""Add the receipts of jobs."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "grid_receipt",
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("sealed", LargeBinary, nullable=False),
        Column("stored_at", BigInteger, nullable=False),
    )
