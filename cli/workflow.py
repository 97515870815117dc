"""`dps validate`, `dps init`: workflow files, without any grid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deepgrid.errors import InputError

FILE_NAME = "job.yaml"
HELLO_WORLD = """\
# A job for `dps submit`: what it gets, and the steps that run one after another.

enableLogging: true # what the job prints can be read with `dps job logs`

resources: # of the whole job
  tasks: 1 # processes that run at the same time
  cpusPerTask: 1
  memPerCpu: 128 # MB
  gpus: 0

env: # known to all steps
  - key: GREETING
    value: Hello world

steps:
  - name: greet
    run:
      command: |
        echo "$GREETING from $(hostname)"
"""


def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Workflow file to check.")],
) -> None:
    """Check a workflow file; everything that is wrong is said at once, with line and column."""
    from deepgrid import workflow

    workflow.load(file)
    print("valid")


def init(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="File to write, or folder to write job.yaml into.")
    ] = Path(FILE_NAME),
) -> None:
    """Write a commented workflow file to start from."""
    where = output / FILE_NAME if output.is_dir() else output
    try:
        with where.open("x") as file:
            file.write(HELLO_WORLD)
    except FileExistsError:
        raise InputError(f"{where} exists.", next_step="Name another file with --output.") from None
    except OSError as error:
        raise InputError(f"{where} cannot be written: {error.strerror}.") from None
    print(where)
