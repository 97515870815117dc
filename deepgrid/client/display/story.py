"""Describes jobs and prices in words: what each state means, where a job waits and why, how it ended, what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deepgrid.billing.credits import format_credits
from deepgrid.billing.expected import releasable_wei
from deepgrid.billing.formulas import MAX_LIMIT_MINUTES, affordable_minutes
from deepgrid.chain.client import Chain
from deepgrid.chain.history import Transition
from deepgrid.client.display.text import moment, moment_utc, plural
from deepgrid.client.job_values import Remark, Step, datetime_of, wei_of
from deepgrid.errors import NotFound
from deepgrid.lifecycle.exits import outcome, own_exit_status
from deepgrid.lifecycle.job import ANSWER_MINUTES, Affinity, Job, Label
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.client.quotes import Quote

# For jobs without an exit status. 124 is the status of timeout(1); the others are next to it.
WITHOUT_STATUS = {
    JobStatus.FINISHED: 0,
    JobStatus.FAILED: 1,
    JobStatus.PANICKED: 123,
    JobStatus.OUT_OF_CREDITS: 124,
    JobStatus.CANCELLED: 125,
}


def exit_status_of(job: Job) -> int:
    """Return the exit status for a job that is over: its own, or one for its final state."""
    return own_exit_status(job.exit_status) or WITHOUT_STATUS[job.status]


class ClusterNames:
    """Names of clusters by address, with a cache."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._names: dict[str, str] = {}

    async def of(self, address: str | None) -> str:
        """Return the name of the cluster at `address`; empty for None."""
        if address is None:
            return ""
        if address not in self._names:
            try:
                self._names[address] = (await self._chain.provider(address)).name
            except NotFound:
                self._names[address] = address
        return self._names[address]


def steps_of(history: Sequence[Transition], job: Job, cluster: str) -> list[Step]:
    """Return the changes of a job's state with their descriptions. `cluster` is the job's current one.

    The chain does not record which cluster had a job before it was given back.
    """
    requests = [at for at, step in enumerate(history) if step.after is JobStatus.PENDING]
    present = requests[-1] if requests else 0
    return [
        Step(step.after, datetime_of(step.at), _step_words(step, job, cluster if at >= present else ""), step.tx_hash)
        for at, step in enumerate(history)
    ]


def _step_words(step: Transition, job: Job, cluster: str) -> str:
    match step.after:
        case JobStatus.PENDING if step.before is not None:
            return "again: the cluster gave it back"
        case JobStatus.PENDING:
            return f"{format_credits(job.locked_wei)} credits locked"
        case JobStatus.META_SCHEDULED:
            return f"to {cluster}" if cluster else ""
        case JobStatus.SCHEDULED:
            minutes = f", for {plural(job.granted_minutes, 'minute')} at most" if job.granted_minutes else ""
            return f"claimed by {cluster}{minutes}" if cluster else ""
        case JobStatus.RUNNING:
            return f"on {cluster}" if cluster else ""
        case _:
            return outcome(job)


def whereabouts(job: Job, cluster: str) -> str:
    """Return what a job waits for; empty while it runs and when it is over."""
    if job.status.cold:
        return ""
    if job.has_cancel_request:
        return f"to be cancelled: {cluster} has been asked to stop it" + (
            f"; {held_words(job)}" if job.released_wei else ""
        )
    match job.status:
        case JobStatus.PENDING if earlier := job.wishes.after_job:
            return f"job {earlier} must {'end' if job.wishes.after_any else 'finish'} first, then a cluster is found"
        case JobStatus.PENDING:
            return "the meta-scheduler has not found a cluster for it yet"
        case JobStatus.META_SCHEDULED:
            return f"{cluster} has not claimed it yet"
        case JobStatus.SCHEDULED:
            return f"{cluster} has not started it yet"
        case _:
            return ""


def waiting_words(job: Job, cluster: str, remarks: Sequence[Remark] | None) -> str:
    """Return what a job waits for, and why: the latest remark on a pending job, or a general sentence.

    Empty while it runs and when it is over.
    """
    reason = remarks[-1] if remarks else None
    if job.status is JobStatus.PENDING and reason is not None and reason.kind != "assigned":
        return reason.text
    return whereabouts(job, cluster)


def held_words(job: Job) -> str:
    """Return the locked amount and its end, while the cluster does not answer a cancel request."""
    back = f"; {format_credits(job.released_wei)} credits came back" if job.released_wei else ""
    return (
        f"{'' if back else 'all '}{format_credits(job.held_wei)} credits stay locked until"
        f" {moment_utc(job.held_until)}, or until the cluster reports{back}. After that time, cancel it again"
    )


