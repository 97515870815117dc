"""Outputs that definitions name by their job, and the session keys that made links."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, String

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "grid_output_use",
        Column("definition_hash", String, primary_key=True),
        Column("job_id", BigInteger, primary_key=True, autoincrement=False, index=True),
    )
    op.add_column("grid_bundle_link", Column("key_hash", String))
    op.create_index("ix_grid_bundle_link_key_hash", "grid_bundle_link", ["key_hash"])
