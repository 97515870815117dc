"""The error boundary of the command line: every error becomes one line and an exit status.

0: done. 1: refused or failed. 2: the input, the configuration or a part of the grid cannot be used.
3: done, but standard output cannot be written. 130: interrupted.
Tracebacks are shown only with `dps --debug`, on standard error.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, ParamSpec

import typer
from typer.core import TyperGroup

from deepgrid.cli.standard_streams import OutputLost, end_output
from deepgrid.errors import (
    AccessDenied,
    ChainError,
    ConfigurationError,
    ContractError,
    GridError,
    InputError,
    ServiceError,
)
from deepgrid.plain_text import plain

P = ParamSpec("P")

FAILED = 1
UNUSABLE = 2
INTERRUPTED = 130

# Errors of contracts about amounts, which are input. All other contract errors are about state.
MONEY_REFUSALS = frozenset({"InsufficientFunds", "ERC20InsufficientBalance", "ERC20InsufficientAllowance"})

logger = logging.getLogger(__name__)


class RootCommand(TyperGroup):
    """The root command. It ends the process."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        options["standalone_mode"] = False
        try:
            status = super().main(*args, **options)
        except (KeyboardInterrupt, typer.Abort):
            status = INTERRUPTED
        except Exception as error:
            status = 0 if isinstance(_cause(error), OutputLost) else complain(error)  # `end_output` says it
        sys.exit(end_output(status if isinstance(status, int) else 0))


def runs(verb: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Wrap an async verb, so that typer can call it."""

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(verb(*args, **kwargs))

    return run


@contextmanager
def interruptions_explained() -> Iterator[None]:
    """Print what an interruption leaves open. The SDK notes it on the error."""
    try:
        yield
    except asyncio.CancelledError as stop:
        for note in getattr(stop, "__notes__", ()):
            print(f"dps: interrupted. {note}", file=sys.stderr)
        raise


def complain(error: BaseException) -> int:
    """Print what is wrong. Returns the exit status."""
    logger.debug("the details:", exc_info=error)
    for line in complaint(error):
        print(line, file=sys.stderr)
    return exit_status(error)


def exit_status(error: BaseException) -> int:
    error = _cause(error)
    if isinstance(error, typer.TyperException):
        return error.exit_code
    if isinstance(error, AccessDenied):
        return FAILED
    if isinstance(error, ContractError):
        return UNUSABLE if error.name in MONEY_REFUSALS else FAILED
    return UNUSABLE if isinstance(error, InputError | ConfigurationError | ServiceError | ChainError) else FAILED


def complaint(error: BaseException) -> Iterator[str]:
    """Yield the lines to print for `error`: one, or one per fault of a file."""
    error = _cause(error)
    if isinstance(error, GridError):
        for line in str(error).splitlines():
            yield f"dps: {plain(line)}"
    elif isinstance(error, typer.TyperException):
        yield from _usage(error)
    elif isinstance(error, OSError) and error.strerror:  # such as a full disk
        place = f"{error.filename}: " if error.filename is not None else ""
        yield f"dps: {plain(f'{place}{error.strerror}')}."
    else:
        yield f"dps: unexpected {type(error).__name__}. Run `dps --debug ...` to see where it came from."


def _usage(error: typer.TyperException) -> Iterator[str]:
    message = error.format_message()
    if "\n" in message:  # the help, because there were no arguments
        yield message
    elif message:
        context = getattr(error, "ctx", None)
        told = _wrong_value(error) or message.rstrip(".")
        end = "" if told.endswith("?") else "."
        yield f"dps: {plain(told)}{end} See `{context.command_path if context else 'dps'} --help`."


def _wrong_value(error: typer.TyperException) -> str:
    """Return what is wrong with the text given for a number, in place of the words of the library that reads it."""
    found, parameter = getattr(error.__cause__, "errors", None), getattr(error, "param", None)
    if found is None or parameter is None:
        return ""
    fault = found(include_url=False)[0]
    limits = fault.get("ctx", {})
    wanted = {
        "int_parsing": "a whole number",
        "int_from_float": "a whole number",
        "int_parsing_size": "a smaller number",
        "float_parsing": "a number",
        "greater_than_equal": f"{limits.get('ge')} or more",
        "less_than_equal": f"{limits.get('le')} or less",
    }.get(fault["type"])
    name = parameter.get_error_hint().replace("'", "")
    return f"{name} must be {wanted}, not {str(fault['input'])!r}" if wanted else ""


def _cause(error: BaseException) -> BaseException:
    """Return the first error of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
