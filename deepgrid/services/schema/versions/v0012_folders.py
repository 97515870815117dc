"""Add the folder of the parts of each bundle. Parts of earlier releases are named by the bundle's id."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, String

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("grid_bundle", Column("folder", String, nullable=False, server_default=""))
    op.execute("UPDATE grid_bundle SET folder = id")
