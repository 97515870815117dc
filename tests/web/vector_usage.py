"""Vectors of the wallet page: a customer's jobs of two months, and what they cost by Python's rules."""

from __future__ import annotations

import random
from typing import Any

from deepgrid.billing.entries import Span
from deepgrid.billing.formulas import bill
from deepgrid.billing.usage.own_usage import as_rows, own_usage, shown_names
from deepgrid.lifecycle.job import Job, JobDefinition
from deepgrid.lifecycle.states import JobStatus

NOVEMBER, DECEMBER, END = 1_793_491_200, 1_796_083_200, 1_798_761_600  # of 2026, UTC
CLUSTERS = {f"0x{n:040x}": name for n, name in enumerate(("alpha", "beta", "beta"), start=1)}
COLD = [status for status in JobStatus if status.cold]


def seeded_jobs(seed: int = 43, count: int = 120) -> list[Job]:
    """Return jobs of a customer, settled in two months by the contract's formulas; some are open."""
    chance = random.Random(seed)
    return [_job(chance, job_id) for job_id in range(1, count + 1)]


def _job(chance: random.Random, job_id: int) -> Job:
    rate, locked = chance.randrange(1, 10**20), chance.randrange(10**18, 10**23)
    submitted = chance.randrange(NOVEMBER - 86400, END - 86400)
    status = chance.choice([*COLD, JobStatus.FINISHED, JobStatus.RUNNING])
    provider = chance.choice([*CLUSTERS, None]) if status is JobStatus.CANCELLED else chance.choice([*CLUSTERS])
    minutes = 0 if provider is None or status is JobStatus.PANICKED else chance.randrange(0, 3000)
    cost = bill(minutes, rate, locked, 20).cost if status.cold else 0
    return Job(
        id=job_id, status=status, customer="0xC", provider=provider, definition=JobDefinition(0, 100, 1, 1, ""),
        name=chance.choice(("train", "test", "")), locked_wei=locked, final_cost_wei=cost, submitted_at=submitted,
        assigned_at=submitted, claimed_at=submitted, started_at=submitted + 60,
        ended_at=submitted + 60 * minutes + 90 if status.cold else 0, cancel_requested_at=0, has_cancel_request=False,
        rate_wei_per_minute=rate if provider else 0, cut_percent=20, granted_minutes=locked // rate, last_refuser=None,
        delegate_spending=False, last_error="", exit_status=0,
    )  # fmt: skip


def usage() -> dict[str, Any]:
    """Return the jobs, and the sums by each kind of group over one month and over all time."""
    jobs = seeded_jobs()
    sums = []
    for since, until in ((NOVEMBER, DECEMBER), (0, 2**40)):
        found = own_usage("0xC", Span(since, until), jobs, CLUSTERS)
        for by in ("month", "cluster", "name"):
            rows = [[row[by], row["jobs"], *map(str, _amounts(row))] for row in as_rows(found, by)]  # type: ignore[arg-type]
            sums.append({"since": since, "until": until, "by": by, "rows": rows})
    fields = ("id", "name", "status", "provider", "ended_at", "locked_wei", "final_cost_wei", "rate_wei_per_minute")
    return {
        "clusters": shown_names(CLUSTERS),
        "jobs": [[_value(getattr(job, one)) for one in fields] for job in jobs],
        "sums": sums,
    }


def _amounts(row: dict[str, str | int]) -> list[str | int]:
    return [row["minutes"], row["cost_wei"], row["refunded_wei"]]


def _value(value: object) -> object:
    if isinstance(value, JobStatus):
        return int(value)
    return "" if value is None else str(value)
