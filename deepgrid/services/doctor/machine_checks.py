"""The machine of the services: programs and key file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.services.app import ServicesSettings
from deepgrid.services.script_check import require_shellcheck
from deepgrid.services.storage.vault import Vault

SOON_DAYS = 21


def examine_machine(settings: ServicesSettings) -> list[Finding]:
    return [_programs(), _secret(settings.secret_file)]


def judge_end(ends: datetime, what: str) -> Finding:
    """The finding on a certificate that is valid until `ends`."""
    days, day = (ends - datetime.now(UTC)).days, f"{ends:%Y-%m-%d}"
    if days < 0:
        return Finding("tls", Level.BAD, f"{what} ended on {day}.", "Renew it, and restart what serves it.")
    if days < SOON_DAYS:
        return Finding("tls", Level.WARNING, f"{what} ends on {day}.", "Renew it, and restart what serves it.")
    return Finding("tls", Level.GOOD, f"{what} is valid until {day}.")


def _programs() -> Finding:
    if shutil.which("bash") is None:
        return Finding("programs", Level.BAD, "bash is not installed.", "Install the package bash.")
    return _unless_refused("programs", require_shellcheck, "bash and shellcheck are there, which check each script.")


def _secret(path: Path) -> Finding:
    if not path.exists():
        step = "The services make a new one. If their database has data already, restore the file from the backup."
        return Finding("secret", Level.WARNING, f"There is no secret file {path}.", step)
    return _unless_refused("secret", lambda: Vault.open(path), f"{path} holds a key, which only its owner may read.")


def _unless_refused(subject: str, check: Callable[[], object], good: str) -> Finding:
    try:
        check()
    except GridError as error:
        return Finding.of(subject, error)
    return Finding(subject, Level.GOOD, good)
