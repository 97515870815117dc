"""Builds the site of a disguise: a real Slurm and a real sshd, changed before the supervisor sees them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from deepgrid.slurm.ssh.login_settings import LoginSettings
from deployments.onemachine.daemons.processes import Daemon, ProcessTable
from deployments.onemachine.slurm import ClusterSpec, SlurmSite
from tests.disguise.disguises import Disguise
from tests.slurm.ordinary import sshd
from tests.slurm.support import Box
from tests.waiting import wait_until

NAME = "site"
CPUS = 16  # of each node
OUT = re.compile(r" State=\S*(MAINT|DRAIN|DOWN)")
PROGRAMS = ("squeue", "sbatch", "scancel", "scontrol", "sacct", "sinfo", "srun")
VARIABLES = (
    "SQUEUE_USERS=nobody SQUEUE_STATES=PD SQUEUE_FORMAT=%i SQUEUE_SORT=-i SCANCEL_NAME=other SCANCEL_INTERACTIVE=1"
    " SCANCEL_STATE=PENDING SACCT_FORMAT=jobid SINFO_FORMAT=%n SBATCH_PARTITION=none SBATCH_TIMELIMIT=1"
    " SBATCH_JOB_NAME=other SLURM_TIME_FORMAT=relative SLURM_JOB_ID=1 SLURM_BITSTR_LEN=1"
)
FOREIGN = "TZ=Asia/Kolkata LC_ALL=de_DE.UTF-8 TMPDIR=/nonexistent POSIXLY_CORRECT=1 CDPATH=/tmp BASH_ENV=/dev/null"
NOISES = {
    "none": "",
    "a banner": "echo 'Welcome to the cluster.'; echo; echo '| 93 % of your quota is used |'",
    "a complaint": "echo 'stty: standard input: Inappropriate ioctl for device' >&2",
    "bytes without a line end": r"printf 'quota: 93%%\377\001 end'",
    "a pause": "sleep 0.4",
}
# The real program is "$real". A site's sbatch that prints for people drops --parsable.
WRAPPERS = {
    "sbatch with a banner": (
        ("sbatch",),
        'echo "Project balance: 1234 hours"\n'
        'for word; do shift; [ "$word" = --parsable ] || set -- "$@" "$word"; done\nexec "$real" "$@"',
    ),
    "warnings on standard error": (
        PROGRAMS,
        'echo "${0##*/}: warning: the cluster is down on Monday" >&2\nexec "$real" "$@"',
    ),
    "slow commands": (PROGRAMS, 'sleep 0.3\nexec "$real" "$@"'),
}
GREEDY_JOBS_END = "\nJobAcctGatherFrequency=task=2\nJobAcctGatherParams=OverMemoryKill\n"


@dataclass(frozen=True)
class Disguised:
    """A running site: as its administrator sees it, and as the supervisor does."""

    box: Box
    login: LoginSettings


class _Site(SlurmSite):
    """A site whose daemons have another clock, and more lines of configuration."""

    def __init__(self, state: Path, spec: ClusterSpec, how: Disguise) -> None:
        super().__init__(state, [spec])
        self._how = how

    def prepare(self) -> None:
        super().prepare()
        if self._how.ends_greedy_jobs:
            with open(self.environment(NAME)["SLURM_CONF"], "a") as conf:
                conf.write(GREEDY_JOBS_END)

    def environment(self, cluster: str) -> dict[str, str]:
        return {**super().environment(cluster), **clock_variables(self._how.clock_s)}

    def daemons(self) -> list[Daemon]:
        clock = clock_variables(self._how.clock_s)
        return [replace(one, env={**one.env, **clock}) if one.name != "mariadbd" else one for one in super().daemons()]


def clock_variables(ahead_s: int) -> dict[str, str]:
    """Return the environment of processes whose wall clock is this far ahead. Their monotonic clock is right."""
    if not ahead_s:
        return {}
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    rest = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{ahead_s:+d}", **rest}


@contextmanager
def disguised_site(how: Disguise, folder: Path) -> Iterator[Disguised]:
    """Run the site of a disguise in a folder that other accounts may enter."""
    spec = ClusterSpec(
        NAME, nodes=3, cpus_per_node=CPUS, mem_per_node_mb=8000, hook=how.has_hook, accounting=how.has_accounting
    )
    site, table = _Site(folder, spec, how), ProcessTable(folder)
    with ExitStack() as stack:
        stack.callback(site.stop, table)
        site.start(table)
        box = Box(site, table, NAME)
        _take_out_a_node(how, box)
        yield Disguised(box, stack.enter_context(_login(how, box, folder / "login")))


def _take_out_a_node(how: Disguise, box: Box) -> None:
    last = f"nodename={NAME}-n3"
    if how.nodes == "one drained":
        box.slurm("scontrol", "update", last, "state=drain", "reason=fan | of rack 3")
    elif how.nodes == "one down":
        box.slurm("scontrol", "update", last, "state=down", "reason=power supply")
        box.stop(f"{NAME}-n3")  # otherwise it registers, and is up again
    elif how.nodes == "one reserved":
        reserved = ("reservationname=upkeep", "users=root", "starttime=now", "duration=60", "flags=maint,ignore_jobs")
        box.slurm("scontrol", "create", "reservation", *reserved, f"nodes={NAME}-n3")
    if how.nodes != "all usable":
        wait_until(lambda: OUT.search(box.slurm("scontrol", "-o", "show", "node", f"{NAME}-n3")))


@contextmanager
def _login(how: Disguise, box: Box, folder: Path) -> Iterator[LoginSettings]:
    """Run the login node's sshd. Each command runs in the disguise's shell, after its profile."""
    folder.mkdir(mode=0o755)
    is_hidden = "PATH" in how.environment or "slurm_path" in how.environment
    _write_programs(how, folder, hidden=is_hidden)
    (folder / "home").mkdir()
    if how.environment == "Slurm on the profile's PATH":
        (folder / "home" / ".profile").write_text(f"PATH={folder}/bin:$PATH\n")
        (folder / "home" / ".cshrc").write_text(f"set path = ({folder}/bin $path)\n")
    (folder / "profile").write_text(_profile(how, folder, hidden=is_hidden))
    (folder / "profile").chmod(0o755)
    hide = f'for name in {" ".join(PROGRAMS)}; do mount --bind /dev/null "/usr/bin/$name"; done; exec "$@"'
    prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, "sh"] if is_hidden else []
    more = f"MaxSessions {how.max_sessions}\nForceCommand {folder}/profile"
    with sshd(box, folder, box.settings.user, more, prefix) as settings:
        path = f"{folder}/bin" if how.environment == "Slurm where slurm_path says" else ""
        yield replace(settings, slurm_path=path)


def _profile(how: Disguise, folder: Path, *, hidden: bool) -> str:
    """Return what sshd runs for each command: the profile, then the command in the login's shell, as sshd does."""
    clock = " ".join(f"{name}={value}" for name, value in clock_variables(how.clock_s).items())
    lines = ["#!/bin/sh", NOISES[how.noise], f"export HOME={folder}/home SHELL={how.login_shell}"]
    if clock:
        lines += [f"export {clock}"]
    if how.environment == "variables of Slurm":
        lines += [f"export {VARIABLES}"]
    elif how.environment == "foreign":
        lines += [f"export {FOREIGN}", "umask 077"]
    if how.wrapper != "none" and not hidden:
        lines += [f"PATH={folder}/bin:$PATH"]
    return "\n".join([*lines, 'exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"', ""])


def _write_programs(how: Disguise, folder: Path, *, hidden: bool) -> None:
    """Write the wrappers of the disguise, and where Slurm is hidden its programs, to `bin`."""
    (folder / "bin").mkdir()
    (folder / "real").mkdir()
    wrapped, text = WRAPPERS.get(how.wrapper, ((), ""))
    for name in PROGRAMS:
        real, program = Path("/usr/bin") / name, folder / "bin" / name
        if hidden:
            real = Path(shutil.copy(real, folder / "real"))
        if name in wrapped:
            program.write_text(f"#!/bin/sh\nreal={real}\n{text}\n")
            program.chmod(0o755)
        elif hidden:
            os.link(real, program)
