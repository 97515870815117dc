"""Add the webhooks of customers."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "grid_subscription",
        Column("id", Integer, primary_key=True),
        Column("customer", String, nullable=False, index=True),
        Column("sealed", LargeBinary, nullable=False),
        Column("events", String, nullable=False),
        Column("wait_minutes", BigInteger, nullable=False),
        Column("first", BigInteger, nullable=False),
        Column("created_at", BigInteger, nullable=False),
    )
    op.create_table(
        "grid_delivery",
        Column("subscription", BigInteger, primary_key=True, autoincrement=False),
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("event", String, primary_key=True),
        Column("body", String, nullable=False),
        Column("tries", BigInteger, nullable=False),
        Column("next_at", BigInteger, nullable=False, index=True),
    )
