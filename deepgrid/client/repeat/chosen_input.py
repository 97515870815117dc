"""Gives a job its input: files of this machine, or the output of another job. Files can be private."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex

from deepgrid.client.job_values import LAST_JOB, job_number
from deepgrid.client.order import Terms, order_of
from deepgrid.client.workflow import FilePath, Workflow
from deepgrid.errors import InputError
from deepgrid.lifecycle.feature_labels import PRIVATE

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.services.files.private_keys import FileKeys
    from deepgrid.workflow.models import PrivateFiles


def check_ways(key: str | None, *, cache: bool = False, private: bool = False) -> None:
    """Raise InputError if a job would be found in several ways, or private files by what differs in each call."""
    if cache and key is not None:
        raise InputError("A job is found by a key, or by cache.", next_step="Give one of them.")
    if private and (cache or key is not None):
        raise InputError(
            "Each call encrypts private files with another key, so neither a key nor cache finds their job again.",
            next_step="Leave out the key and cache.",
        )


async def with_input(
    connection: Connection,
    workflow: Workflow,
    paths: FilePath | Sequence[FilePath],
    input_from: SupportsIndex | None,
    terms: Terms,
    private: bool = False,
) -> Workflow:
    """Return the workflow with these files, or the output of the job `input_from`, as its input.

    If it names no output, the grid keeps it. With `private`, the files and the output are encrypted for the clusters
    that can run the job on these terms. Files for a workflow with private files are private, too.
    Raises InputError, including when the workflow has an input of its own.
    """
    definition = workflow.definition
    names = {one.key for one in terms.uses} | {one.key for one in terms.affinity}
    if PRIVATE in names and not private and not definition.private_files:
        raise InputError(f"The label {PRIVATE} is for jobs with private files.", next_step="Submit it with --private.")
    if not paths and input_from is None and (not private or definition.private_files):
        return workflow
    from deepgrid.workflow.models import GridData, TransportData

    chosen = [paths] if isinstance(paths, str | Path) or not isinstance(paths, Sequence) else list(paths)
    private = private or definition.private_files is not None
    if chosen and input_from is not None:
        raise InputError("A job has one input: files to send, or the output of another job, not both.")
    own = definition.input
    if own is not None and own != TransportData() and own != TransportData(grid=GridData()):
        raise InputError("The workflow names an input already.", next_step="Take `input` out of it.")
    if private and input_from is not None:
        raise InputError(
            "The output of another job cannot be the input of a job with private files.",
            next_step=f"Fetch it with `dps job download {input_from}`, and send it.",
        )
    output, keys = definition.output or TransportData(grid=GridData()), None
    changes: dict[str, object] = {"output": output, "input": None}
    if private:
        if output.grid is None:
            raise InputError("The workflow sends its output elsewhere, in clear text.", next_step="Write grid: {}.")
        keys, changes["private_files"] = await _private(connection, workflow, terms)
    if input_from is not None:
        changes["input"] = TransportData(job=job_number(input_from, 1, LAST_JOB))
    elif chosen:
        number = await _send(connection, [Path(path).expanduser() for path in chosen], keys)
        changes["input"] = TransportData(grid=GridData(files=number))
    return workflow.with_definition(definition.model_copy(update=changes))


async def _send(connection: Connection, paths: Sequence[Path], keys: FileKeys | None) -> str:
    """Send the files, encrypted if there are keys. Returns the number of the input."""
    from deepgrid.client.files.sealed_files import SealedFiles  # here: few programs send files
    from deepgrid.client.files.sending import send
    from deepgrid.services.client import FilesClient

    seal = None if keys is None else lambda files: SealedFiles(files, keys)
    files, authorities = FilesClient(connection.session.services), connection.chain.book.authorities
    return await send(files, paths, authorities, connection.settings, seal=seal)


async def _private(connection: Connection, workflow: Workflow, terms: Terms) -> tuple[FileKeys, PrivateFiles]:
    """Return new keys, and their form for the clusters that can run the job. Raises InputError if there are none."""
    from deepgrid.services.files.private_keys import FileKeys
    from deepgrid.services.signing.signatures import Domain
    from deepgrid.workflow.models import PrivateFiles

    later = workflow.definition.model_copy(update={"private_files": PrivateFiles(own="00")})
    order = order_of(workflow.with_definition(later), 0, None, terms)
    clusters = order.fitting(await connection.reads.providers())
    book = connection.chain.book
    keys = FileKeys.new(connection.session.sender.wallet, Domain(book.chain_id, book.meta_scheduler))
    sealed = keys.sealed_for(cluster for cluster, _ in clusters)
    if not sealed.clusters:
        raise InputError(
            "No cluster that can run this job has published a key for private files.",
            next_step="Look for the label storage.private in `dps provider list`, or submit without --private.",
        )
    return keys, sealed
