"""Add the files of customers."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "grid_bundle",
        Column("id", String, primary_key=True),
        Column("owner", String, nullable=False, index=True),
        Column("digest", String, nullable=False, index=True),
        Column("size", BigInteger, nullable=False),
        Column("files", BigInteger, nullable=False),
        Column("job_id", BigInteger, index=True),
        Column("claimed_at", BigInteger),
        Column("begun_at", BigInteger, nullable=False),
        Column("used_at", BigInteger, nullable=False, index=True),
        Column("finished_at", BigInteger),
    )
    op.create_table(
        "grid_bundle_use",
        Column("definition_hash", String, primary_key=True),
        Column("bundle", String, primary_key=True, index=True),
    )
    op.create_table(
        "grid_bundle_link",
        Column("id", Integer, primary_key=True),
        Column("bundle", String, nullable=False, index=True),
        Column("job_id", BigInteger, nullable=False, index=True),
        Column("made_at", BigInteger, nullable=False),
        Column("until", BigInteger, nullable=False),
        Column("revoked_at", BigInteger),
    )
