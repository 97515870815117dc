"""`dps provider units` and `dps operator units`: print the systemd units of a role, or write them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deepgrid.errors import ConfigurationError, InputError
from deepgrid.files.private_files import replace_file
from deployments.systemd.units import File, Process, files_of, operator_processes, provider_processes

REPOSITORY = Path(__file__).resolve().parents[2]

Write = Annotated[
    Path | None, typer.Option("--write", metavar="FOLDER", help="Write the files below this folder; / installs them.")
]
Checkout = Annotated[Path, typer.Option("--checkout", help="The checkout that the units run.", show_default="this one")]


def provider_units(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Name of the provider block.")],
    write: Write = None,
    checkout: Checkout = REPOSITORY,
) -> None:
    """Print or write the systemd units of a provider's machine: Prefect server, supervisor, worker."""
    _give(f"supervisor-{cluster}", provider_processes(_plain(cluster)), write, checkout)


def operator_units(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the operator block.")],
    write: Write = None,
    checkout: Checkout = REPOSITORY,
) -> None:
    """Print or write the systemd units of an operator's machine: Prefect server, operator, services, proxy, worker."""
    _give("operator", operator_processes(_plain(name)), write, checkout)


def _plain(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise InputError(f"{name[:60]!r} is no name of a block.", next_step="Use small letters, digits and dashes.")
    return name


def _give(role: str, processes: Sequence[Process], write: Path | None, checkout: Path) -> None:
    checkout = checkout.absolute()
    if not re.fullmatch(r"[A-Za-z0-9._/+@-]+", str(checkout)):
        raise InputError(f"systemd cannot use the folder {checkout}.", next_step="Move the checkout, such as to /opt.")
    if write is None:
        for file in files_of(role, processes, checkout):
            print(f"# /{file.path}\n{file.text}")
        return
    try:
        for file in files_of(role, processes, checkout, _login(write / "etc/deepgrid/prefect.env")):
            print(f"{_write(file, write / file.path)}  {write / file.path}")
    except OSError as error:
        raise ConfigurationError(f"{error.filename} cannot be written: {error.strerror}.") from None


def _login(server: Path) -> str:
    """Return the login of Prefect in the environment file of its server; a new one if there is none yet."""
    if not server.exists():
        return f"deepgrid:{secrets.token_urlsafe(24)}"
    found = re.search(r"^PREFECT_SERVER_API_AUTH_STRING=(.*)$", server.read_text(), re.MULTILINE)
    return found[1] if found else ""


def _write(file: File, path: Path) -> str:
    """Write a file that is missing or differs; returns what happened. An environment file of a person stays."""
    if path.exists() and (file.secret or path.read_text() == file.text):
        return "kept   "
    known = path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, file.text.encode(), 0o600 if file.secret else file.mode)
    if file.secret and os.getuid() == 0:
        _hand_to_group(path, file.group)
    return "changed" if known else "written"


def _hand_to_group(path: Path, group: str) -> None:
    """Let the role's account read its file. tmpfiles does the same once the account exists."""
    try:
        shutil.chown(path, group=group)
    except LookupError:  # sysusers has not made the account yet
        return
    path.chmod(0o640)
