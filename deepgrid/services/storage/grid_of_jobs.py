"""The grid whose jobs a database keeps. New contracts count jobs from 1 again, so they need a new database."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from sqlalchemy import Connection, Integer, func, inspect, select
from sqlalchemy.orm import Mapped, mapped_column

from deepgrid.errors import ChainError, ConfigurationError
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage.database import Database, Log, Table, Use
from deepgrid.services.storage.missing_rows import add_missing
from deepgrid.services.storage.receipt_table import ReceiptRecord

ONLY_ID = 1
ANOTHER = "Give a new, empty database (--database), or the address book of the database's grid (--book)."

logger = logging.getLogger(__name__)


class GridOfJobs(Table):
    """The chain and the MetaScheduler of the jobs, in one row. Nodes, URLs and other contracts may change."""

    __tablename__ = "grid_of_jobs"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    chain_id: Mapped[int]
    meta_scheduler: Mapped[str]


async def note_grid(database: Database, grid: Domain, count_jobs: Callable[[], Awaitable[int]]) -> None:
    """Note the grid in a database that names none. `count_jobs` says how many jobs the grid ever had.

    If the database names this grid already, and has more jobs, it only logs a warning: the node may lag.
    Raises ConfigurationError if the database names another grid, or names none and has more jobs than this one.
    """
    async with database.read() as session:
        connection = await session.connection()
        is_noted, newest = await connection.run_sync(require_grid, grid), await connection.run_sync(newest_job)
    if is_noted:
        await _warn_of_missing_jobs(newest, count_jobs)
        return
    if newest and newest > (count := await count_jobs()):
        raise ConfigurationError(
            f"The services' database keeps job {newest}, and the grid of the address book has {count} jobs.",
            next_step=ANOTHER,
        )
    row = {"id": ONLY_ID, "chain_id": grid.chain_id, "meta_scheduler": grid.verifying_contract}
    async with database.write() as session:
        await add_missing(session, GridOfJobs, [row])
        await (await session.connection()).run_sync(require_grid, grid)


async def _warn_of_missing_jobs(newest: int, count_jobs: Callable[[], Awaitable[int]]) -> None:
    """A chain that began again may have the same contracts at the same addresses."""
    try:
        count = await count_jobs() if newest else 0
    except ChainError:  # the services start without their node, too
        return
    if newest > count:
        logger.warning("the services' database keeps job %d, and the chain has %d jobs", newest, count)


def newest_job(connection: Connection) -> int:
    """Return the highest number of a job that the database keeps; 0 if it keeps none."""
    return max(connection.scalar(select(func.max(table.job_id))) or 0 for table in (Use, Log, ReceiptRecord))


def require_grid(connection: Connection, grid: Domain) -> bool:
    """Return whether the database names this grid; False if it names none.

    Raises ConfigurationError if it names another one.
    """
    if not inspect(connection).has_table(GridOfJobs.__tablename__):  # of an earlier release
        return False
    found = connection.execute(select(GridOfJobs.chain_id, GridOfJobs.meta_scheduler)).one_or_none()
    if found is None:
        return False
    if tuple(found) == (grid.chain_id, grid.verifying_contract):
        return True
    raise ConfigurationError(
        "The services' database keeps the jobs of another grid: "
        f"chain {found.chain_id}, MetaScheduler {found.meta_scheduler}.",
        next_step=ANOTHER,
    )
