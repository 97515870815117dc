"""`dps provider drain` and `resume`: a cluster claims no new jobs for a while, or for good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from deepgrid.chain.client import Chain
from deepgrid.cli.access.grid import as_anyone, wallet
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import ClusterName
from deployments.cli.serving import provider_settings
from orchestration import claiming_pause

POLL_S = 2.0


@runs
async def drain(
    cluster: ClusterName,
    for_good: Annotated[
        bool, typer.Option("--for-good", help="End the supervisor when the last claimed job is settled.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the last claimed job is settled.")] = False,
) -> None:
    """Stop a cluster from claiming new jobs. Its claimed jobs continue and are settled."""
    async with _own(cluster) as (chain, address):
        was_paused = await claiming_pause.drain(cluster, for_good=for_good)
        now = "was paused already" if was_paused else "is paused"
        print(f"{claiming_pause.claiming(cluster)} {now}: no new claims.")
        claimed, assigned = await chain.claimed_jobs(address), (await chain.queues(address)).claimable
        print(_open_jobs(claimed))
        if assigned:
            minutes = (await chain.constants()).claim_timeout_minutes
            what = "1 assigned job is" if assigned == 1 else f"{assigned} assigned jobs are"
            print(f"{what} not claimed: after {minutes} minutes the operator gives such jobs to other clusters.")
        if for_good:
            print(f"The supervisor ends with status 0 soon after; `dps provider resume {cluster}` takes that back.")
        while wait and (claimed or await claiming_pause.is_claiming(cluster)):
            await asyncio.sleep(POLL_S)
            before, claimed = claimed, await chain.claimed_jobs(address)
            if claimed != before:
                print(_open_jobs(claimed), flush=True)


@runs
async def resume(cluster: ClusterName) -> None:
    """Let a drained cluster claim jobs again."""
    async with _own(cluster):
        was_for_good = await claiming_pause.is_for_good(cluster)
        was_open = await claiming_pause.resume(cluster)
    now = "was not paused" if was_open else "is resumed"
    print(f"{claiming_pause.claiming(cluster)} {now}: the cluster claims jobs.")
    if was_for_good:
        print(f"If its supervisor has ended, start it: `dps provider serve {cluster}`.")


def _open_jobs(claimed: list[int]) -> str:
    if not claimed:
        return "No claimed job is open."
    names = ", ".join(map(str, claimed[:20])) + (", ..." if len(claimed) > 20 else "")
    return f"Open and continuing: job {names}."


@asynccontextmanager
async def _own(cluster: str) -> AsyncIterator[tuple[Chain, str]]:
    """Yield the chain and the provider's address, by the provider block."""
    settings = await provider_settings(cluster)
    async with as_anyone(settings.book) as chain:
        yield chain, wallet(settings.key_file).address
