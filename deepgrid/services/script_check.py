"""A last look at a rendered script by bash and shellcheck, before anybody runs it."""

from __future__ import annotations

import shutil
import signal
import subprocess

from deepgrid.errors import ConfigurationError, InputError, ServiceError

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
PROCESSOR_S = 10  # that one script may cost
WITHIN_S = 20.0  # on a machine that is busy with other things
# quietly beside what answers requests; the shell bounds the processor time
BOUNDED = ("nice", "-n", "10", "bash", "--norc", "--noprofile", "-c", 'ulimit -t "$0" && exec "$@"', str(PROCESSOR_S))


def check_script(text: str) -> None:
    """Check the script's grammar, and with shellcheck (where installed) its sense at warning level.

    Raises InputError that names lines and rules, never the script's text; ServiceError when a
    checker does not answer in time.
    """
    check_grammar(text)
    content = text.encode()
    if shutil.which("shellcheck") is None:
        return
    sense = _run(["shellcheck", "--norc", "--shell=bash", "--severity=warning", "--format=gcc", "-"], content)
    if sense.returncode != 0:
        findings = [line.removeprefix("-:") for line in sense.stdout.decode(errors="replace").splitlines()[:5]]
        raise InputError("shellcheck warns about the batch script: " + "; ".join(findings))


def check_grammar(text: str) -> None:
    """The quick half of it: that the script is valid bash, and not too large. Raises as `check_script`."""
    content = text.encode()
    if len(content) >= MAX_SCRIPT_BYTES:
        raise InputError(f"the batch script is not smaller than {MAX_SCRIPT_BYTES // 1024**2} MiB")
    if _run(["bash", "--norc", "--noprofile", "-n"], content).returncode != 0:
        raise InputError("the batch script is not valid bash")


def require_shellcheck() -> None:
    """Raise ConfigurationError where scripts would pass with only half a look."""
    if shutil.which("shellcheck") is None:
        raise ConfigurationError(
            "shellcheck is not installed, and every script is checked by it before a job is taken.",
            next_step="Install the package shellcheck.",
        )


def _run(command: list[str], content: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        ended = subprocess.run([*BOUNDED, *command], input=content, capture_output=True, timeout=WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise ServiceError(f"{command[0]} did not finish the batch script within {WITHIN_S:.0f} s") from None
    if ended.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        raise InputError(f"{command[0]} needs more than {PROCESSOR_S} s for the batch script: use fewer steps")
    return ended
