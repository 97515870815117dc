"""Revoked session keys, definitions without an owner, and how far each log is delivered."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, LargeBinary, String, inspect

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    found = inspect(op.get_bind())
    present = found.get_table_names()
    if "grid_revoked_session" not in present:
        op.create_table(
            "grid_revoked_session",
            Column("key_hash", String, primary_key=True),
            Column("wallet", String, nullable=False, index=True),
            Column("until", BigInteger, nullable=False, index=True),
        )
    if "grid_unowned_definition" not in present:
        op.create_table(
            "grid_unowned_definition",
            Column("definition_hash", String, primary_key=True),
            Column("source", String, nullable=False, index=True),
            Column("sealed", LargeBinary, nullable=False),
            Column("size", BigInteger, nullable=False),
            Column("enable_logging", Boolean, nullable=False),
            Column("stored_at", BigInteger, nullable=False, index=True),
        )
    for table, names in {"grid_log": ("source", "left_out", "pending"), "grid_log_chunk": ("at_ns",)}.items():
        columns = {column["name"] for column in found.get_columns(table)}
        for name in names:
            if name not in columns:
                op.add_column(table, Column(name, BigInteger))
