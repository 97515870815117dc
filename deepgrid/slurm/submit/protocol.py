"""One sbatch per claim: the request, the guarded script, and the login node's answer.

`protocol.sh` is the protocol itself. It runs on the login node under the lock of the job's folder. The payload runs at
most once per claim, despite any failure: the guard at the beginning of the script stops a second start.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

from deepgrid.errors import Deposed, InputError, SlurmError, SlurmUnreachable, SubmitLimit
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.slurm.commands.complaints import LIMITS, OUTAGES
from deepgrid.slurm.commands.query import is_id
from deepgrid.slurm.commands.sbatch import Sbatch
from deepgrid.slurm.observe.run_records import GUARD_STATUS
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.ssh.scripts import call, lines_of, read_script

INTENT_PATIENCE_S = 60  # a lost sbatch must have ended this long after its intent, so it is not repeated earlier
SUBMISSIONS_AT_ONCE = 3  # of one account; others of the same command wait for them
SUBMISSIONS_WITHIN_S = 10  # claims that have not started by then are submitted by another command
WITH_ID = ("submitted", "adopted")
DONE = frozenset({*WITH_ID, "cancelled", "set", "absent", "acknowledged", "state", "removed"})

# What the scripts that submit need.
SHARED = ("common.sh", "identity.sh", "ledger.sh", "as_user.sh", "account.sh", "complaint.sh")
_PROTOCOL = read_script(*SHARED, "submissions.sh", "protocol.sh")
_LOGIN = re.compile(rb"(#! ?/[^\s]*bash) -l[ \t]*\n\Z")
# What a login shell of bash does before the script. Here it comes after the guard: a customer writes the profile of his
# account, and a start that the guard refuses must not run it.
_PROFILE = b"""\
[ ! -r /etc/profile ] || . /etc/profile
for __dg_profile in ~/.bash_profile ~/.bash_login ~/.profile; do
  if [ -r "$__dg_profile" ]; then . "$__dg_profile"; break; fi
done
"""
_SHELL = re.compile(rb"#! ?/[^\s]*?(?:/env )?\b(?:ba|da|)sh\b[^\n]*\n")


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """The resources requested from Slurm. `gpus` is for the whole job, 0 for none, of `gpu_type` if that names one.

    Without `ship_output` the job's output goes to a file that the log shipper does not read. `customer` is a wallet
    address and selects the Unix account of the job.
    """

    ntasks: int
    cpus_per_task: int
    mem_per_cpu_mb: int
    gpus: int
    time_limit_minutes: int
    ship_output: bool = True
    customer: str = ""
    gpu_type: str = ""

    @classmethod
    def of(cls, job: Job, *, ship_output: bool, gpu_type: str = "") -> Self:
        """Return a request for the job's resources on chain, and for the minutes that its credits buy."""
        wanted = job.definition
        return cls(
            ntasks=wanted.ntasks, cpus_per_task=wanted.cpus_per_task, mem_per_cpu_mb=wanted.mem_per_cpu_mb,
            gpus=wanted.gpus, time_limit_minutes=job.granted_minutes, ship_output=ship_output, customer=job.customer,
            gpu_type=gpu_type,
        )  # fmt: skip

    def arguments(self) -> list[str]:
        """Return the request as options of sbatch."""
        options: dict[str, int | str] = {"ntasks": self.ntasks, "cpus-per-task": self.cpus_per_task}
        options["time"] = self.time_limit_minutes
        if self.mem_per_cpu_mb:
            options["mem-per-cpu"] = self.mem_per_cpu_mb
        if self.gpus:
            options["gpus"] = f"{self.gpu_type}:{self.gpus}" if self.gpu_type else self.gpus
        return [f"--{name}={value}" for name, value in options.items()]


@dataclass(frozen=True, slots=True)
class Submission:
    """The job at Slurm. `adopted` is True when an earlier attempt had submitted it."""

    slurm_id: int
    adopted: bool


NOTHING = Submission(0, adopted=False)


@dataclass(frozen=True, slots=True)
class Term:
    """The time between two elections of a provider's leader. Each election increases the epoch by one."""

    provider: str
    epoch: int

    def __str__(self) -> str:
        return f"{self.provider} {self.epoch}"


def job_folder(settings: LoginSettings, key: JobKey) -> str:
    """Return the claim's folder on the login node."""
    return f"{settings.grid_root}/jobs/{key.folder}"


