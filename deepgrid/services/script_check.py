"""A last look at a rendered script by bash and shellcheck, before anybody runs it."""

from __future__ import annotations

import shutil
import subprocess

from deepgrid.errors import InputError, ServiceError

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
WITHIN_S = 60.0


def check_script(text: str) -> None:
    """Check the script's grammar, and with shellcheck (where installed) its sense at warning level.

    Raises InputError that names lines and rules, never the script's text; ServiceError when a
    checker does not answer in time.
    """
    content = text.encode()
    if len(content) >= MAX_SCRIPT_BYTES:
        raise InputError(f"the batch script is not smaller than {MAX_SCRIPT_BYTES // 1024**2} MiB")
    grammar = _run(["bash", "--norc", "--noprofile", "-n"], content)
    if grammar.returncode != 0:
        raise InputError("the batch script is not valid bash")
    if shutil.which("shellcheck") is None:
        return
    sense = _run(["shellcheck", "--norc", "--shell=bash", "--severity=warning", "--format=gcc", "-"], content)
    if sense.returncode != 0:
        findings = [line.removeprefix("-:") for line in sense.stdout.decode(errors="replace").splitlines()[:5]]
        raise InputError("shellcheck warns about the batch script: " + "; ".join(findings))


def _run(command: list[str], content: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, input=content, capture_output=True, timeout=WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise ServiceError(f"{command[0]} did not finish the batch script within {WITHIN_S:.0f} s") from None
