"""Maps Slurm's jobs to claims, by the ledger on the login node. Pure: text in, values out.

Only the supervisor can write the ledger. The name and comment of a job are ignored, as its account can choose them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.query import is_id
from deepgrid.slurm.observe.snapshot import as_job
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.scripts import whole_answer


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the ledger: the folder and the account that a Slurm id was given to, and when, if that is known."""

    folder: str
    user: str
    taken_at: int | None = None

    def has(self, row: Row) -> bool:
        """Return whether this entry is about the row's job."""
        return self.user == row.user and row.may_be_of(self.taken_at)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Entries by Slurm id, newest last, and the ids of all accounts that ever had a claim.

    `in_doubt` holds accounts with a claim whose job may not be in the ledger yet.
    """

    entries: Mapping[int, Sequence[Entry]] = field(default_factory=dict)
    customers: frozenset[str] = frozenset()
    in_doubt: frozenset[str] = frozenset()

    def claim_of(self, row: Row, like: JobKey) -> JobKey | None:
        """Return the claim that this job belongs to, if it is of `like`'s grid; None for every other job."""
        entries = self.entries.get(row.slurm_id, ())
        return like.of_same_grid(entries[-1].folder) if entries and entries[-1].has(row) else None

    def is_foreign(self, row: Row) -> bool:
        """Return whether this is a job of a customer's account that belongs to no claim of any grid."""
        known = any(entry.user == row.user for entry in self.entries.get(row.slurm_id, ()))
        return row.user in self.customers - self.in_doubt and not known


@dataclass(frozen=True, slots=True)
class Holdings:
    """The jobs of claims in a queue, and the jobs of customers' accounts that belong to no claim.

    `accounts` are the numeric ids of the accounts of the claims' jobs.
    """

    claims: Mapping[JobKey, SlurmJob]
    foreign: tuple[Row, ...] = ()
    accounts: Mapping[JobKey, str] = field(default_factory=dict)


def holdings(rows: Iterable[Row], ledger: Ledger, like: JobKey) -> Holdings:
    """Sort the queue's rows by the ledger."""
    claims: dict[JobKey, SlurmJob] = {}
    accounts: dict[JobKey, str] = {}
    foreign = []
    for row in rows:
        if key := ledger.claim_of(row, like):
            claims[key], accounts[key] = as_job(row), row.user
        elif ledger.is_foreign(row):
            foreign.append(row)
    return Holdings(claims, tuple(foreign), accounts)


def parse_ledger(done: CommandResult) -> Ledger:
    """Parse the answer of `ledger_lookup.sh`. Raises SlurmUnreachable when it was cut off."""
    entries: dict[int, list[Entry]] = {}
    customers, in_doubt = set(), set()
    for line in whole_answer(done):
        match line.split(" "):
            case ["entry", slurm_id, folder, user, *taken] if is_id(slurm_id) and is_id(user):
                known = int(taken[0]) if taken and is_id(taken[0]) else None
                entries.setdefault(int(slurm_id), []).append(Entry(folder, user, known))
            case ["customer", user] if is_id(user):
                customers.add(user)
            case ["doubt", user]:
                in_doubt.add(user)
    return Ledger(entries, frozenset(customers), frozenset(in_doubt))
