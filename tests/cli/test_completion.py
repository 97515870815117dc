"""`dps completion` completes verbs and options in bash, zsh and fish."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import Invoke


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(invoke: Invoke, shell: str) -> None:
    printed = invoke("completion", shell)
    assert (printed.exit_code, "_DPS_COMPLETE" in printed.stdout) == (0, True)


def test_another_shell_is_refused(invoke: Invoke) -> None:
    refused = invoke("completion", "csh")
    assert (refused.exit_code, "'csh' is not one of" in refused.stderr) == (2, True)


def test_it_is_installed_in_the_shells_own_files(invoke: Invoke, tmp_path: Path) -> None:
    installed = invoke("completion", "bash", "--install")
    assert (installed.exit_code, "It works in new shells." in installed.stdout) == (0, True)
    assert "dps" in (tmp_path / ".bashrc").read_text()


def test_bash_completes_verbs_and_options(tmp_path: Path) -> None:
    """A real bash runs the script, which calls `dps` for the words."""
    program = tmp_path / "dps"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deepgrid.cli "$@"\n')
    program.chmod(0o755)
    code = """
        eval "$(dps completion bash)"
        complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dps_completion dps; echo "${COMPREPLY[@]}"; }
        complete_words dps comp
        complete_words dps job to
        complete_words dps job topup 1 --ti
        complete_words dps completion z
    """
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "--norc", "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["completion", "topup", "--time", "zsh"]
