"""Asks for the secrets of a kept file without showing them, and opens the file in an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import typer

from deepgrid.cli.access.confirmation import interruptible, on_terminal
from deepgrid.client.repeat.job_files import JobFile, workflow_of
from deepgrid.client.workflow import Workflow
from deepgrid.errors import InputError
from deepgrid.plain_text import plain


def ask_secrets(places: Sequence[str], job_id: int) -> dict[str, str]:
    """Ask for a value for each place, without showing it. Raises InputError without a terminal."""
    if not places:
        return {}
    if not on_terminal():
        raise InputError(
            f"The secrets of job {job_id} are not kept: {', '.join(places)}.",
            next_step=f"Run `dps job file {job_id} > job.yaml`, fill them in, and submit that file.",
        )
    typer.echo(f"The secrets of job {job_id} are not kept. Give them again; they are not shown.", err=True)
    with interruptible():
        return {place: typer.prompt(plain(place), hide_input=True, err=True) for place in places}


def read_again(file: JobFile, name: str, job_id: int, *, edit: bool) -> Workflow:
    """Return the workflow of a kept file with its secrets. With `edit`, the user edits it first. Raises InputError."""
    text = file.text
    while True:
        if edit:
            text = edit_text(text)
        try:
            changed = JobFile(text, _masked_in(text, name) if edit else file.masked)
            return workflow_of(changed, name, ask_secrets(changed.masked, job_id))
        except InputError as error:
            if not edit or not on_terminal():
                raise
            typer.echo(plain(str(error)), err=True)
            with interruptible():
                if not typer.confirm("Edit it again?", default=True, err=True):
                    raise


def edit_text(text: str) -> str:
    """Return the text after the user edited it in $VISUAL or $EDITOR. Raises InputError."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.yaml"
        file.write_text(text, "utf-8")
        try:
            status = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
        except (OSError, ValueError):
            raise InputError(f"{editor} cannot be started.", next_step="Set EDITOR.") from None
        if status:
            raise InputError(f"{editor} ended with status {status}; nothing was submitted.")
        return file.read_text("utf-8")


def _masked_in(text: str, name: str) -> tuple[str, ...]:
    """Return the fields whose secret is still masked. An invalid file has none: its faults are found later."""
    import yaml

    from deepgrid.workflow.masking import masked_places

    try:
        return tuple(masked_places(yaml.safe_load(text)))
    except (yaml.YAMLError, RecursionError):
        return ()