def with_guard(script: str, folder: str) -> bytes:
    """`script` with the guard after its first line, which must name a POSIX shell.

    The guard checks two files. Only the supervisor can write the tombstone. It also made `run/unstarted`, which the
    guard removes before the payload begins. The job's account can remove that file too, but cannot make it again (see
    `run_records.py`). `#SBATCH` lines below the guard have no effect. A login shell's profile runs after the guard.
    """
    body = script.encode()
    first = _SHELL.match(body)
    if first is None:
        raise InputError("A batch script must begin with `#!` and the path of a shell.")
    tombstone, unstarted = shlex.quote(f"{folder}/tombstone"), shlex.quote(f"{folder}/run/unstarted")
    guard = (
        f"if [ -e {tombstone} ]; then echo 'deepgrid: cancelled before it started' >&2; exit {GUARD_STATUS}; fi\n"
        f"rm {unstarted} < /dev/null 2> /dev/null ||"
        f" {{ echo 'deepgrid: not started a second time' >&2; exit {GUARD_STATUS}; }}\n"
    )
    login = _LOGIN.match(first[0])
    begin = login[1] + b"\n" + guard.encode() + _PROFILE if login else first[0] + guard.encode()
    return begin + body[first.end() :]


def sbatch_arguments(settings: LoginSettings, key: JobKey, request: SubmitRequest) -> list[str]:
    """Return the sbatch command, which the protocol runs in the job's account with the script on standard input."""
    folder = job_folder(settings, key)
    output = f"{folder}/output.log" if request.ship_output else f"{folder}/run/output.log"
    place = [f"--comment={key.comment}", f"--output={output}", f"--chdir={folder}/run"]
    return Sbatch(key.name, settings.partition, [*place, *request.arguments()]).argv()


def protocol(
    settings: LoginSettings, verb: str, key: JobKey, *arguments: object, term: Term | None = None
) -> list[str]:
    """Return the command that runs one verb of `protocol.sh` for one claim.

    `term` is the leader's term, if there is one.
    """
    identity = ",".join(key.names), key.comment
    return call(_PROTOCOL, verb, settings.grid_root, key.folder, *identity, term or "", *arguments)


@dataclass(slots=True, eq=False)
class Wanted:
    """A claim to submit under this account with a guarded script, and then what the login node answered."""

    key: JobKey
    request: SubmitRequest
    script: bytes = field(repr=False)
    account: str
    found: Submission = NOTHING

    def arguments(self, settings: LoginSettings) -> list[str]:
        """Return the arguments of `submissions_command` about the claim."""
        sbatch = sbatch_arguments(settings, self.key, self.request)
        return submission(self.key, self.script, self.request.time_limit_minutes, sbatch)


def submission(key: JobKey, script: bytes, minutes: int, sbatch: Sequence[str]) -> list[str]:
    """Return the arguments of `submissions_command` about a claim. `minutes` is the time limit in `sbatch`."""
    options = "\t".join([str(minutes), *sbatch])
    return [key.folder, ",".join(key.names), key.comment, str(len(script)), options]


def submissions_command(
    settings: LoginSettings, account: str, wanted: Sequence[Sequence[str]], term: Term | None = None
) -> list[str]:
    """Return the command that submits claims of one account. It reads their scripts on standard input."""
    limits = (SUBMISSIONS_AT_ONCE, SUBMISSIONS_WITHIN_S)
    values = (INTENT_PATIENCE_S, OUTAGES, LIMITS, account, settings.submits_by, *limits)
    return call(_PROTOCOL, "submissions", settings.grid_root, term or "", *values, *chain.from_iterable(wanted))


def parse_answer(done: CommandResult, asked: JobKey | None = None) -> tuple[str, str]:
    """Return word and text of the protocol's answer, of several the one about the claim `asked`.

    Raises SubmitLimit for `limited`, SlurmUnreachable for `later` and for a missing or unexpected answer, SlurmError
    for `refused` and `tombstone`, Deposed for `deposed`.
    """
    lines = lines_of(done.text)
    if asked is not None:
        place = f"{asked.folder} "
        lines = [line.removeprefix(place) for line in lines if line.startswith(place)]
    if not lines:
        raise SlurmUnreachable("The login node gave no answer.")
    word, _, text = lines[-1].partition(" ")
    if word == "later":
        raise SlurmUnreachable(f"Slurm is not available: {text or 'no reason given'}.")
    if word == "limited":
        raise SubmitLimit(f"Slurm's limit of submitted jobs is reached: {text}.", limit=text)
    if word == "deposed":
        raise Deposed("Another supervisor leads this provider now.")
    if word == "refused":
        raise SlurmError(f"Slurm refused: {text}.")
    if word == "tombstone":
        raise SlurmError("This claim was cancelled or refused; it is not submitted again.")
    if word not in DONE or (word in WITH_ID and not is_id(text)):
        raise SlurmUnreachable("The login node gave an unexpected answer.")
    return word, text
