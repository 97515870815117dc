"""Gives a job its input: files of this machine, or the output of another job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deepgrid.client.workflow import FilePath, Workflow
from deepgrid.errors import InputError

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection


async def with_input(
    connection: Connection, workflow: Workflow, paths: FilePath | Sequence[FilePath], input_from: int | None
) -> Workflow:
    """Return the workflow with these files, or the output of the job `input_from`, as its input.

    If it names no output, the grid keeps it. Raises InputError, also if the workflow has an input of its own.
    """
    if not paths and input_from is None:
        return workflow
    from deepgrid.client.files.sending import send  # here: few programs send files
    from deepgrid.services.client import FilesClient
    from deepgrid.workflow.models import GridData, TransportData

    chosen = [paths] if isinstance(paths, str | Path) or not isinstance(paths, Sequence) else list(paths)
    definition = workflow.definition
    if chosen and input_from is not None:
        raise InputError("A job has one input: files to send, or the output of another job, not both.")
    own = definition.input
    if own is not None and own != TransportData() and own != TransportData(grid=GridData()):
        raise InputError("The workflow names an input already.", next_step="Take `input` out of it.")
    if input_from is not None:
        source = TransportData(job=input_from)
    else:
        files = FilesClient(connection.session.services)
        places = [Path(path).expanduser() for path in chosen]
        number = await send(files, places, connection.chain.book.authorities, connection.settings)
        source = TransportData(grid=GridData(files=number))
    output = definition.output or TransportData(grid=GridData())
    return workflow.with_definition(definition.model_copy(update={"input": source, "output": output}))
