"""Every error of a verb becomes one line and an exit status, never a traceback."""

from __future__ import annotations

import errno
import os

import pytest
import typer
from typer.testing import CliRunner

from deepgrid.cli.error_boundary import RootCommand, complaint, runs
from deepgrid.errors import (
    AccessDenied,
    ChainError,
    ConfigurationError,
    ContractError,
    InputError,
    NotFound,
    ServiceError,
    SlurmError,
)
from tests.cli.support import Invoke


def _outcome_of(error: BaseException) -> tuple[int, str]:
    app = typer.Typer(cls=RootCommand, pretty_exceptions_enable=False)

    @app.callback()
    def root() -> None: ...

    @app.command()
    @runs
    async def fail() -> None:
        raise error

    result = CliRunner().invoke(app, ["fail"])
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("Bad."), 2),
        (ConfigurationError("Bad."), 2),
        (ServiceError("Bad."), 2),
        (ChainError("Bad."), 2),
        (ContractError("Bad.", name="ERC20InsufficientBalance"), 2),
        (ContractError("Bad.", name="JobHotStatusOnly"), 1),
        (AccessDenied("Bad."), 1),
        (NotFound("Bad."), 1),
        (SlurmError("Bad."), 1),
        (ExceptionGroup("two", [InputError("Bad."), ValueError()]), 2),
    ],
)
def test_errors_of_the_grid(error: Exception, status: int) -> None:
    assert _outcome_of(error) == (status, "dps: Bad.\n")


def test_the_next_step_is_on_the_same_line_and_each_fault_of_a_file_on_its_own() -> None:
    assert _outcome_of(InputError("Bad.", next_step="Do better."))[1] == "dps: Bad. Do better.\n"
    assert _outcome_of(InputError("f:1:2: a\nf:3:4: b"))[1] == "dps: f:1:2: a\ndps: f:3:4: b\n"


def test_an_unexpected_error_shows_neither_traceback_nor_its_text() -> None:
    status, said = _outcome_of(RuntimeError("0xsecret"))
    assert (status, said.count("\n")) == (1, 1)
    assert "RuntimeError" in said and "--debug" in said
    assert "secret" not in said and "Traceback" not in said


def test_text_of_other_parties_in_an_error_does_not_control_the_terminal() -> None:
    assert "\x1b" not in _outcome_of(NotFound("\x1b[2J"))[1]


def test_an_interruption_exits_with_130() -> None:
    assert _outcome_of(KeyboardInterrupt()) == (130, "")


def test_a_full_disk_is_named_in_words() -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/home/a/quote\x1b[2J.json")
    assert list(complaint(error)) == ["dps: /home/a/quote [2J.json: No space left on device."]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("job", "get", "abc"), "dps: ID must be a whole number, not 'abc'. See `dps job get --help`."),
        (("job", "get", "0"), "dps: ID must be 1 or more, not '0'. See `dps job get --help`."),
        (
            ("job", "list", "-n", "1.5"),
            "dps: --limit / -n must be a whole number, not '1.5'. See `dps job list --help`.",
        ),
        (("job", "get", "\x1b[2J"), "dps: ID must be a whole number, not '\\x1b[2J'. See `dps job get --help`."),
        (("submitt", "x"), "dps: No such command 'submitt'. Did you mean 'submit'? See `dps --help`."),
    ],
)
def test_wrong_words_are_explained_in_the_words_of_the_command(
    invoke: Invoke, words: tuple[str, ...], said: str
) -> None:
    assert invoke(*words).stderr.splitlines() == [said]
