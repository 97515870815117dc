"""Renders a job definition to a batch script, with one small template per construct.

The result is the complete script for Slurm. The submission may replace the line `GUARD_MARK` with its own check. The
script ends with the exit status of the step that failed. Each step is a shell function, so the size of a script is
linear in its steps. Functions of inner steps come first, and are named after their position.
"""

from __future__ import annotations

import inspect
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import jinja2

from deepgrid.errors import InputError
from deepgrid.sbatch import sealed_stream
from deepgrid.sbatch.containers import Containers, Folders, Images, place_of
from deepgrid.sbatch.file_addresses import LONGEST_PATH, MOST_FOLDERS, PART_BYTES, GridFiles
from deepgrid.sbatch.network import hubs, interface_secrets, memberships, uses_networks
from deepgrid.sbatch.quoting import Quoted, only_quoted, quote, short_name
from deepgrid.sbatch.step_commands import command_variables, srun_options, task
from deepgrid.sbatch.storage import StoragePaths
from deepgrid.workflow.faults import dotted
from deepgrid.workflow.models import SHELL_NAMES, Definition, EnvVar, HTTPData, S3Data, Step, StepFor
from deepgrid.workflow.models.fields import LONGEST_BYTES
from deepgrid.workflow.yaml_nodes import Path

GUARD_MARK = "# deepgrid:guard"
USUAL = Containers()
NOWHERE = GridFiles()
MOST_OUTPUT_BYTES = 2**40
INCOMPLETE = 74  # exit status of a job whose output was not sent completely: EX_IOERR of sysexits.h
MOST_BYTES = 1_000_000  # of all variables that steps wrote; Linux usually allows 2 MB of variables and arguments
MOST_ENV_FILE_BYTES = 2**24  # of DEEPSQUARE_ENV, which each step reads
LONGEST_NAME = 300  # of a variable in DEEPSQUARE_ENV
YEARS_S = 2_000_000_000  # a timeout of `read` that no job reaches; it beats TMOUT of a site's profile
MOST_FAULTS = 20  # of DEEPSQUARE_ENV that the log names, at most once each


class ScriptParts(NamedTuple):
    """A batch script in two parts. The first has the job's variables, and functions for the kinds of steps it uses."""

    preamble: str
    steps: str


def render(
    job: Definition,
    storage: StoragePaths,
    containers: Containers = USUAL,
    folders: Folders | None = None,
    grid_files: GridFiles = NOWHERE,
) -> str:
    """Return the batch script of a job for a cluster with these storage volumes and container settings.

    `folders` are the known working folders of images. Others are looked up on the node. `grid_files` are the addresses
    of files that the grid keeps.
    Raises InputError for a job with a module that was not resolved.
    """
    return "".join(render_parts(job, storage, containers, folders, grid_files))


def render_parts(
    job: Definition,
    storage: StoragePaths,
    containers: Containers = USUAL,
    folders: Folders | None = None,
    grid_files: GridFiles = NOWHERE,
) -> ScriptParts:
    """Return the batch script of `render` in its two parts."""
    blocks, names = blocks_of(job)
    every = [block.step for block in blocks]
    values = {"job": job, "storage": storage, "blocks": blocks, "names": names}
    values |= {"images": Images(every, containers, folders), "has_modules": any(step.module for step in every)}
    values |= {"grid_files": grid_files, "grid_moves": needs_grid_files(job)}
    values |= {"networks": uses_networks(job), "hubs": hubs(job)}
    values["relays"] = any(step.launch or (step.for_ and step.for_.parallel) for step in every)
    preamble, steps = (_environment().get_template(name).render(values) for name in ("preamble.sh.j2", "steps.sh.j2"))
    return ScriptParts(preamble, steps)


def needs_grid_files(job: Definition) -> bool:
    """Return whether the script needs addresses of the grid's files."""
    reads = job.input is not None and (job.input.grid is not None or job.input.job is not None)
    return reads or (job.output is not None and job.output.grid is not None)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("deepgrid.sbatch"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is bash, not HTML; `only_quoted` refuses what was not quoted for it
        finalize=only_quoted,
        comment_start_string="<#",  # {# has a meaning in bash
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,  # otherwise each step checks its templates for changes
    )
    environment.filters.update(quote=quote, elements=_elements, export=_export, export_again=_export_again)
    environment.filters.update(within=_within, layer=_layer)
    environment.filters.update(octal=_octal, folder_mode=_folder_mode, file_name=_file_name, folder=_folder)
    environment.globals.update(
        guard_mark=Quoted(GUARD_MARK), shell_names=Quoted("|".join(sorted(SHELL_NAMES))), srun_options=srun_options
    )
    environment.globals.update(longest_bytes=LONGEST_BYTES, most_bytes=MOST_BYTES, most_env_file=MOST_ENV_FILE_BYTES)
    environment.globals.update(longest_name=LONGEST_NAME, most_faults=MOST_FAULTS, years=YEARS_S)
    environment.globals.update(part_bytes=PART_BYTES, most_folders=MOST_FOLDERS, longest_path=LONGEST_PATH)
    environment.globals.update(most_output=MOST_OUTPUT_BYTES, incomplete=INCOMPLETE)
    environment.globals.update(sealed_stream=inspect.getsource(sealed_stream), sealed_name=Quoted(sealed_stream.NAME))
    environment.globals.update(task=task, place_of=place_of, command_variables=command_variables)
    environment.globals.update(interface_secrets=interface_secrets, memberships=memberships)
    return environment


