"""Installs the hooks over the site's login: reads the site's present state, and applies the plan of `hook_config`."""

from __future__ import annotations

import base64
import hashlib
import time

from deepgrid.errors import ConfigurationError
from deepgrid.slurm.setup.hook_config import FileChange, Plan, Site
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

_SITE = read_script("config.sh", "site.sh")
_PUT = read_script("put.sh")
_SPOOL = 'mkdir -p "$1" && chown "$2" "$1" && chmod "$3" "$1"'


async def read_site(login: Runner, settings: LoginSettings) -> Site:
    """Read the site's present state. Raises SlurmUnreachable when the answer was cut off, and as `Runner.run` does."""
    facts: dict[str, str] = {}
    texts: dict[str, str] = {}
    for line in whole_answer(await login.run(call(_SITE, settings.grid_root, settings.submit_wrapper))):
        name, _, coded = line.rpartition(" ")
        text = base64.b64decode(coded).decode(errors="surrogateescape")
        if name.startswith("file "):
            texts[name.removeprefix("file ")] = text
        else:
            facts[name] = text
    if not facts.get("slurm_user") or "slurm.conf" not in texts:
        raise ConfigurationError(
            "The login node shows no slurm.conf, or slurmctld does not answer there.",
            next_step="Use --print, and let the administrator install the hooks where slurmctld runs.",
        )
    return Site(facts, texts, settings)


async def apply(login: Runner, site: Site, plan: Plan) -> str:
    """Apply the plan without the restart. Returns the path of slurm.conf's backup; empty if slurm.conf did not change.

    Safe to repeat. Raises ConfigurationError for a file that cannot be written or was changed meanwhile.
    """
    if plan.owner:
        done = await login.run(call(_SPOOL, site.spool, plan.owner, f"{plan.spool_mode:o}"))
        if done.exit_status:
            raise _refusal(f"The owner of {site.spool} could not be changed to {plan.owner}")
    copy = ""
    for change in [*filter(None, [plan.wrapper]), *plan.files]:
        kept = ""
        if change.path == site.path("slurm.conf"):
            kept = copy = f"{change.path}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        await _put(login, change, kept)
    return copy


async def restart(login: Runner, command: str) -> None:
    """Run the site's own command that restarts slurmctld. Raises ConfigurationError when the command fails."""
    done = await login.run(["sh", "-c", command])
    if done.exit_status:
        lines = (done.complaint or done.text).strip().splitlines()
        raise ConfigurationError(f"The restart failed: {lines[-1] if lines else f'status {done.exit_status}'}.")


async def _put(login: Runner, change: FileChange, copy: str) -> None:
    seen = "-" if change.before is None else hashlib.sha256(_bytes(change.before)).hexdigest()
    command = call(_PUT, change.path, f"{change.mode:o}", seen, copy or "-")
    answer = (await login.run(command, stdin=_bytes(change.after))).text.strip()
    if answer != "put":
        raise _refusal(answer or f"{change.path} could not be written")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _refusal(what: str) -> ConfigurationError:
    return ConfigurationError(f"{what}.", next_step="Give the output of --print to the cluster's administrator.")
