"""On a terminal, `dps` asks before it moves money, and asks for a missing key. Elsewhere it asks nothing."""

from __future__ import annotations

import os
import signal
import stat
import termios
from dataclasses import replace

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from tests.cli.live import CREDIT, EXAMPLE, Dps
from tests.tui.terminal import Terminal

KEY = "11" * 32
ADDRESS = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"
OTHER = "0x5FbDB2315678afecb367f032d93F642f64180aa3"


def on_terminal(dps: Dps, *args: str, **variables: str) -> Terminal:
    environment = dps.environment | {"TERM": "xterm", "COLUMNS": "200"} | variables
    return Terminal(dps.command(*args), environment, cwd=str(dps.home), size=(200, 24))


def echoes(terminal: Terminal) -> bool:
    settings = terminal.attributes()
    assert isinstance(settings, list)
    return bool(settings[3] & termios.ECHO)


@pytest.mark.parametrize(
    ("args", "question"),
    [
        (("submit", str(EXAMPLE), "--credits", "100"), "Lock 100 credits of "),
        (
            ("submit", str(EXAMPLE), "--credits", "100", "--array", "1-100%2"),
            "Lock 200 credits at a time, at most 10000 in all, of ",
        ),
        (("credit", "transfer", OTHER, "5"), "This cannot be undone."),
        (("allowance", "set", "7"), "Let the grid lock 7 credits"),
        (("gas", "transfer", OTHER, "0.1"), "Transfer 0.1 of "),
    ],
)
async def test_no_is_the_default(dps: Dps, chain: Chain, args: tuple[str, ...], question: str) -> None:
    address = Wallet.load(dps.key).address
    with on_terminal(dps, *args) as terminal:
        terminal.shows(question, "[y/N]")
        terminal.type("\n")
        assert (terminal.ended(), "Cancelled." in terminal.text) == (1, True)
    assert (await chain.balance(address), await chain.allowance(address)) == (1000 * CREDIT, 0)
    assert (await chain.transaction_counts(address))[0] == 0


async def test_yes_and_force_go_on(dps: Dps, chain: Chain) -> None:
    with on_terminal(dps, "allowance", "set", "7") as terminal:
        terminal.shows("[y/N]")
        terminal.type("y\n")
        assert terminal.ended() == 0
    for option, credits in (("--force", 8), ("-f", 9), ("--yes", 10)):
        with on_terminal(dps, "allowance", "set", str(credits), option) as terminal:
            assert (terminal.ended(), "[y/N]" in terminal.text) == (0, False)
        assert await chain.allowance(Wallet.load(dps.key).address) == credits * CREDIT


async def test_an_interruption_ends_the_question(dps: Dps) -> None:
    with on_terminal(dps, "allowance", "set", "7") as terminal:
        terminal.shows("[y/N]")
        terminal.stop(signal.SIGINT)
        assert terminal.ended() == 130


async def test_a_missing_key_is_made(dps: Dps) -> None:
    path = dps.home / "new" / "key"
    with on_terminal(dps, "credit", "get", DPS_KEY_FILE=str(path)) as terminal:
        terminal.shows("There is no key file", "[c]reate a new key, [i]mport yours, or [q]uit?")
        terminal.type("c\n")
        assert terminal.ended() == 0
        assert Wallet.load(path).address in terminal.text
        assert terminal.text.endswith("0\r\n")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


async def test_a_missing_key_is_imported_without_an_echo(dps: Dps) -> None:
    path = dps.home / "new" / "key"
    started_alone = replace(dps, forker=None)  # it reads from its own terminal, /dev/tty
    with on_terminal(started_alone, "allowance", "get", DPS_KEY_FILE=str(path)) as terminal:
        terminal.shows("[i]mport")
        terminal.type("i\n")
        terminal.shows("64 hex digits")
        terminal.until(lambda: not echoes(terminal), "still echoes")
        terminal.type(f"{KEY}\n")
        assert terminal.ended() == 0
        assert (ADDRESS in terminal.text, KEY in terminal.text) == (True, False)
    assert Wallet.load(path).address == ADDRESS


async def test_who_declines_is_told_what_to_do(dps: Dps) -> None:
    with on_terminal(dps, "credit", "get", DPS_KEY_FILE=str(dps.home / "none")) as terminal:
        terminal.shows("[q]uit?")
        terminal.type("\n")
        assert (terminal.ended(), "Create one with `dps key create`" in terminal.text) == (2, True)
    assert not (dps.home / "none").exists()


async def test_the_list_of_jobs_is_redrawn(dps: Dps, job_id: int) -> None:
    with on_terminal(dps, "job", "list", "--watch", "--state", "pending,cancelled") as terminal:
        terminal.shows(f"{job_id}  pending")
        assert (await dps.run("job", "cancel", str(job_id))).status == 0
        terminal.shows(f"{job_id}  cancelled")
        terminal.stop(signal.SIGINT)
        assert terminal.ended() == 130
