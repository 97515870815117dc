"""How MPI programs are started on the nodes: the fabric of `mpirun`, and where a program comes from."""

from __future__ import annotations

import re
import shlex

from deepgrid.benchmark.settings import PLAIN_MPI, BenchmarkSettings

PRINT_VERSION = "mpirun --version | sed -n '1s/^/deepgrid-version /p'"
_VERSION = re.compile(r"^deepgrid-version .{0,40}? (\d[\w.]{0,20})$", re.MULTILINE)


def mpirun(settings: BenchmarkSettings) -> str:
    """Return mpirun with its options for the cluster's fabric.

    With `ucx`, messages travel by UCX. `affinities` and `transport` bind it to network interfaces and transports.
    UCX chooses what is left open.
    """
    if not settings.ucx:
        return f"mpirun {settings.mpi_options}".rstrip()
    words = ["mpirun", "--mca pml ucx"]
    if settings.affinities:
        words.append(f"-x UCX_NET_DEVICES={','.join(settings.affinities)}")
    if settings.transport:
        words.append(f"-x UCX_TLS={settings.transport}")
    if settings.mpi_options != PLAIN_MPI:
        words.append(settings.mpi_options)
    return " ".join(words)


def mpirun_version(output: str) -> dict[str, str]:
    """Return the version of mpirun that a script printed."""
    found = _VERSION.search(output)
    return {"mpirun": found[1]} if found else {}


def shell_for(*sources: str) -> str:
    """Return the first line of a script: a login shell if a source is a module, so that `module` is defined."""
    return "#!/bin/bash -l" if any(source.startswith("module:") for source in sources) else "#!/bin/bash"


def finder(source: str, apptainer: str = "apptainer") -> str:
    """Return shell lines that define `find_program NAME`. It sets the array `program` to the words that run NAME.

    It fails if the node does not have the program. In a folder, the program may be at any depth. A container sees the
    folder in the variable `volume`.
    """
    kind, _, where = source.partition(":")
    match kind:
        case "module":
            body = f'module load {shlex.quote(where)} && program=("$(command -v "$1")")'
        case "path":
            found = f'find {shlex.quote(where)} -name "$1" -type f -perm -u+x | head -n 1'
            body = f'program=("$({found})") && [ -n "${{program[0]}}" ]'
        case "image":
            run = f'{shlex.quote(apptainer)} exec ${{volume:+--bind "$volume"}} {shlex.quote(where)} "$1"'
            body = f"command -v {shlex.quote(apptainer)} > /dev/null && program=({run})"
        case _:
            body = 'program=("$(command -v "$1")")'
    return f"find_program() {{ {body}; }}"
