"""The card of a job that is over at the provider: what a person looks for afterwards. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Settlement
from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.ends import BY_ERROR, ENDS
from deepgrid.lifecycle.exits import exit_words, outcome
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

# The tag for each cause of an end, by the error that the chain keeps.
CAUSES = {error: end.tag for error, end in BY_ERROR.items()}
NODE_FAILURE = ENDS["NODE_FAIL"].tag
OF_THE_CLUSTER = frozenset(error for error, end in BY_ERROR.items() if not end.billed)
OF_THE_JOB = frozenset(end.error for end in ENDS.values() if end.billed)


@dataclass(frozen=True, slots=True)
class JobCard:
    """The message of a claim's end, its tags for filters, and its values by their names."""

    message: str
    tags: tuple[str, ...]
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job ran: the cluster, its partition, and the Unix account (empty for the login's own)."""

    cluster: str
    partition: str
    account: str


def job_card(seen: Observation, place: Place, settlement: Settlement | None, refusal: str = "") -> JobCard:
    """Return the card of a claim that is over, by its last observation.

    `settlement` is None if it is not known. `refusal` is the reason why this provider gave the job back, if it did.
    """
    job = seen.job
    tags = f"customer:{job.customer}", f"cluster:{place.cluster}"
    if seen.is_foreign:
        status = "refused" if refusal else "taken back"
        words = f"The job was given back: {refusal}" if refusal else "This claim is no longer ours"
        end = [status.replace(" ", "-")]
    else:
        status, words = job.status.words, f"The job is {_end_words(job, seen.slurm.nodes)}"
        end = [status.replace(" ", "-"), CAUSES.get(job.last_error, ""), _exit_tag(job), _fault_tag(job, settlement)]
    values = {
        "job": str(job.id),
        "status": status,
        "customer": job.customer,
        "account": place.account,
        "Slurm job": str(seen.slurm.slurm_id or ""),
        "partition": place.partition,
        "nodes": seen.slurm.nodes,
        "claimed": utc(seen.key.claimed_at),
        "started": utc(seen.slurm.started_at),
        "ended": utc(seen.slurm.ended_at),
    }
    if not seen.is_foreign:
        values |= {
            "exit status": exit_words(job).removeprefix("exit status "),
            "error": job.last_error,
            "credits": format_credits(job.final_cost_wei),
        }
    if settlement is not None:
        values |= {
            "minutes": str(settlement.billed_minutes),
            "earned": format_credits(settlement.paid_wei),
            "transaction": settlement.tx_hash,
        }
    return JobCard(
        f"{words}.", tuple(filter(None, (*end, *tags))), {name: text for name, text in values.items() if text}
    )


def utc(unix_s: int | None) -> str:
    """Return a time of unix seconds for people; empty for None."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%F %T} UTC" if unix_s else ""


def _end_words(job: Job, nodes: str) -> str:
    why = outcome(job) if job.exit_status or job.last_error else ""
    if nodes and CAUSES.get(job.last_error) == NODE_FAILURE:
        why = f"{why}: {nodes}"
    return f"{job.status.words}: {why}" if why else job.status.words


def _exit_tag(job: Job) -> str:
    """Return `exit:3` or `signal:9`; empty for a job without an exit status."""
    return exit_words(job).replace("exit status ", "exit:").replace("killed by signal ", "signal:")


def _fault_tag(job: Job, settlement: Settlement | None) -> str:
    """Return `fault:cluster`, `fault:job` or `fault:unclear` for a failed job; empty for another one.

    A cluster is never paid for its own faults. Some ends are billed although the job may not have caused them.
    """
    if job.status not in (JobStatus.FAILED, JobStatus.PANICKED):
        return ""
    unpaid = settlement is not None and settlement.billed_minutes == 0
    if job.status is JobStatus.PANICKED or job.last_error in OF_THE_CLUSTER or unpaid:
        return "fault:cluster"
    return "fault:job" if job.last_error in OF_THE_JOB else "fault:unclear"
