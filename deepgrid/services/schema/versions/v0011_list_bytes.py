"""Add the stored size of the list of each bundle. Lists of earlier releases count as nothing."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("grid_bundle", Column("list_bytes", BigInteger, nullable=False, server_default="0"))
