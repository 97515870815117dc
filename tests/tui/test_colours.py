"""Terminals with few abilities: without colours, without UTF-8, old ones, and output that is not a terminal."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

from deepgrid.client import AsyncGrid
from tests.cli.live import EXAMPLE, Live
from tests.client.stage import Customer
from tests.tui.terminal import SEQUENCE, Terminal, dps

pytestmark = pytest.mark.long  # each starts the command several times

COLOUR = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|38|48)(?:;[0-9;]*)?m")
SIXTEEN = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:38|48);[25];")
UTF8 = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}


def environment(customer: Customer, home: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LC_ALL", "LANG", "COLORTERM")
    }
    return {**kept, "HOME": str(home), "DEEPGRID_BOOK": str(customer.book), "DPS_KEY_FILE": str(customer.key), **more}


def look(customer: Customer, home: Path, *args: str, **more: str) -> bytes:
    """Return the bytes of a short visit: the table, the log of a job, the keys, and the end."""
    with Terminal(dps(*args), environment(customer, home, **more), cwd=str(home)) as terminal:
        before = terminal.attributes()
        terminal.shows("allowance", "pending")
        terminal.type("v")
        terminal.shows("asks for")
        terminal.type("q?")
        terminal.shows("half a page down")
        terminal.type("qq")
        assert terminal.ended() == 0
        assert terminal.attributes() == before, "the terminal is not as it was"
        return terminal.bytes


@pytest.mark.parametrize(
    ("more", "coloured", "ascii_only"),
    [
        (UTF8, True, False),
        (UTF8 | {"NO_COLOR": "1"}, False, False),
        (UTF8 | {"TERM": "vt100"}, False, False),
        ({"LANG": "C", "TERM": "xterm"}, True, True),
        ({"LANG": "en_US.ISO-8859-1", "TERM": "xterm-16color"}, True, True),
    ],
    ids=["usual", "no-color", "vt100", "lang-c", "latin-1"],
)
async def test_every_terminal_is_readable_and_restored(
    customer: Customer, grid: AsyncGrid, tmp_path: Path, more: dict[str, str], coloured: bool, ascii_only: bool
) -> None:
    await grid.submit(EXAMPLE, credits=100, name="käse")
    written = await asyncio.to_thread(look, customer, tmp_path, "tui", **more)
    assert bool(COLOUR.search(written)) is coloured
    assert not SIXTEEN.search(written), "16 colours are enough"
    text = SEQUENCE.sub(b"", written)
    assert text.isascii() is ascii_only
    assert ("k?se" if ascii_only else "käse") in text.decode()


async def test_dps_alone_on_a_terminal_opens_the_app(customer: Customer, grid: AsyncGrid, tmp_path: Path) -> None:
    await grid.submit(EXAMPLE, credits=100)
    await asyncio.to_thread(look, customer, tmp_path, **UTF8)


def test_in_a_pipe_dps_prints_help_and_the_verb_says_that_it_needs_a_terminal(live: Live, tmp_path: Path) -> None:
    there = {**os.environ, "HOME": str(tmp_path)}
    alone = subprocess.run(dps(), env=there, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert "Usage: dps" in alone.stdout + alone.stderr
    verb = subprocess.run(dps("tui"), env=there, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (verb.returncode, verb.stdout) == (2, "")
    assert verb.stderr == "dps: `dps tui` needs a terminal. Use `dps job list` in scripts.\n"


async def test_an_error_restores_the_terminal_and_is_one_sentence(customer: Customer, tmp_path: Path) -> None:
    broken = (
        "from deepgrid.tui.screens.jobs import JobsScreen\n"
        "def fail(self): raise KeyError('a fault')\n"
        "JobsScreen.action_copy = fail\n"
        "from deepgrid.cli.main import main; main()\n"
    )
    program = tmp_path / "broken.py"
    program.write_text(broken)

    def visit() -> None:
        argv = [dps()[0], str(program), "tui"]
        with Terminal(argv, environment(customer, tmp_path, **UTF8), cwd=str(tmp_path)) as terminal:
            before = terminal.attributes()
            terminal.shows("You have no jobs yet")
            terminal.type("y")
            assert terminal.ended() == 1
            assert terminal.attributes() == before
            tail = SEQUENCE.sub(b"", terminal.bytes.partition(b"\x1b[?1049l")[2]).decode()
            assert tail.split() == [
                "dps:",
                "unexpected",
                "KeyError.",
                "Run",
                "`dps",
                "--debug",
                "...`",
                "to",
                "see",
                "where",
                "it",
                "came",
                "from.",
            ]

    await asyncio.to_thread(visit)


async def test_a_terminal_that_hangs_up_leaves_no_process(customer: Customer, tmp_path: Path) -> None:
    def visit() -> None:
        with Terminal(dps("tui"), environment(customer, tmp_path, **UTF8), cwd=str(tmp_path)) as terminal:
            terminal.shows("You have no jobs yet")
            terminal.hang_up()
            terminal.process.wait(60)

    await asyncio.to_thread(visit)


def test_without_a_key_the_app_offers_to_make_one(live: Live, tmp_path: Path) -> None:
    there = {**os.environ, "HOME": str(tmp_path), "DEEPGRID_BOOK": str(live.book), **UTF8}
    there.pop("DPS_KEY_FILE", None)
    with Terminal(dps("tui"), there, cwd=str(tmp_path)) as terminal:
        terminal.shows("There is no key file", "[c]reate a new key")
        terminal.type("q\r")
        assert terminal.ended() == 2
