"""The file of a job as the services keep it, and the order that repeats the job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deepgrid.client.engine.own_copies import OwnCopies
from deepgrid.client.errors import NoOutput
from deepgrid.client.order import Terms
from deepgrid.client.workflow import Workflow
from deepgrid.errors import GridError, InputError, NotFound
from deepgrid.lifecycle.feature_labels import FEATURES, YES
from deepgrid.lifecycle.job import Job

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.workflow.models.transport import TransportData


@dataclass(frozen=True)
class JobFile:
    """The workflow file of a job, with `***` in place of its secrets. `str` gives its text.

    Attributes:
        text: The file, as YAML with resolved modules.
        masked: Places of the secrets, such as `input.s3.secretAccessKey`.
        tags: Tags of the job.
        note: Note on the job.
        sweep: Id of the sweep that the job belongs to; empty for none.
    """

    text: str = field(repr=False)
    masked: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    sweep: str = ""

    def __str__(self) -> str:
        return self.text


async def read_job_file(connection: Connection, job: Job) -> JobFile:
    """Return the file of an own job: from the services, or the local copy. Raises NotFound, ServiceError."""
    from deepgrid.workflow.as_file import as_file
    from deepgrid.workflow.masking import mask_secrets, masked_places

    try:
        kept = await connection.patiently(lambda: connection.session.services.kept_file(job.id))
    except GridError as error:
        copy = OwnCopies(connection.session.sender.wallet).find(job.definition.definition_hash)
        if copy is None:
            raise _no_file(connection, job) if isinstance(error, NotFound) else error from None
        values = json.loads(mask_secrets(copy))
        return JobFile(as_file(values), tuple(masked_places(values)))
    values = json.loads(kept.definition)
    place = kept.mark.sweep
    return JobFile(as_file(values), tuple(kept.masked), kept.mark.tags, kept.mark.note, place.id if place else "")


def _no_file(connection: Connection, job: Job) -> NotFound:
    if job.customer != connection.session.address:
        return NotFound(f"Job {job.id} is another customer's, who alone may read its file.")
    return NotFound(
        f"The file of job {job.id} is not kept any more.", next_step="Submit your own copy of it with `dps submit`."
    )


def workflow_of(file: JobFile, name: str, secrets: Mapping[str, str] | None) -> Workflow:
    """Return the workflow of a kept file with its secrets. Raises InputError for a missing one."""
    import yaml

    from deepgrid.workflow import parse
    from deepgrid.workflow.masking import fill_secrets

    whole = fill_secrets(yaml.safe_load(file.text), secrets or {}) if file.masked else None
    loaded = parse(file.text if whole is None else json.dumps(whole), f"{name}.yaml")
    return Workflow(loaded.model, name, loaded.warnings)


def terms_again(job: Job) -> Terms:
    """Return the terms of a job, without the labels that its file needs: `order_of` adds them.

    A job that a cluster had does not wait again: the job before it was over.
    """
    from deepgrid.workflow.needs import ANY_RUNTIME, APPTAINER, PRIVATE_FILES

    wishes, waits = job.wishes, job.provider is None
    return Terms(
        uses=tuple(use for use in job.definition.uses if use.key not in FEATURES or use.value != YES),
        affinity=tuple(one for one in job.definition.affinity if one not in (ANY_RUNTIME, APPTAINER, PRIVATE_FILES)),
        delegate_spending=job.delegate_spending,
        min_minutes=wishes.min_minutes,
        max_rate_wei=wishes.max_rate_wei,
        give_up_after_s=max(0, wishes.give_up_at - job.submitted_at) if wishes.give_up_at else 0,
        prefer=wishes.prefer,
        after=wishes.after_job if waits else 0,
        after_any=wishes.after_any and waits,
    )


async def kept_output(connection: Connection, job: Job) -> TransportData | None:
    """Return where a job of another process sends its output. Raises NoOutput if its secrets are not here."""
    from deepgrid.workflow import from_canonical

    copy = OwnCopies(connection.session.sender.wallet).find(job.definition.definition_hash)
    if copy is not None:
        return from_canonical(copy).output
    file = await read_job_file(connection, job)
    if hidden := [place for place in file.masked if place.startswith("output.")]:
        raise NoOutput(
            f"Job {job.id} was submitted on another machine, and its {hidden[0]} is not kept.",
            next_step="Pass the workflow: `download(to, workflow=FILE)`.",
        )
    try:
        return workflow_of(file, job.name, dict.fromkeys(file.masked, "x")).definition.output
    except InputError:  # a secret of another part is not of this form
        raise NoOutput(f"The kept file of job {job.id} cannot be read.", next_step="Pass the workflow.") from None
