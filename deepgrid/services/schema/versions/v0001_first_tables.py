"""The tables of 561a647."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, String, inspect

revision = "0001"
down_revision = None

Columns = tuple[Column[Any], ...]


def upgrade() -> None:
    present = inspect(op.get_bind()).get_table_names()
    for name, columns in (definitions() | logs()).items():
        if name not in present:
            op.create_table(name, *columns)


def definitions() -> dict[str, Columns]:
    return {
        "grid_nonce": (
            Column("signer", String, primary_key=True),
            Column("nonce", LargeBinary, primary_key=True),
            Column("expires_at", BigInteger, nullable=False, index=True),
        ),
        "grid_definition": (
            Column("location_hash", String, primary_key=True),
            Column("uploader", String, nullable=False, index=True),
            Column("sealed", LargeBinary),
            Column("enable_logging", Boolean, nullable=False),
            Column("uploaded_at", BigInteger, nullable=False),
            Column("cold_seen_at", BigInteger),
        ),
        "grid_use": (
            Column("location_hash", String, primary_key=True),
            Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        ),
        "grid_release": (
            Column("id", Integer, primary_key=True),
            Column("location_hash", String, nullable=False, index=True),
            Column("job_id", BigInteger, nullable=False),
            Column("provider", String, nullable=False),
            Column("at", BigInteger, nullable=False),
        ),
    }


def logs() -> dict[str, Columns]:
    return {
        "grid_log": (
            Column("job_id", BigInteger, primary_key=True, autoincrement=False),
            Column("claimed_at", BigInteger, primary_key=True, autoincrement=False),
            Column("size", BigInteger, nullable=False),
            Column("final", Boolean, nullable=False),
            Column("updated_at", BigInteger, nullable=False, index=True),
        ),
        "grid_log_chunk": (
            Column("job_id", BigInteger, primary_key=True, autoincrement=False),
            Column("claimed_at", BigInteger, primary_key=True, autoincrement=False),
            Column("offset", BigInteger, primary_key=True, autoincrement=False),
            Column("length", BigInteger, nullable=False),
            Column("sealed", LargeBinary, nullable=False),
        ),
        "grid_notice": (
            Column("id", Integer, primary_key=True),
            Column("job_id", BigInteger, nullable=False, index=True),
            Column("at", BigInteger, nullable=False, index=True),
            Column("author", String, nullable=False),
            Column("kind", String, nullable=False),
            Column("text", String, nullable=False),
        ),
        "grid_cursor": (
            Column("name", String, primary_key=True),
            Column("value", BigInteger, nullable=False),
        ),
    }
