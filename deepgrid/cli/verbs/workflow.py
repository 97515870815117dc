"""`dps init`, `validate`, `render`, `import` and `schema`: verbs for workflow files. Only prices need a grid."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from deepgrid import modules, sbatch
from deepgrid.cli.access.grid import amount, as_reader
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import BookFile, IgnoreUnknownFields
from deepgrid.cli.standard_streams import write_bytes
from deepgrid.client.display.story import price_sentences
from deepgrid.client.workflow import Workflow, read_workflow
from deepgrid.errors import ChainError, ConfigurationError, InputError
from deepgrid.plain_text import plain
from deepgrid.services.script_check import check_script
from deepgrid.workflow.loading import STANDARD_INPUT
from deepgrid.workflow.schema import json_schema
from deepgrid.workflow.slurm_import import import_script

FILE_NAME = "job.yaml"
SCHEMA_NAME = "job.schema.json"

WorkflowFile = Annotated[Path, typer.Argument(metavar="FILE", help="Workflow file; `-` is standard input.")]


@runs
async def validate(
    file: WorkflowFile,
    credits: Annotated[
        str | None, typer.Option("--credits", metavar="AMOUNT", help="Show how long these credits would last.")
    ] = None,
    ignore_unknown_fields: IgnoreUnknownFields = False,
    book: BookFile = None,
) -> None:
    """Check a workflow file and its modules. Shows all faults at once, or the cost of the job."""
    locked_wei = None if credits is None else amount(credits, wei=False)
    workflow = await read_workflow(file, ignore_unknown_fields=ignore_unknown_fields)
    check_script(workflow.render())
    for warning in workflow.validate():
        print(plain(warning), file=sys.stderr)
    print("valid")
    for line in await _prices(workflow, book, locked_wei):
        print(plain(line))


def render(
    file: WorkflowFile,
    storage: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="Folder of all storage volumes; by default the standard paths of a provider."
        ),
    ] = "",
    ignore_unknown_fields: IgnoreUnknownFields = False,
) -> None:
    """Print the batch script of a workflow file."""
    loaded = modules.load(file, ignore_unknown_fields=ignore_unknown_fields)
    script = sbatch.render(loaded.model, sbatch.StoragePaths.under(storage) if storage else sbatch.StoragePaths())
    check_script(script)
    for warning in loaded.warnings if ignore_unknown_fields else ():
        print(plain(warning), file=sys.stderr)
    write_bytes(script.encode())


def import_(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="Batch script of Slurm, or - for standard input.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="File to write instead of printing it.")
    ] = None,
) -> None:
    """Make a workflow file of a Slurm batch script. Says what has no counterpart."""
    name = "standard input" if str(script) == STANDARD_INPUT else str(script)
    try:
        found = import_script(_read(script).decode())
        if output is None:
            write_bytes(found.workflow.encode())  # in any locale
        else:
            with output.open("x", encoding="utf-8") as file:
                file.write(found.workflow)
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text.") from None
    except FileExistsError:
        raise InputError(f"{output} exists.", next_step="Name another file with --output.") from None
    for line, what in found.remarks:
        place = f"{name}:{line}" if line else name
        print(plain(f"{place}: {what}"), file=sys.stderr)


def _read(script: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(script) == STANDARD_INPUT else script.read_bytes()
    except OSError as error:
        raise InputError(f"{script} cannot be read: {error.strerror}.", next_step="Name another file.") from None


def schema() -> None:
    """Print the JSON schema of workflow files, for editors."""
    write_bytes(_schema_text().encode())


def init(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="File to write, or folder to write job.yaml into.")
    ] = Path(FILE_NAME),
) -> None:
    """Write a commented workflow file to start from, and the schema for editors."""
    where = output / FILE_NAME if output.is_dir() else output
    try:
        with where.open("x", encoding="utf-8") as file:
            file.write(files("deepgrid.cli.verbs").joinpath(FILE_NAME).read_text("utf-8"))
    except FileExistsError:
        raise InputError(f"{where} exists.", next_step="Name another file with --output.") from None
    except OSError as error:
        raise InputError(f"{where} cannot be written: {error.strerror}.") from None
    described = where.with_name(SCHEMA_NAME)
    if not described.exists():
        described.write_text(_schema_text(), "utf-8")
    print(where)


async def _prices(workflow: Workflow, book: Path | None, locked_wei: int | None) -> list[str]:
    """Return the prices of the grid's clusters, or why no prices are known.

    Raises ConfigurationError if `book` is given and wrong.
    """
    try:
        async with as_reader(book) as grid:
            return list(price_sentences(await grid.estimate(workflow), locked_wei))
    except ConfigurationError as error:
        if book is not None:
            raise
        return [f"No prices are known here: {error.message} --book FILE shows the price of the job."]
    except ChainError as error:
        return [f"No prices are known now: {error.message}"]


def _schema_text() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
