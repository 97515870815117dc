"""`dps provider install-hooks`: shows the hooks that a cluster's Slurm needs, and installs them on request."""

from __future__ import annotations

from typing import Annotated

import typer

from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import ClusterName
from deepgrid.errors import ConfigurationError
from deepgrid.slurm.setup import install as hooks
from deepgrid.slurm.setup.hook_config import Plan, Site, plan
from deepgrid.slurm.ssh.login import Login
from deployments.cli.serving import provider_settings
from deployments.provider.setup.answer_checks import open_login


@runs
async def install(
    cluster: ClusterName,
    yes: Annotated[bool, typer.Option("--yes", help="Install the hooks; without it they are only shown.")] = False,
    as_script: Annotated[
        bool,
        typer.Option("--print", help="Print a shell script instead, for administrators and configuration management."),
    ] = False,
    restart: Annotated[
        str, typer.Option("--restart", metavar="COMMAND", help="Then run this on the login node to restart slurmctld.")
    ] = "",
) -> None:
    """Install hooks: Slurm then records the end of each job, guards the grid's jobs and refuses customers' own jobs."""
    settings = (await provider_settings(cluster)).login
    async with open_login(settings) as login:
        site = await hooks.read_site(login, settings)
        made = plan(site)
        if as_script:
            print(made.as_script(site))
            return
        _show(site, made)
        if not await _install(login, site, made, yes=yes):
            return
        if made.restart and restart:
            await hooks.restart(login, restart)
            print("slurmctld was restarted.")
        elif made.restart:
            where = site.facts.get("controller") or "the controller"
            then = f"then `dps provider doctor {cluster}` says whether it works."
            print(f"slurmctld on {where} must be restarted: jobs continue meanwhile; {then}")


async def _install(login: Login, site: Site, made: Plan, *, yes: bool) -> bool:
    """Install what the login allows, if `yes` is set. Returns whether everything is installed now."""
    if not (made.owner or made.files or made.wrapper):
        print("Everything that can be installed is installed.")
        return True
    if not site.writable or (made.wrapper and site.facts["uid"] != "0"):
        raise ConfigurationError(
            f"{site.facts['account']} may not change {site.facts['conf']} on the login node."
            if not site.writable
            else f"Only root can install {site.login.submit_wrapper} on the login node.",
            next_step="Give the output of --print to the cluster's administrator.",
        )
    if not yes:
        print("Nothing was changed; run it with --yes to install.")
        return False
    copy = await hooks.apply(login, site, made)
    print(f"Installed.{f' slurm.conf as it was: {copy}' if copy else ''}")
    return True


def _show(site: Site, made: Plan) -> None:
    if made.owner:
        before = site.facts.get("spool") or "missing"
        print(f"folder {site.spool}: owner {made.owner.rstrip(':')}, mode {made.spool_mode:o} (now: {before})")
    for change in (*made.files, *filter(None, [made.wrapper])):
        print(change.diff(), end="")
    for line in made.lines if made.files or made.restart else ():
        print(f"slurm.conf: {line}")
    for sentence in made.by_hand:
        print(f"by hand: {sentence}")
