"""Drains a cluster: it claims no new jobs while its claimed jobs continue, permanently or until it is resumed.

The switch is the pause of the deployment `claim_jobs/CLUSTER`, which anyone may also set in Prefect. A Prefect
variable marks a drain as permanent. The mark counts only while the deployment is paused.
"""

from __future__ import annotations

import re

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound
from prefect.variables import Variable

from deepgrid.errors import ConfigurationError
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.terms import why_not_claimed
from orchestration.runs.filters import UNDER_WAY, runs_with
from orchestration.runs.flow_runs import is_paused

DEPLOY = "Deploy deployments/provider/prefect.yaml for this cluster."


def claiming(cluster: str) -> str:
    """Return the name of the deployment that claims jobs for a cluster."""
    return f"claim_jobs/{cluster}"


def mark(cluster: str) -> str:
    """Return the name of the Prefect variable that marks a cluster as drained for good."""
    return variable_name("draining", cluster)


def variable_name(what: str, cluster: str) -> str:
    """Return the name of a Prefect variable about a cluster."""
    return f"deepgrid_{what}_{re.sub('[^a-z0-9]', '_', cluster.lower())}"


async def drain(cluster: str, *, for_good: bool = False) -> bool:
    """Stop the cluster from claiming jobs. Returns whether it was paused. `for_good` also ends its supervisor."""
    changed = await _switch(cluster, on=False)
    if for_good:
        await Variable.aset(mark(cluster), cluster, overwrite=True)
    return not changed


async def resume(cluster: str) -> bool:
    """Let the cluster claim jobs again. Returns whether it was not paused."""
    if await Variable.aget(mark(cluster)) is not None:
        await Variable.aunset(mark(cluster))
    return not await _switch(cluster, on=True)


async def is_for_good(cluster: str) -> bool:
    """Return whether the cluster is drained for good.

    If the deployment was resumed in Prefect's UI, the mark is stale and removed. A later drain is temporary again,
    unless it says otherwise.
    """
    if await Variable.aget(mark(cluster)) is None:
        return False
    async with get_client() as client:
        paused = is_paused(await client.read_deployment_by_name(claiming(cluster)))
    if not paused:
        await Variable.aunset(mark(cluster))
    return paused


async def is_claiming(cluster: str) -> bool:
    """Return whether a run of `claim_jobs` is under way. It may have started before the drain."""
    async with get_client() as client:
        found = await client.read_deployment_by_name(claiming(cluster))
        return bool(
            await client.read_flow_runs(
                deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[found.id])),
                flow_run_filter=runs_with(states=UNDER_WAY),
                limit=1,
            )
        )


async def why_closed(session: ProviderSession) -> str:
    """Return the reason why the cluster takes no jobs now; empty if it does.

    A drain applies to every run, including one that was started by hand or before the drain. A cluster that lacks
    guards for strangers' jobs takes none.
    """
    if not await session.chain.accepts_requests():
        return "the grid is closed for new jobs"
    if fault := session.services_fault or await why_not_claimed(session):
        return fault
    try:
        async with get_client() as client:
            paused = is_paused(await client.read_deployment_by_name(claiming(session.settings.cluster)))
    except ObjectNotFound:  # the flow was called without a deployment
        paused = False
    return f"{session.settings.cluster} is drained" if paused else await session.gate.why_closed()


async def _switch(cluster: str, *, on: bool) -> bool:
    """Pause or resume the deployment. Returns whether that changed it. Raises ConfigurationError when it is missing."""
    async with get_client() as client:
        found = await _deployment(client, cluster)
        if is_paused(found) is not on:
            return False
        if found.paused:
            await client.resume_deployment(found.id)
        for schedule in found.schedules:
            if schedule.active is not on:
                await client.update_deployment_schedule(found.id, schedule.id, active=on)
        return True


async def _deployment(client: PrefectClient, cluster: str) -> DeploymentResponse:
    try:
        found = await client.read_deployment_by_name(claiming(cluster))
    except ObjectNotFound:
        raise ConfigurationError(f"Prefect has no deployment {claiming(cluster)}.", next_step=DEPLOY) from None
    if not found.schedules:
        words = f"The deployment {claiming(cluster)} has no schedule, which is its switch."
        raise ConfigurationError(words, next_step=DEPLOY)
    return found
