"""The words of one `srun`: its options, and what it starts in each task.

A task is layers, each a command that starts the next one: network or user mapping, then container,
then the step's own command. Its environment is that of the shell that calls srun.

All users of a node can read the arguments of its processes, so a step's command and working folder are not among
them: they are in the variables that `command_variables` names, which the step's shell takes out again. The arguments
of a container's entry point are the exception, as its process has them in any case.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from deepgrid.sbatch import apptainer, enroot, pyxis
from deepgrid.sbatch.containers import Images
from deepgrid.sbatch.network import namespace_words
from deepgrid.sbatch.quoting import Quoted, quote
from deepgrid.workflow.models import Definition, EnvVar, StepRun

COMMAND, FOLDER = "__dg_command", "__dg_work_dir"

# What the step's shell runs. Signals go to all processes of a step. The traps keep the shell until the program that it
# waits for has ended, which may take its time; then the shell fails as that program did, or for the signal.
_EVALUATED = (
    'for __dg_n in 1 2 3 10 12 14 15; do trap "exit \\$((\\$? ? \\$? : 128 + $__dg_n))" "$__dg_n"; done; '
    f'eval "unset -v __dg_n {COMMAND}; ${COMMAND}"'
)

# In front of it when a step has a working folder; $0 is the step's shell, $1 the text above.
_IN_FOLDER = f"""
mkdir -p -- "${FOLDER}" && cd -- "${FOLDER}" || {{ echo "change dir to working directory failed" >&2; exit 1; }}
unset -v {FOLDER}
exec "$0" -c -- "$1"
""".strip()


def words(texts: Iterable[str]) -> Quoted:
    """Each text as one word of bash; what is quoted already stays as it is."""
    return Quoted(" ".join(text if isinstance(text, Quoted) else quote(text) for text in texts))


def srun_options(job: Definition, run: StepRun, name: str | None, images: Images) -> Quoted:
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
    if run.container:
        options.append("--gpu-bind=none")
        if images.of(run).form == "pyxis":
            options += pyxis.options(run, images.of(run))
    return words([*([f"--job-name={name}"] if name else []), *options])


def task(run: StepRun, images: Images) -> Quoted:
    """The words that srun starts in each task."""
    return words([*_surroundings(run), *_container(run, images), *_command(run)])


def _surroundings(run: StepRun) -> list[str]:
    """Around the task: a network of its own, which maps users as well, or a user namespace, or nothing."""
    if run.apart:
        start = ["/bin/bash", "-p", "-c", Quoted('"$__dg_network"'), "network"]
        return [*start, *namespace_words(run, _mapped_ids(run)), "--"]
    return ["unshare", "--map-current-user", *_mapped_ids(run), "--mount", "--"] if run.mapped else []


def _mapped_ids(run: StepRun) -> list[str]:
    own = [f"--map-user={run.map_uid}"] if run.map_uid is not None else []
    return own + ([f"--map-group={run.map_gid}"] if run.map_gid is not None else [])


def _container(run: StepRun, images: Images) -> Sequence[str]:
    if run.container is None:
        return []
    image = images.of(run)
    if image.form == "apptainer":
        return apptainer.task(run, images.containers)
    return enroot.task(run) if image.form == "enroot" else []


def command_variables(run: StepRun) -> list[EnvVar]:
    """What a step's shell runs and where, as variables of the one srun that starts it."""
    if run.starts_entry_point:
        return []
    folder = [EnvVar.model_construct(key=FOLDER, value=run.work_dir)] if run.work_dir is not None else []
    return [EnvVar.model_construct(key=COMMAND, value=run.command), *folder]


def _command(run: StepRun) -> list[str]:
    """The words that run the step's own command; of a container's entry point, its arguments."""
    if run.starts_entry_point:
        return shlex.split(run.command)
    shell = run.shell or "/bin/sh"
    if run.work_dir is None:
        return [shell, "-c", "--", _EVALUATED]
    return ["/bin/sh", "-c", "--", _IN_FOLDER, shell, _EVALUATED]
