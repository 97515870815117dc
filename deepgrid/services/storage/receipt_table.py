"""The table of receipts. They are kept as long as the database."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from deepgrid.services.storage.database import Table


class ReceiptRecord(Table):
    """The first receipt that a job's provider sent."""

    __tablename__ = "grid_receipt"
    job_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    sealed: Mapped[bytes]
    stored_at: Mapped[int]
