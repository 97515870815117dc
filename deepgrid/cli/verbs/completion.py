"""`dps completion`: completion of verbs and options by bash, zsh and fish, as typer does it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script, install  # type: ignore[attr-defined]

PROGRAM, VARIABLE = "dps", "_DPS_COMPLETE"  # the name that typer derives from the program's


class Shell(StrEnum):
    """The shells that are supported."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    write: Annotated[
        bool, typer.Option("--install", help="Install it for you, in the shell's own files, instead of printing it.")
    ] = False,
) -> None:
    """Print the completion of `dps` for a shell, or install it.

    For one session of bash: `eval "$(dps completion bash)"`.
    """
    if write:
        _, path = install(shell.value, PROGRAM, VARIABLE)
        print(f"Installed in {path}. It works in new shells.")
    else:
        print(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value))
