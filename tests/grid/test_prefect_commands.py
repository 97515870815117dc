"""The `prefect` commands of the page on deployments, typed in its order: each prints what the page shows."""

from __future__ import annotations

import io
import re
import shlex
import ssl
import sys
import time
from contextlib import redirect_stdout
from functools import cache

import pytest
from prefect.cli import app as prefect_command

from tests.docs.sessions import LEFT_OUT, sessions, typed

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PAGE = "docs/how-to/deployments.md"
READS, READS_AGAIN_S = re.compile(r"prefect [a-z-]+ (?:schedule )?(?:ls|inspect|logs)\b"), 60
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What differs from run to run: ids, versions, random names, ages, times.
DIFFERS = re.compile(
    rf"{ID.pattern}|(?<='version': ')[^']+|(?<=Created flow run ')[a-z-]+|\b(?:a few|a|\d+) \w+ ago|\bnow\b|\d[\d.:]*"
)


def shape(line: str) -> str:
    """Return a line without what differs from run to run. Tables may have other widths."""
    return re.sub(r"[\s─━]+", " ", DIFFERS.sub("#", line)).strip()


def printed(words: list[str]) -> list[str]:
    """Run the command in this process, in a terminal with 100 columns, and return its lines."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as terminal, redirect_stdout(output):
        terminal.setenv("COLUMNS", "100")
        while re.match(r"[A-Z]+=", words[0]):
            terminal.setenv(*words.pop(0).split("=", 1))
        terminal.setattr(sys, "argv", words)
        # Each command opens clients, and without a cache each of them reads all certificates of this machine.
        terminal.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        with pytest.raises(SystemExit) as end:
            prefect_command()
            raise SystemExit(0)
    assert not end.value.code, output.getvalue()
    return output.getvalue().splitlines()


def found(line: str, lines: list[str]) -> str | None:
    """Return the printed line that this line of the page shows. The page may leave out the rest of a line."""
    wanted = shape(line.removesuffix(LEFT_OUT))
    for one in lines:
        if shape(one) == wanted or (line.endswith(LEFT_OUT) and shape(one).startswith(wanted)):
            return one
    return None


def seen(command: str, shown: list[str]) -> dict[str, str]:
    """Type the command, and return the ids of the page with those that it printed. All shown lines must appear.

    A command that only reads is repeated for a while: logs and states reach Prefect some time after a run.
    """
    deadline = time.monotonic() + (READS_AGAIN_S if READS.match(command) else 0)
    while True:
        lines = printed(shlex.split(command))
        matches = [(line, found(line, lines)) for line in shown]
        missing = [line for line, match in matches if match is None]
        if not missing:
            break
        assert time.monotonic() < deadline, (command, missing, lines)
        time.sleep(0.5)
    whole = [(line, match) for line, match in matches if match and not line.endswith(LEFT_OUT)]
    return {ours: its for line, match in whole for ours, its in zip(ID.findall(line), ID.findall(match), strict=True)}


@pytest.mark.usefixtures("prefect_api")
def test_every_command_prints_what_the_page_shows() -> None:
    ids: dict[str, str] = {}  # ids of the page, and ids of this grid
    for command, shown in (pair for block in sessions(PAGE) for pair in typed(block)):
        for ours in ID.findall(command):
            command = command.replace(ours, ids[ours])
        ids |= seen(command, shown)
