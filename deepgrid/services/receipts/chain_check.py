"""Compares a receipt with the chain: the paid job, and the events of its settlement."""

from __future__ import annotations

from deepgrid.chain.job_trail import Trail
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.services.receipts.contents import Asked, Contents, Entry, Times


def differences_from(contents: Contents, job: Job) -> list[str]:
    """Return the names of the fields that differ between the receipt and the job on chain. The job must be over."""
    money, minutes = contents.money, contents.minutes
    pairs: dict[str, tuple[object, object]] = {
        "job": (contents.job_id, job.id),
        "customer": (contents.customer, job.customer),
        "provider": (contents.provider, job.provider),
        "state": (contents.status, job.status.words),
        "request": (contents.asked, asked_of(job)),
        "times": (contents.times, times_of(job)),
        "rate": (int(money.rate_wei_per_minute), job.rate_wei_per_minute),
        "bought minutes": (minutes.bought, job.granted_minutes),
        "locked credits": (int(money.locked_wei), job.locked_wei),
        "cost": (int(money.cost_wei), job.final_cost_wei),
        "cut percent": (money.cut_percent, job.cut_percent),
    }
    return [name for name, (said, true) in pairs.items() if said != true]


def require_same_on_chain(contents: Contents, job: Job, trail: Trail) -> None:
    """Raise InputError unless the receipt matches the chain, including every transaction."""
    settlement = trail.settlement
    if settlement is None:
        raise InputError(f"The receipt is signed, but job {job.id} is not over on chain.")
    found = differences_from(contents, job)
    money = contents.money
    pairs: dict[str, tuple[object, object]] = {
        "billed minutes": (contents.minutes.billed, settlement.billed_minutes),
        "payment": (int(money.paid_wei), settlement.paid_wei),
        "cut": (int(money.cut_wei), settlement.cut_wei),
        "top-ups": ((money.top_ups, int(money.top_ups_wei)), (len(trail.top_ups), trail.top_ups_wei)),
        "transactions": (contents.transactions, entries_of(trail)),
    }
    found += [name for name, (said, true) in pairs.items() if said != true]
    if found:
        raise InputError(f"The receipt is signed, but the chain says otherwise: {', '.join(found)}.")


def asked_of(job: Job) -> Asked:
    """Return the resources that the job requested."""
    asked = job.definition
    return Asked(
        definition_hash=clean(asked.definition_hash),
        tasks=asked.ntasks,
        cpus_per_task=asked.cpus_per_task,
        mem_per_cpu_mb=asked.mem_per_cpu_mb,
        gpus=asked.gpus,
    )


def clean(text: str, most: int = 256) -> str:
    """Return untrusted text in a form that a receipt can hold."""
    return "".join(c if c.isprintable() else "?" for c in text[:most])


def times_of(job: Job) -> Times:
    """Return the job's times on the chain's clock."""
    return Times(
        submitted_at=job.submitted_at, claimed_at=job.claimed_at, started_at=job.started_at, ended_at=job.ended_at
    )


def entries_of(trail: Trail) -> list[Entry]:
    """Return the transactions of a receipt, in order."""
    return [
        Entry(
            what=one.what,
            at=one.at,
            block=one.block,
            log_index=one.log_index,
            transaction=one.tx_hash,
            wei=str(one.wei),
        )
        for one in trail.shortened
    ]
