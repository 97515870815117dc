"""Add the times when the database was restored from a backup."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table("grid_restored", Column("at", BigInteger, primary_key=True, autoincrement=False))
