"""Verbs of `dps provider` for the provider's own machine. They read the provider block, or run the supervisor."""

from __future__ import annotations

from typing import Annotated

import typer
from prefect.settings import PREFECT_API_URL

from blocks import settings_cache
from deepgrid.cli.display.screen import report
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import AsJson, ClusterName
from deepgrid.cli.standard_streams import print_result
from deepgrid.provider import registration
from deepgrid.provider.doctor import examine_provider
from deepgrid.provider.session import provider_session
from deepgrid.slurm.ssh.login import authorized_key
from deployments.cli.serving import examine_diagrams, examine_prefect, provider_settings, require_prefect, serve
from deployments.provider import supervisor


@runs
async def register(cluster: ClusterName) -> None:
    """Propose a cluster to the operator: hardware as Slurm reports it, prices and labels of the provider block."""
    async with provider_session(await provider_settings(cluster)) as session:
        outcome = await registration.register(session)
        print_result(
            *(f"proposed  {change}" for change in outcome.changes),
            f"{'' if outcome.changes else 'Nothing changed. '}The provider {session.address} {outcome.standing.value}.",
        )
        if closed := await session.gate.why_closed():
            print_result(f"warning   no job will be claimed. {closed}.")


@runs
async def doctor(cluster: ClusterName, as_json: AsJson = False) -> None:
    """Find what is wrong with a cluster's set-up: Prefect's login, Slurm, ends, accounts, chain, gas, services."""
    settings = await provider_settings(cluster)
    prefect = [await examine_prefect(PREFECT_API_URL.value() or ""), await examine_diagrams()]
    findings = [*prefect, *await examine_provider(settings)]
    report(findings, f"the cluster {cluster}", as_json=as_json)


@runs
async def authorized_keys(
    cluster: ClusterName,
    user: Annotated[
        str, typer.Option("--for", metavar="USER", help="Print nothing unless the supervisor logs in as USER.")
    ] = "",
) -> None:
    """Print the supervisor's public SSH key, in the format of authorized_keys and of sshd's AuthorizedKeysCommand."""
    require_prefect()
    login = (await settings_cache.provider_settings(cluster)).login
    if user in ("", login.user):
        print(authorized_key(login.key_file, cluster))


def serve_provider(cluster: ClusterName) -> None:
    """Run the supervisor of a cluster until a signal stops it: claim jobs, run them on Slurm, settle them."""
    serve(supervisor.serve_provider, cluster)
