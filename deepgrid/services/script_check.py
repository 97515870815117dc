"""Checks rendered batch scripts with bash and shellcheck before they run."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Collection
from dataclasses import dataclass

from deepgrid.errors import ConfigurationError, InputError, ServiceError

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
BOUNDED = ("bash", "--norc", "--noprofile", "-c", 'ulimit -t "$0" && exec "$@"')


@dataclass(frozen=True)
class CheckLimits:
    """Limits on each checker of one script: CPU time, and elapsed time on a busy machine."""

    processor_s: int = 10
    within_s: float = 120.0


DEFAULT_LIMITS = CheckLimits()


def check_script(text: str, *, niceness: int = 0, limits: CheckLimits = DEFAULT_LIMITS) -> None:
    """Check the script's grammar with bash and, where it is installed, warnings of shellcheck.

    `niceness` lowers the priority of the checkers, up to 19. Raises InputError with lines and rules, never with the
    script's text; ServiceError when a checker does not answer in time.
    """
    check_grammar(text, niceness=niceness, limits=limits)
    lint_script(text, niceness=niceness, limits=limits)


def lint_script(
    text: str, *, without: Collection[str] = (), niceness: int = 0, limits: CheckLimits = DEFAULT_LIMITS
) -> None:
    """Run the slow part of `check_script`: warnings of shellcheck, where it is installed. Raises the same errors.

    The time grows with the square of the text. `without` are codes of warnings that do not count, such as SC2154.
    """
    if shutil.which("shellcheck") is None:
        return
    command = ["shellcheck", "--norc", "--shell=bash", "--severity=warning", "--format=gcc"]
    command += [f"--exclude={code}" for code in without]
    linted = _run([*command, "-"], text.encode(), niceness, limits)
    if linted.returncode != 0:
        findings = [line.removeprefix("-:") for line in linted.stdout.decode(errors="replace").splitlines()[:5]]
        raise InputError("shellcheck warns about the batch script: " + "; ".join(findings))


def check_grammar(text: str, *, niceness: int = 0, limits: CheckLimits = DEFAULT_LIMITS) -> None:
    """Run the quick part of `check_script`: the script is valid bash and not too large. Raises the same errors."""
    content = text.encode()
    if len(content) >= MAX_SCRIPT_BYTES:
        raise InputError(f"the batch script must be smaller than {MAX_SCRIPT_BYTES // 1024**2} MiB")
    if _run(["bash", "--norc", "--noprofile", "-n"], content, niceness, limits).returncode != 0:
        raise InputError("the batch script is not valid bash")


def require_shellcheck() -> None:
    """Raise ConfigurationError if shellcheck is not installed."""
    if shutil.which("shellcheck") is None:
        raise ConfigurationError(
            "shellcheck is not installed; it must check every script before a job is accepted.",
            next_step="Install the package shellcheck.",
        )


def _run(command: list[str], content: bytes, niceness: int, limits: CheckLimits) -> subprocess.CompletedProcess[bytes]:
    bounded = [*(("nice", "-n", str(niceness)) if niceness else ()), *BOUNDED, str(limits.processor_s), *command]
    try:
        ended = subprocess.run(bounded, input=content, capture_output=True, timeout=limits.within_s, check=False)
    except subprocess.TimeoutExpired:
        raise ServiceError(f"{command[0]} did not finish the batch script within {limits.within_s:.0f} s") from None
    if ended.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        raise InputError(f"{command[0]} needs more than {limits.processor_s} s for the batch script: use fewer steps")
    return ended
