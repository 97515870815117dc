"""The words of one `srun`: its options, and the command of each task.

A task has layers, each a command that starts the next one: network or user mapping, then the container, then the
step's own command. The task has the environment of the shell that calls srun.

All users of a node can read the arguments of its processes. So a step's command and working folder are passed in
the variables of `command_variables`, which the step's shell unsets. The arguments of a container's entry point are
an exception, because its process shows them anyway.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from deepgrid.sbatch.container_commands import apptainer_task, enroot_task, pyxis_options
from deepgrid.sbatch.containers import Images
from deepgrid.sbatch.network import namespace_words
from deepgrid.sbatch.quoting import Quoted, quote, short_name
from deepgrid.workflow.models import Definition, EnvVar, StepRun

COMMAND, FOLDER = "__dg_command", "__dg_work_dir"

# An srun inside the step overlaps with it. Otherwise it waits forever for the step's own CPUs. `_EVALUATED` does the
# same for memory, because srun sets that variable after these.
_EXPORTED = "ALL,SLURM_OVERLAP=1,SLURM_EXPORT_ENV=ALL"

# The text that the step's shell runs. Slurm sends signals to all processes of a step. The traps keep the shell alive
# until its program has ended. Then the shell exits with the program's status, or with the signal's.
_EVALUATED = (
    'for __dg_n in 1 2 3 10 12 14 15; do trap "exit \\$((\\$? ? \\$? : 128 + $__dg_n))" "$__dg_n"; done; '
    '[ ! "$SLURM_MEM_PER_CPU" ] || SLURM_MEM_PER_CPU=0; '
    f'eval "unset -v __dg_n __dg_left {COMMAND}; ${COMMAND}"'
)

# Runs before that text if a step has a working folder. $0 is the step's shell, $1 is the text above.
_IN_FOLDER = f"""
mkdir -p -- "${FOLDER}" && cd -- "${FOLDER}" || {{ echo "change dir to working directory failed" >&2; exit 1; }}
unset -v {FOLDER}
exec "$0" -c -- "$1"
""".strip()


def words(texts: Iterable[str]) -> Quoted:
    """Quote each text as one word of bash. Quoted texts stay unchanged."""
    return Quoted(" ".join(text if isinstance(text, Quoted) else quote(text) for text in texts))


def srun_options(job: Definition, run: StepRun, name: str | None, images: Images) -> Quoted:
    """Return the step's resources as options of srun."""
    wanted = run.resources_in(job.resources)
    options = [
        f"--export={_EXPORTED}",
        f"--cpus-per-task={wanted.cpus_per_task}",
        f"--mem-per-cpu={wanted.mem_per_cpu}M",
        f"--gpus-per-task={wanted.gpus_per_task}",
        f"--gpus={wanted.gpus}",
        f"--ntasks={wanted.tasks}",
    ]
    if wanted.tasks == 1:  # otherwise srun warns in the job's output that one task cannot use all nodes
        options.append("--nodes=1")
    if run.kills_on_bad_exit is not None:
        options.append(f"--kill-on-bad-exit={int(run.kills_on_bad_exit)}")
    if run.mpi:
        options.append(f"--mpi={run.mpi}")
    if run.disable_cpu_binding:
        options.append("--cpu-bind=none")
    if run.container:
        options.append("--gpu-bind=none")
        if images.of(run).form == "pyxis":
            options += pyxis_options(run, images.of(run))
    epilog = Quoted('--task-epilog="$__dg_epilog"')
    return words([*([f"--job-name={short_name(name)}"] if name else []), *options, epilog])


def task(run: StepRun, images: Images) -> Quoted:
    """Return the command that srun starts in each task."""
    return words([*_surroundings(run), *_container(run, images), *_command(run)])


def _surroundings(run: StepRun) -> list[str]:
    """Return the outer layer: a network namespace (which also maps users), a user namespace, or nothing."""
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
        return apptainer_task(run, images.containers)
    return enroot_task(run) if image.form == "enroot" else []


def command_variables(run: StepRun) -> list[EnvVar]:
    """Return the step's command and working folder, as variables of the srun that starts it."""
    if run.starts_entry_point:
        return []
    folder = [EnvVar.model_construct(key=FOLDER, value=run.work_dir)] if run.work_dir is not None else []
    return [EnvVar.model_construct(key=COMMAND, value=run.command), *folder]


def _command(run: StepRun) -> list[str]:
    """Return the words that run the step's command, or the arguments of the image's entry point."""
    if run.starts_entry_point:
        return shlex.split(run.command)
    shell = run.shell or "/bin/sh"
    if run.work_dir is None:
        return [shell, "-c", "--", _EVALUATED]
    return ["/bin/sh", "-c", "--", _IN_FOLDER, shell, _EVALUATED]