def cancel_words(job: Job) -> str:
    """Return the effect of a job's cancellation: how much came back, or what its cluster does next and by when."""
    if job.status.cold:
        return f"job {job.id} is {job.status.words}; {format_credits(job.returned_wei)} credits came back."
    if job.released_wei:
        return f"job {job.id} is {job.status.words}: its cluster did not answer; {held_words(job)}."
    answer_minutes, fee_minutes = ANSWER_MINUTES, job.fee_minutes
    asked = (
        f"job {job.id} is {job.status.words}: its cluster has been asked to stop it, and settles what it ran"
        f" (at least {plural(fee_minutes, 'minute')} if it ran)"
    )
    if not releasable_wei(job, answer_minutes=answer_minutes, fee_minutes=fee_minutes):
        return f"{asked}; {held_words(job)}."
    return (
        f"{asked}. If it is not settled in {plural(answer_minutes, 'minute')}, cancel it again: then everything beyond"
        f" that time comes back. The rest stays locked until {moment_utc(job.held_until)}, or until the cluster"
        " reports."
    )


def resources_words(job: Job) -> str:
    """`2 tasks of 4 CPUs, 128 MB per CPU, 1 GPU`."""
    wanted = job.definition
    gpus = plural(wanted.gpus, "GPU") if wanted.gpus else "no GPU"
    each = plural(wanted.cpus_per_task, "CPU")
    return f"{plural(wanted.ntasks, 'task')} of {each}, {wanted.mem_per_cpu_mb} MB per CPU, {gpus}"


def conditions(job: Job) -> list[str]:
    """Return the job's conditions on labels, in the format of `--affinities`."""
    return [_use(label) for label in job.definition.uses] + [_affinity(wanted) for wanted in job.definition.affinity]


def wishes(job: Job) -> list[str]:
    """Return the customer's wishes that the contract keeps, in words."""
    kept, words = job.wishes, []
    if kept.max_rate_wei:
        words.append(f"at most {format_credits(kept.max_rate_wei)} credits per minute")
    if kept.min_minutes > 1:
        words.append(f"at least {kept.min_minutes} minutes")
    if kept.prefer:
        words.append(f"{kept.prefer.name.lower()} first")
    if kept.give_up_at:
        words.append(f"given up if no cluster has it by {moment(kept.give_up_at)}")
    if kept.after_job:
        words.append(f"after job {kept.after_job} has {'ended' if kept.after_any else 'finished'}")
    return words


def _use(label: Label) -> str:
    return f"{label.key}={label.value}"


def _affinity(wanted: Affinity) -> str:
    return f"{wanted.key}{':in:' if wanted.op == 'in' else wanted.op}{wanted.value}"


def price_sentences(quote: Quote, credits_wei: int | None = None) -> Iterator[str]:
    """Yield the costs of a job at the clusters of a grid, and how long `credits_wei` last; or why none can run it."""
    if not quote.offers:
        yield "No cluster of the grid can run it." if quote.misfits else "No cluster has joined the grid yet."
        yield from (f"{misfit.cluster}: {misfit.why}." for misfit in quote.misfits)
        return
    cheapest, dearest = quote.offers[0], quote.offers[-1]
    least, most = wei_of(cheapest.rate), wei_of(dearest.rate)
    count, minute, hour = plural(len(quote.offers), "cluster"), format_credits(least), format_credits(60 * least)
    if least == most:
        where = f" ({cheapest.cluster})" if len(quote.offers) == 1 else ""
        yield f"{count} can run it{where}: {minute} credits per minute, {hour} per hour."
    else:
        dear = f"{format_credits(most)} ({dearest.cluster})"
        yield f"{count} can run it: from {minute} credits per minute ({cheapest.cluster}) to {dear}."
        yield f"An hour costs {hour} to {format_credits(60 * most)} credits."
    if credits_wei is not None:
        yield f"{format_credits(credits_wei)} credits last {_duration(credits_wei, least, most)}."


def _duration(credits_wei: int, least: int, most: int) -> str:
    longest, shortest = affordable_minutes(credits_wei, least), affordable_minutes(credits_wei, most)
    bound = ", the most that a job can have" if longest == MAX_LIMIT_MINUTES else ""
    if longest == shortest:
        return plural(longest, "minute") + bound
    return f"{plural(shortest, 'minute')} to {plural(longest, 'minute')}{bound}"
