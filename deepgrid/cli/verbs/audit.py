"""`dps operator audit`: pays for a job on one cluster, and compares its result with the cluster's labels."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.cli import options
from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import amount, as_anyone, as_customer, provider_address
from deepgrid.cli.display.screen import Screen, print_json
from deepgrid.cli.error_boundary import interruptions_explained, runs
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import credits_of
from deepgrid.errors import SlurmError
from deepgrid.operator.label_audit import Audit, Finding, audit_of, disagreements, findings

MOST_OUTPUT_CHARACTERS = 2**20

Who = Annotated[str, typer.Argument(metavar="PROVIDER", help="Address or cluster name.")]
Credits = Annotated[str, typer.Option("--credits", metavar="AMOUNT", help="Credits to lock; the rest is returned.")]
Seconds = Annotated[int, typer.Option("--seconds", min=1, max=3600, help="Time of each of the three samples.")]
CpusPerRank = Annotated[int, typer.Option("--cpus-per-rank", min=1, help="CPUs per MPI rank, for a BLAS with threads.")]


@runs
async def audit(
    who: Who,
    credits: Credits,
    seconds: Seconds = 60,
    cpus_per_rank: CpusPerRank = 1,
    as_json: options.AsJson = False,
    force: Force = False,
    key: options.KeyFile = options.DEFAULT_KEY,
    book: options.BookFile = None,
) -> None:
    """Measure one node of a cluster by a paid job, and compare the result with its labels. Status 1: they differ."""
    async with as_anyone(book) as chain:
        provider = await chain.provider(await provider_address(chain, who, key))
    ordered = audit_of(provider, seconds, cpus_per_rank)
    locked_wei = amount(credits, wei=False)
    async with as_customer(key, book, asks_services=True) as grid:
        confirm(f"Lock {format_credits(locked_wei)} credits of {grid.address} for the audit?", force=force)
        with interruptions_explained():
            uses = [f"name={provider.name}"]
            job = await grid.submit(ordered.workflow, credits_of(locked_wei), name="audit", uses=uses)
        typer.echo(f"job {job.id} submitted, waiting for its end", err=True)
        found = await _result(job, ordered)
    _show(job, found, as_json=as_json)
    if disagreements(found):
        raise typer.Exit(1)


async def _result(job: AsyncJob, ordered: Audit) -> tuple[Finding, ...]:
    await job.wait()
    if job.provider != ordered.provider.address:
        raise SlurmError(f"Job {job.id} ran on another cluster with the same name, or on none: {job.outcome}.")
    if job.exit_status != 0:
        raise SlurmError(f"The audit did not complete: {job.outcome}.", next_step=f"See `dps job logs {job.id}`.")
    text = ""
    async for line in job.logs(follow=True):
        text += f"{line.text}\n"
        if len(text) > MOST_OUTPUT_CHARACTERS:
            raise SlurmError("The output is too long to be an audit's.", next_step=f"See `dps job logs {job.id}`.")
    return findings(ordered, text)


def _show(job: AsyncJob, found: tuple[Finding, ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"job": job.id, "findings": [asdict(one) for one in found]})
        return
    rows = ([one.key, one.claimed, one.found, "agrees" if one.agrees else "differs"] for one in found)
    Screen().table(["label", "claimed", "found", ""], rows)
