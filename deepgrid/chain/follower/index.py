"""A small durable index of hot jobs, with the block up to which it is complete.

One SQLite file per follower. The chain holds everything in it: after a loss of the file, all jobs are read once. The
identity in a file names its grid and its chain's genesis block. A file with another identity is emptied.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from deepgrid.chain.node.node import Block
from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

BLOCKS_KEPT = 256  # a deeper reorganisation makes the follower read all hot jobs again

_SCHEMA = """
CREATE TABLE IF NOT EXISTS identity (text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS blocks (number INTEGER PRIMARY KEY, hash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY, status INTEGER NOT NULL, provider TEXT COLLATE NOCASE,
    customer TEXT NOT NULL COLLATE NOCASE, block INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS jobs_by_status ON jobs (status);
CREATE INDEX IF NOT EXISTS jobs_by_block ON jobs (block);
"""


class JobIndex:
    """The index file at `path`. Use it from one thread. A second process may read it at the same time."""

    def __init__(self, path: Path | str) -> None:
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")  # lost writes are read again from the chain
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ConfigurationError(
                f"The job index {path} cannot be used: {error}.", next_step="Delete it: it is rebuilt from the chain."
            ) from None

    def close(self) -> None:
        self._db.close()

    # -- queries -----------------------------------------------------------------------------

    def hot(self, provider: str | None = None, customer: str | None = None) -> list[int]:
        """Return the ids of the hot jobs, oldest first, of one provider or customer if given."""
        return self._ids(
            "SELECT id FROM jobs WHERE status <= ? AND (? IS NULL OR provider = ?) AND (? IS NULL OR customer = ?)"
            " ORDER BY id",
            [int(JobStatus.RUNNING), provider, provider, customer, customer],
        )

    def pending(self) -> list[int]:
        """Return the ids of the jobs that wait for a provider, oldest first."""
        return self._ids("SELECT id FROM jobs WHERE status = ? ORDER BY id", [int(JobStatus.PENDING)])

    def claimed(self) -> list[int]:
        """Return the ids of the claimed jobs that have not ended, oldest first."""
        states = [int(JobStatus.SCHEDULED), int(JobStatus.RUNNING)]
        return self._ids("SELECT id FROM jobs WHERE status IN (?, ?) ORDER BY id", states)

    def last_id(self) -> int:
        """Return the highest job id known, 0 for none."""
        return self._ids("SELECT coalesce(max(id), 0) FROM jobs", [])[0]

    def touched_after(self, block: int) -> list[int]:
        """Return the ids of the jobs that changed in blocks after `block`."""
        return self._ids("SELECT id FROM jobs WHERE block > ? ORDER BY id", [block])

    def blocks(self) -> dict[int, str]:
        """Return the hashes of the last blocks seen, by number; the highest number is the cursor."""
        return dict(self._db.execute("SELECT number, hash FROM blocks ORDER BY number"))

    def _ids(self, query: str, values: Sequence[object]) -> list[int]:
        with closing(self._db.execute(query, values)) as rows:
            return [row[0] for row in rows]

    def identity(self) -> str:
        """Return the grid and the chain that the index is of; empty before the first `belong_to`."""
        row = self._db.execute("SELECT text FROM identity").fetchone()
        return "" if row is None else str(row[0])

    # -- changes ----------------------------------------------------------------------------

    def belong_to(self, identity: str) -> None:
        """Empty the index unless its identity is `identity`."""
        if self.identity() == identity:
            return
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM identity")
            self._db.execute("DELETE FROM blocks")
            self._db.execute("DELETE FROM jobs")
            self._db.execute("INSERT INTO identity VALUES (?)", [identity])

    def put(self, jobs: Iterable[Job], block: int) -> None:
        """Store `jobs` as read at `block`. Jobs above the cursor are read again."""
        rows = [(job.id, int(job.status), job.provider, job.customer, block) for job in jobs]
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?)", rows)

    def drop(self, job_ids: Iterable[int]) -> None:
        """Forget jobs that a reorganisation removed."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("DELETE FROM jobs WHERE id = ?", [(job_id,) for job_id in job_ids])

    def advance(self, ancestor: int, blocks: Sequence[Block]) -> None:
        """Forget the blocks after `ancestor` and append `blocks`. The last block is the new cursor."""
        cursor = blocks[-1].number if blocks else ancestor
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM blocks WHERE number > ?", [ancestor])
            self._db.executemany("INSERT INTO blocks VALUES (?, ?)", [(block.number, block.hash) for block in blocks])
            self._db.execute("DELETE FROM blocks WHERE number <= ?", [cursor - BLOCKS_KEPT])
