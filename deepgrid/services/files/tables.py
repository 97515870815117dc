"""The tables of bundles. Names and contents of files are in the store of objects, never here."""

from __future__ import annotations

from sqlalchemy import Integer, func
from sqlalchemy.orm import Mapped, mapped_column

from deepgrid.services.storage.database import Table


class Bundle(Table):
    """The files of one customer: an input, or the output of one claim of a job (`job_id`, `claimed_at`).

    `size` counts against the owner's quota from the moment that an upload is announced, and `list_bytes`, the stored
    size of the manifest, from the moment that this arrives. `finished_at` is null until all of it is there. `digest` is
    of the manifest; it is empty while none was announced, and during a deletion. `folder` has the parts in the store:
    the same files that are sent again after a deletion get the same id, but another folder.
    """

    __tablename__ = "grid_bundle"
    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str] = mapped_column(index=True)
    digest: Mapped[str] = mapped_column(index=True)
    size: Mapped[int]
    files: Mapped[int]
    job_id: Mapped[int | None] = mapped_column(index=True)
    claimed_at: Mapped[int | None]
    begun_at: Mapped[int]
    used_at: Mapped[int] = mapped_column(index=True)
    finished_at: Mapped[int | None]
    list_bytes: Mapped[int] = mapped_column(default=0)
    folder: Mapped[str]


USED = func.coalesce(func.sum(Bundle.size + Bundle.list_bytes), 0)  # of a quota


class BundleUse(Table):
    """A stored definition whose job gets this bundle as its input."""

    __tablename__ = "grid_bundle_use"
    definition_hash: Mapped[str] = mapped_column(primary_key=True)
    bundle: Mapped[str] = mapped_column(primary_key=True, index=True)


class OutputUse(Table):
    """A stored definition whose job gets the output of this job as its input."""

    __tablename__ = "grid_output_use"
    definition_hash: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)


class BundleLink(Table):
    """A link to the output of a job that its customer shared. `key_hash` names the session key that made it, if any."""

    __tablename__ = "grid_bundle_link"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    bundle: Mapped[str] = mapped_column(index=True)
    job_id: Mapped[int] = mapped_column(index=True)
    made_at: Mapped[int]
    until: Mapped[int]
    revoked_at: Mapped[int | None]
    key_hash: Mapped[str | None] = mapped_column(index=True)
