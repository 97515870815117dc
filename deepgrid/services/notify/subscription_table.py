"""The tables of subscriptions and of what they were told."""

from __future__ import annotations

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from deepgrid.services.storage.database import Table


class SubscriptionRecord(Table):
    """A customer's webhook. `sealed` holds its URL and the key of its signatures.

    `first` counts the customer's oldest jobs; nothing more is told about these. Ends before `created_at` are not told.
    """

    __tablename__ = "grid_subscription"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    customer: Mapped[str] = mapped_column(index=True)
    sealed: Mapped[bytes]
    events: Mapped[str]
    wait_minutes: Mapped[int]
    first: Mapped[int]
    created_at: Mapped[int]


class DeliveryRecord(Table):
    """A message about a job, which is told once. `next_at` is 0 when it was delivered or given up."""

    __tablename__ = "grid_delivery"
    subscription: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    job_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    event: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[str]
    tries: Mapped[int]
    next_at: Mapped[int] = mapped_column(index=True)
