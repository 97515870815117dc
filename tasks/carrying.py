"""The side effects of `run_job`, each a retried task around one step of the carrier."""

from __future__ import annotations

from deepgrid.lifecycle.actions import Awaited, ReportRunning, Settle
from deepgrid.roles.carrier import Carrier
from tasks.retrying import side_effect, waiting


@side_effect("fetch script")
async def fetch_script(carrier: Carrier) -> str | None:
    """Get the definition from the Job Definition service, verify it, render the script."""
    return await carrier.fetch_script()


@side_effect("submit to Slurm")
async def submit_to_slurm(carrier: Carrier, script: str) -> None:
    """Hand the script to Slurm, at most once per claim."""
    await carrier.submit(script)


@waiting("await {awaited.value}")
async def await_change(carrier: Carrier, awaited: Awaited) -> None:
    """Wait until there is something else to do than to wait for `awaited`."""
    await carrier.wait(awaited)


@side_effect("report running")
async def report_running(carrier: Carrier, action: ReportRunning) -> None:
    """Tell the chain that the job runs."""
    await carrier.report_running(action)


@side_effect("settle as {action.status.words}")
async def settle(carrier: Carrier, action: Settle) -> None:
    """Report the end; the contract pays the provider and returns the rest."""
    await carrier.settle(action)


@side_effect("refuse")
async def refuse(carrier: Carrier, reason: str) -> None:
    """Give the job back, so that another cluster can run it."""
    await carrier.refuse(reason)


@side_effect("cancel at Slurm")
async def cancel_at_slurm(carrier: Carrier) -> None:
    """Cancel whatever Slurm holds of this claim, and bar a late start."""
    await carrier.cancel_at_slurm()
