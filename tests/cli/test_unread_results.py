"""`dps` reports a payment even if it cannot read the result: the node fails, or the user presses Ctrl-C."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable

import pytest
from typer.testing import Result

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import Job
from tests.cli.live import EXAMPLE, Dps
from tests.cli.support import Invoke

SUBMIT = ("submit", str(EXAMPLE), "--credits", "100", "--affinities", "gpu:in:nvidia")
CHANGES = {"cancel": ("job", "cancel", "JOB"), "topup": ("job", "topup", "JOB", "50")}
TRANSACTION = re.compile(r"transaction 0x[0-9a-f]{64}\n")
Fault = Callable[[], Awaitable[None]]


async def no_answer() -> None:
    raise ChainError("The node does not answer.")


async def interrupted() -> None:
    signal.raise_signal(signal.SIGINT)
    await asyncio.sleep(180)


@pytest.fixture
def run(dps: Dps, running_id: int, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command, and end its first read of a job after the transaction in this way."""
    address, read = Wallet.load(dps.key).address, Chain.job
    monkeypatch.setenv("DPS_KEY_FILE", str(dps.key))
    monkeypatch.setenv("DEEPGRID_BOOK", str(dps.book))

    async def sent(chain: Chain) -> int:
        return (await chain.transaction_counts(address))[0]

    async def sent_before() -> int:
        async with await Chain.connect(AddressBook.load(dps.book)) as chain:
            return await sent(chain)

    def run(fault: Fault, *words: str) -> Result:
        before = asyncio.run(sent_before())

        async def job(self: Chain, job_id: int) -> Job:
            if await sent(self) > before:
                await fault()
            return await read(self, job_id)

        monkeypatch.setattr(Chain, "job", job)
        return invoke(*(str(running_id) if word == "JOB" else word for word in words))

    return run


def test_a_submission_names_the_job_that_cannot_be_read(run: Callable[..., Result]) -> None:
    outcome = run(no_answer, *SUBMIT)
    assert outcome.exit_code == 2
    assert re.fullmatch(
        r"dps: Job (\d+) was submitted, but cannot be read: The node does not answer\."
        r" Do not submit it again\. See it with `dps job get \1`\.\n",
        outcome.stderr,
    ), outcome.output


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_tells_its_transaction_if_the_job_cannot_be_read(run: Callable[..., Result], change: str) -> None:
    outcome = run(no_answer, *CHANGES[change])
    assert outcome.exit_code == 2
    assert TRANSACTION.fullmatch(outcome.stdout), outcome.output
    assert "cannot be read: The node does not answer. Do not send it again." in outcome.stderr


@pytest.mark.parametrize("change", CHANGES)
def test_json_of_a_change_is_whole_or_absent(run: Callable[..., Result], change: str) -> None:
    outcome = run(no_answer, *CHANGES[change], "--json")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert TRANSACTION.match(outcome.stderr), outcome.output
    assert "cannot be read: The node does not answer. Do not send it again." in outcome.stderr


def test_an_interruption_after_the_submission_names_the_job(run: Callable[..., Result]) -> None:
    outcome = run(interrupted, *SUBMIT)
    assert outcome.exit_code == 130
    assert re.fullmatch(r"dps: interrupted\. Job \d+ was submitted\.\n", outcome.stderr), outcome.output


@pytest.mark.parametrize("change", CHANGES)
def test_an_interruption_after_a_change_tells_its_transaction(run: Callable[..., Result], change: str) -> None:
    outcome = run(interrupted, *CHANGES[change])
    assert outcome.exit_code == 130
    assert TRANSACTION.fullmatch(outcome.stdout), outcome.output
    assert re.match(r"dps: interrupted\. Transaction 0x[0-9a-f]{64} changed job \d+\.\n", outcome.stderr)