def _export(variable: EnvVar) -> Quoted:
    """`KEY='value'`. The model has checked that the key is an identifier."""
    return Quoted(f"{variable.key}={quote(variable.value)}")


def _layer(variable: EnvVar) -> Quoted:
    """Return the word that sets an input of a module for its steps.

    An input with the same name as a loop variable hides that variable.
    """
    loops = {"item": "__dg_item", "index": "__dg_index", "DEEPSQUARE_ERROR_CODE": "__dg_error_code"}
    if variable.key in loops:
        return Quoted(f"local {loops[variable.key]}={quote(variable.value)}")
    return Quoted(f"__dg_layers+=({quote(f'{variable.key}={variable.value}')})")


def _export_again(variable: EnvVar, prefix: str) -> Quoted:
    """`PREFIX_KEY="$KEY"`: copies a set variable to another name."""
    return Quoted(f'{prefix}{variable.key}="${variable.key}"')


def _elements(texts: Iterable[str]) -> Quoted:
    return Quoted(" ".join(map(quote, texts)))


def _within(loop: StepFor) -> Quoted:
    """Return the condition that continues a loop over a range."""
    assert loop.range is not None
    return Quoted(f"__dg_index {'<=' if (loop.range.increment or 1) > 0 else '>='} {loop.range.end}")


def _octal(mode: int) -> Quoted:
    return Quoted(f"{mode:04o}")


def _folder_mode(mode: int) -> int:
    """Return the folder mode that matches this file mode: users who may read may also enter."""
    return mode | (mode & 0o444) >> 2


def _file_name(data: HTTPData) -> Quoted:
    """Return the last part of a URL's path as a file name, for inputs whose server gives no usable name."""
    name = posixpath.basename(unquote(urlsplit(data.url).path))
    name = short_name("".join(char for char in name if char.isprintable()))
    return quote(name if name not in ("", ".", "..") else "input")


def _folder(data: S3Data) -> str:
    """Return the destination of the output. It ends with '/', which means a folder for s5cmd."""
    return data.bucket_url + data.path.rstrip("/") + "/"


@dataclass(frozen=True, slots=True)
class Block:
    """One step: the name of its function, its position in the file, and the functions of its inner steps."""

    name: Quoted
    place: Quoted
    step: Step
    inner: tuple[Quoted, ...]
    catch: tuple[Quoted, ...]
    finally_: tuple[Quoted, ...]

    @property
    def guarded(self) -> bool:
        """Whether the step has `catch` or `finally`."""
        return bool(self.catch or self.finally_)

    @property
    def handles(self) -> Quoted:
        return Quoted(" ".join(handle.upper() for handle in self.step.depends_on))

    @property
    def handle(self) -> Quoted:
        name = self.step.launch.handle_name if self.step.launch else None
        return Quoted(name.upper() if name else "''")


def blocks_of(job: Definition) -> tuple[list[Block], tuple[Quoted, ...]]:
    """Return all steps of a job, and the functions that the job calls, in order.

    Raises InputError for a module that was not resolved.
    """
    blocks = list(_blocks(job.steps, ("steps",), "step"))
    return blocks, _names(job.steps, "step")


def _blocks(steps: Sequence[Step], path: Path, prefix: str) -> Iterator[Block]:
    for number, step in enumerate(steps, 1):
        name, place = f"{prefix}_{number}", (*path, number - 1)
        if step.use:
            raise InputError(f"{dotted(place)}.use: the module is not resolved")
        inner, where = _inner(step)
        yield from _blocks(inner, (*place, *where), name)
        yield from _blocks(step.catch, (*place, "catch"), f"{name}_catch")
        yield from _blocks(step.finally_, (*place, "finally"), f"{name}_finally")
        functions = (_names(inner, name), _names(step.catch, f"{name}_catch"), _names(step.finally_, f"{name}_finally"))
        yield Block(Quoted(name), Quoted(dotted(place)), step, *functions)


def _inner(step: Step) -> tuple[Sequence[Step], tuple[str, ...]]:
    if step.for_:
        return step.for_.steps, ("for", "steps")
    if step.launch:
        return step.launch.steps, ("launch", "steps")
    if step.module:
        return step.module.steps, ("module", "steps")
    return step.steps, ("steps",)


def _names(steps: Sequence[Step], prefix: str) -> tuple[Quoted, ...]:
    return tuple(Quoted(f"{prefix}_{number}") for number in range(1, len(steps) + 1))
