"""The table of what jobs used over time. It is kept as long as logs are."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from deepgrid.services.storage.database import Table


class JobUseRecord(Table):
    """The samples of a job's present claim, sealed."""

    __tablename__ = "grid_job_use"
    job_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    sealed: Mapped[bytes]
    updated_at: Mapped[int] = mapped_column(index=True)
