"""The words of one `srun`: its options, and what it starts in each task."""

from __future__ import annotations

from collections.abc import Iterable

from deepgrid.sbatch.quoting import Quoted, quote
from deepgrid.workflow.models import Job, StepRun

# In front of the command when a step has a working folder; $0 is that folder, $1 the shell, $2 the command.
_IN_FOLDER = """
mkdir -p -- "$0" && cd -- "$0" || { echo "change dir to working directory failed" >&2; exit 1; }
exec "$1" -c -- "$2"
""".strip()


def words(texts: Iterable[str]) -> Quoted:
    """Each text as one word of bash."""
    return Quoted(" ".join(quote(text) for text in texts))


def srun_options(job: Job, run: StepRun, name: str | None) -> Quoted:
    """What a step takes of the job, as options."""
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
    if run.mpi:
        options.append(f"--mpi={run.mpi}")
    if run.disable_cpu_binding:
        options.append("--cpu-bind=none")
    return words([*([f"--job-name={name}"] if name else []), *options])


def argv(run: StepRun) -> Quoted:
    """The words that srun starts in each task."""
    shell = run.shell or "/bin/sh"
    if run.work_dir is None:
        return words([*_mapping(run), shell, "-c", "--", run.command])
    return words([*_mapping(run), "/bin/sh", "-c", "--", _IN_FOLDER, run.work_dir, shell, run.command])


def _mapping(run: StepRun) -> list[str]:
    """A user namespace in which the command sees itself as somebody else."""
    if run.map_uid is None and run.map_gid is None:
        return []
    own = [f"--map-user={run.map_uid}"] if run.map_uid is not None else []
    own += [f"--map-group={run.map_gid}"] if run.map_gid is not None else []
    return ["unshare", "--map-current-user", *own, "--mount", "--"]
