"""Job definition to batch script, by small templates.

The script is the whole of what Slurm gets, from its first line on; `GUARD_MARK` is the line that
whoever submits it may replace by a check of their own. Its exit status is the failing step's.
"""

from __future__ import annotations

from functools import cache

import jinja2

from deepgrid.sbatch.quoting import Quoted, only_quoted, quote
from deepgrid.sbatch.storage import StoragePaths
from deepgrid.workflow.models import SHELL_NAMES, EnvVar, Job, StepRun

GUARD_MARK = "# deepgrid:guard"

# In front of the command when a step has a working folder; $0 is that folder, $1 the shell, $2 the command.
_IN_FOLDER = """
mkdir -p -- "$0" && cd -- "$0" || { echo "change dir to working directory failed" >&2; exit 1; }
exec "$1" -c -- "$2"
""".strip()


def render(job: Job, storage: StoragePaths) -> str:
    """The batch script of a job on a cluster with these storage volumes."""
    return _environment().get_template("job.sh.j2").render(job=job, storage=storage)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("deepgrid.sbatch"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is bash, not HTML; `only_quoted` refuses what was not quoted for it
        finalize=only_quoted,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(quote=quote, export=_export, argv=_argv)
    environment.globals.update(
        guard_mark=Quoted(GUARD_MARK), shell_names=Quoted("|".join(sorted(SHELL_NAMES))), srun_options=_srun_options
    )
    return environment


def _export(variable: EnvVar) -> Quoted:
    """`KEY='value'`; the key is an identifier, checked by the model."""
    return Quoted(f"{variable.key}={quote(variable.value)}")


def _argv(run: StepRun) -> Quoted:
    """The words that srun starts in each task."""
    shell = run.shell or "/bin/sh"
    if run.work_dir is None:
        return _words(shell, "-c", "--", run.command)
    return _words("/bin/sh", "-c", "--", _IN_FOLDER, run.work_dir, shell, run.command)


def _srun_options(job: Job, run: StepRun, name: str | None) -> Quoted:
    wanted = run.resources_in(job.resources)
    options = [
        "--export=ALL",
        f"--cpus-per-task={wanted.cpus_per_task}",
        f"--mem-per-cpu={wanted.mem_per_cpu}M",
        f"--gpus-per-task={wanted.gpus_per_task}",
        f"--gpus={wanted.gpus}",
        f"--ntasks={wanted.tasks}",
    ]
    if wanted.tasks == 1:  # else srun warns in the job's output that one task cannot use all nodes
        options.append("--nodes=1")
    return _words(*([f"--job-name={name}"] if name else []), *options)


def _words(*words: str) -> Quoted:
    return Quoted(" ".join(quote(word) for word in words))
