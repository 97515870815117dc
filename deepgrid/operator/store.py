"""The operator's durable memory: notices to post, jobs that were given back, past use, figures of its last rounds.

One SQLite file. A lost file costs notices and the memory of refusals, never a job or money. Everything about a job is
deleted when the job is over, so the size depends on the hot jobs and on the customers of the last weeks.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepgrid.errors import ConfigurationError
from deepgrid.scheduling.market import Assignment, Resources
from deepgrid.scheduling.past_use import Account

ROUNDS_KEPT = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS identity (text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS notices (
    id INTEGER PRIMARY KEY, job_id INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, provider TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS given_back (
    job_id INTEGER NOT NULL, provider TEXT NOT NULL, at REAL NOT NULL, reason TEXT
);
CREATE INDEX IF NOT EXISTS given_back_by_job ON given_back (job_id);
DROP TABLE IF EXISTS past_use;
CREATE TABLE IF NOT EXISTS accounts (
    customer TEXT PRIMARY KEY, cpus REAL, mem_mb REAL, gpus REAL, at INTEGER, cancels REAL, cancelled_at INTEGER
);
CREATE TABLE IF NOT EXISTS rounds (id INTEGER PRIMARY KEY, figures TEXT NOT NULL);
"""
_TABLES = ("notices", "given_back", "accounts", "rounds")


@dataclass(frozen=True, slots=True)
class DueNotice:
    """A notice that waits. With a `provider` it holds only if the job was assigned to that provider."""

    id: int
    job_id: int
    kind: str
    text: str
    provider: str = ""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A provider that refused a job or did not act in time, when (unix seconds), and why; None if not read yet."""

    job_id: int
    provider: str
    at: float
    reason: str | None


class OperatorStore:
    """The file at `path`. Use it from one thread."""

    def __init__(self, path: Path | str) -> None:
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ConfigurationError(
                f"The operator's store {path} cannot be used: {error}.",
                next_step="Delete it: notices that wait in it are lost, jobs are not.",
            ) from None

    def close(self) -> None:
        self._db.close()

    def belong_to(self, identity: str) -> None:
        """Empty the store if it belongs to another grid or chain than `identity`."""
        known = self._rows("SELECT text FROM identity")
        if known == [(identity,)]:
            return
        if not known:
            self._db.execute("INSERT INTO identity VALUES (?)", [identity])
            return
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for table in ("identity", *_TABLES):
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            self._db.execute("INSERT INTO identity VALUES (?)", [identity])

    # -- notices -----------------------------------------------------------------------------

    def add_notices(self, notices: Iterable[tuple[int, str, str]]) -> None:
        """Keep notices (job, kind, text) until they are posted."""
        self._many("INSERT INTO notices (job_id, kind, text, provider) VALUES (?, ?, ?, '')", notices)

    def promise(self, assignments: Iterable[Assignment]) -> None:
        """Keep the reasons of assignments that are about to be sent, until `resolve`."""
        rows = [(one.job_id, one.reason, one.provider) for one in assignments]
        self._many("INSERT INTO notices (job_id, kind, text, provider) VALUES (?, 'assigned', ?, ?)", rows)

    def promised(self) -> list[DueNotice]:
        """Return notices of assignments whose outcome is not known."""
        rows = self._rows("SELECT id, job_id, kind, text, provider FROM notices WHERE provider != '' ORDER BY id")
        return [DueNotice(*row) for row in rows]

    def resolve(self, assigned: Mapping[int, str]) -> None:
        """Post the promised notices of jobs that are `assigned` (job, provider) as promised, and drop the others."""
        promised = self.promised()
        kept = [(one.id,) for one in promised if assigned.get(one.job_id) == one.provider]
        self._many("UPDATE notices SET provider = '' WHERE id = ?", kept)
        self._db.execute("DELETE FROM notices WHERE provider != ''")

    def due_notices(self, most: int) -> list[DueNotice]:
        """Return the oldest notices to post."""
        query = "SELECT id, job_id, kind, text FROM notices WHERE provider = '' ORDER BY id LIMIT ?"
        return [DueNotice(*row) for row in self._rows(query, [most])]

    def posted(self, notices: Iterable[DueNotice]) -> None:
        """Forget notices that the services have."""
        self._many("DELETE FROM notices WHERE id = ?", [(one.id,) for one in notices])

    def drop_notices_after(self, last_job: int) -> None:
        """Forget notices on jobs that a reorganisation removed."""
        self._db.execute("DELETE FROM notices WHERE job_id > ?", [last_job])

    # -- jobs given back ---------------------------------------------------------------------

    def add_given_back(self, job_id: int, provider: str, at: float, reason: str | None) -> None:
        self._db.execute("INSERT INTO given_back VALUES (?, ?, ?, ?)", [job_id, provider, at, reason])

    def given_back(self) -> dict[int, list[GivenBack]]:
        """Return who gave back each job, oldest first."""
        found: dict[int, list[GivenBack]] = {}
        for row in self._rows("SELECT job_id, provider, at, reason FROM given_back ORDER BY at"):
            found.setdefault(row[0], []).append(GivenBack(*row))
        return found

    def explain_given_back(self, job_id: int, provider: str, reason: str) -> None:
        """Add the reason that the provider gave."""
        query = "UPDATE given_back SET reason = ? WHERE job_id = ? AND provider = ? AND reason IS NULL"
        self._db.execute(query, [reason, job_id, provider])

    def forget_jobs(self, job_ids: Iterable[int]) -> None:
        """Delete who gave back these jobs. Their notices stay until they are posted."""
        self._many("DELETE FROM given_back WHERE job_id = ?", [(job_id,) for job_id in job_ids])

    # -- rounds ------------------------------------------------------------------------------

    def accounts(self) -> dict[str, Account]:
        """Past use and cancels per customer."""
        rows = self._rows("SELECT customer, cpus, mem_mb, gpus, at, cancels, cancelled_at FROM accounts")
        return {row[0]: Account(Resources(*row[1:4]), *row[4:]) for row in rows}

    def put_accounts(self, accounts: Mapping[str, Account]) -> None:
        rows = [(who, *one.past, one.at, one.cancels, one.cancelled_at) for who, one in accounts.items()]
        self._many("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def forget_accounts(self, customers: Iterable[str]) -> None:
        self._many("DELETE FROM accounts WHERE customer = ?", [(one,) for one in customers])

    def add_round(self, figures: Mapping[str, Any]) -> None:
        """Keep the figures of a round; the oldest ones are forgotten."""
        self._db.execute("INSERT INTO rounds (figures) VALUES (?)", [json.dumps(figures)])
        self._db.execute("DELETE FROM rounds WHERE id <= (SELECT max(id) FROM rounds) - ?", [ROUNDS_KEPT])

    def rounds(self, most: int) -> list[dict[str, Any]]:
        """Return figures of the last rounds, newest first."""
        rows = self._rows("SELECT figures FROM rounds ORDER BY id DESC LIMIT ?", [most])
        return [json.loads(row[0]) for row in rows]

    # -- parts -------------------------------------------------------------------------------

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with closing(self._db.execute(query, values)) as rows:
            return rows.fetchall()

    def _many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(query, rows)
