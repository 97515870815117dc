"""A verb that moves money reports it even when standard output fails: on standard error, with its own exit status.

The command is a process of its own, with a full device, a closed descriptor and a pipe without a reader.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import IO

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.offers import read_versions
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.cli.display.offer import hash_of
from deepgrid.cli.standard_streams import with_transaction
from deepgrid.errors import ChainError
from tests.cli.live import CREDIT, EXAMPLE, HARDWARE, LABELS, PRICES, Dps, Live, Outcome, Party, finished

REPOSITORY = Path(__file__).parents[2]
FULL, CLOSED, UNREAD = "No space left on device", "Bad file descriptor", "Broken pipe"
WAYS = (FULL, CLOSED, UNREAD)
SOME_WAYS = (FULL, CLOSED, pytest.param(UNREAD, marks=pytest.mark.deep))
SUBMIT = ("submit", str(EXAMPLE), "--credits", "100", "--affinities", "gpu:in:nvidia")
SUBMITTED = re.compile(r"^job (\d+) submitted$", re.MULTILINE)
TRANSACTION = re.compile(r"^transaction 0x[0-9a-f]{64}$", re.MULTILINE)
BY_CUSTOMER = {
    "cancel": (("job", "cancel", "JOB"), "job"),
    "top-up": (("job", "topup", "JOB", "50"), "job JOB may run for"),
    "transfer": (("credit", "transfer", "PROVIDER", "1"), "1 credits given to PROVIDER"),
    "allowance": (("allowance", "set", "5"), "The grid may lock 5 credits"),
    "gas": (("gas", "transfer", "PROVIDER", "0.001"), "0.001 given to PROVIDER"),
}
BY_OPERATOR = {
    "panic": (("job", "panic", "JOB"), "job JOB is panicked"),
    "mint": (("credit", "mint", "PROVIDER", "1"), "1 credits created for PROVIDER"),
    "approve": (("provider", "approve", "PROVIDER", "--proposal", "PROPOSAL"), "PROVIDER is approved."),
    "ban": (("provider", "ban", "PROVIDER"), "PROVIDER is banned."),
    "remove": (("provider", "remove", "PROVIDER"), "PROVIDER is removed."),
    "constants": (("operator", "constants", "top-up-slice", "30"), "top-up-slice is 30 minutes from now on."),
    "open": (("operator", "open"), "The grid accepts new jobs."),
}
LONG_DEEDS = ("top-up", "approve", "constants")
DEEDS_TO_TRY = [
    pytest.param(deed, marks=pytest.mark.long if deed in LONG_DEEDS else pytest.mark.deep)
    for deed in (*BY_CUSTOMER, *BY_OPERATOR)
]
# Calls that send transactions or make keys. A function that has one of them prints its result by `print_result`.
DEEDS = {
    "as_sender", "submit", "cancel", "top_up", "transfer", "set_allowance", "deploy_to_book", "register", "create_key",
    "store_key",
}  # fmt: skip


def broken(stack: ExitStack, way: str) -> int | IO[bytes]:
    """Return a standard output that fails in this way."""
    if way == FULL:
        return stack.enter_context(open("/dev/full", "wb"))
    if way == UNREAD:
        reader, writer = os.pipe()
        os.close(reader)
        stack.callback(os.close, writer)
        return writer
    return subprocess.DEVNULL  # the shell closes it


async def run(dps: Dps, *words: str, out: str = "", err: str = "") -> Outcome:
    """Run the command with a standard output and a standard error that fail in these ways."""
    close = f"{'>&-' * (out == CLOSED)} {'2>&-' * (err == CLOSED)}"
    environment = {name: value for name, value in dps.environment.items() if name != "PYTHONUNBUFFERED"}
    with ExitStack() as stack:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", f'exec "$@" {close}', "sh", *dps.command(*words), stdin=subprocess.DEVNULL,
            stdout=broken(stack, out) if out else subprocess.PIPE,
            stderr=broken(stack, err) if err else subprocess.PIPE, env=environment, cwd=REPOSITORY,
        )  # fmt: skip
        return await finished(process)


def check(outcome: Outcome, fault: str) -> None:
    assert outcome.status == 3, outcome
    assert outcome.err.endswith(f"dps: standard output cannot be written: {fault}.\n"), outcome
    assert "Traceback" not in outcome.err and "unexpected" not in outcome.err and "Exception" not in outcome.err


@pytest.mark.parametrize("way", WAYS)
async def test_a_submission_tells_the_id_of_the_paid_job(dps: Dps, chain: Chain, way: str) -> None:
    outcome = await run(dps, *SUBMIT, out=way)
    check(outcome, way)
    found = SUBMITTED.search(outcome.err)
    assert found is not None, outcome
    assert (await chain.job(int(found[1]))).customer == Wallet.load(dps.key).address


async def test_json_of_a_submission_is_not_lost_either(dps: Dps, chain: Chain) -> None:
    outcome = await run(dps, *SUBMIT, "--json", out=FULL)
    check(outcome, FULL)
    number = json.loads(outcome.err.partition("\ndps:")[0])["job"]
    assert (await chain.job(number)).customer == Wallet.load(dps.key).address


@pytest.mark.parametrize("way", [FULL, CLOSED])
async def test_a_submission_that_cannot_be_watched_says_that_the_job_continues(dps: Dps, way: str) -> None:
    outcome = await run(dps, *SUBMIT, "--watch", out=way)
    check(outcome, way)
    found = SUBMITTED.search(outcome.err)
    assert found is not None, outcome
    assert f"dps: job {found[1]} continues. See it with `dps job logs {found[1]} --follow`" in outcome.err


def first_line(descriptor: int) -> str:
    """Read one line and close the descriptor."""
    with open(descriptor) as lines:
        return lines.readline()


async def test_a_reader_that_leaves_ends_the_watching_and_not_the_job(
    dps: Dps, chain: Chain, operator: Party, provider: Party
) -> None:
    reader, writer = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *dps.command("submit", EXAMPLE, "--credits", "100", "--watch"), stdin=subprocess.DEVNULL,
        stdout=writer, stderr=subprocess.PIPE, env=dps.environment, cwd=REPOSITORY,
    )  # fmt: skip
    os.close(writer)
    found = SUBMITTED.match(await asyncio.to_thread(first_line, reader))
    assert found is not None
    await operator.writer.meta_schedule(int(found[1]), provider.address)  # an event to print
    outcome = await finished(process)
    check(outcome, UNREAD)
    assert f"dps: job {found[1]} continues." in outcome.err
    assert (await chain.job(int(found[1]))).status.hot


@pytest.mark.parametrize("way", SOME_WAYS)
async def test_with_both_streams_broken_the_status_says_that_it_is_done(dps: Dps, chain: Chain, way: str) -> None:
    before = await chain.job_count()
    assert (await run(dps, *SUBMIT, out=way, err=way)).status == 3
    assert await chain.job_count() == before + 1


@pytest.mark.parametrize("err", SOME_WAYS)
async def test_a_broken_standard_error_stops_nothing(dps: Dps, err: str) -> None:
    outcome = await run(dps, *SUBMIT, "--delegate-spending", err=err)  # it says something there
    assert (outcome.status, bool(SUBMITTED.fullmatch(outcome.out.strip()))) == (0, True)


@pytest.mark.parametrize("deed", DEEDS_TO_TRY)
async def test_every_deed_tells_its_transaction(
    live: Live, dps: Dps, chain: Chain, running_id: int, provider: Party, deed: str
) -> None:
    words, expected = (BY_CUSTOMER | BY_OPERATOR)[deed]
    key = dps.key if deed in BY_CUSTOMER else live.grid.operator_key
    proposal = await changed(provider, chain) if deed == "approve" else ""

    def filled(text: str) -> str:
        values = {"JOB": str(running_id), "PROVIDER": provider.address, "PROPOSAL": proposal}
        return reduce(lambda so_far, name: so_far.replace(name, values[name]), values, text)

    signer = Wallet.load(key).address
    sent = (await chain.transaction_counts(signer))[0]
    outcome = await run(dps, *map(filled, words), "--key", str(key), out=FULL)
    check(outcome, FULL)
    assert TRANSACTION.search(outcome.err), outcome
    assert filled(expected) in outcome.err
    assert (await chain.transaction_counts(signer))[0] > sent


async def changed(provider: Party, chain: Chain) -> str:
    """Let the provider propose another price. Returns the hash of the proposal."""
    await provider.writer.register(HARDWARE, replace(PRICES, cpu_wei_per_minute=CREDIT), LABELS)
    return f"0x{hash_of(await read_versions(chain, provider.address)).hex()}"


@pytest.mark.long
async def test_a_proposal_that_cannot_be_shown_is_not_approved(
    live: Live, dps: Dps, chain: Chain, provider: Party
) -> None:
    await changed(provider, chain)
    outcome = await run(dps, "provider", "approve", provider.address, "--key", str(live.grid.operator_key), out=FULL)
    assert (outcome.status, outcome.err) == (1, f"dps: standard output cannot be written: {FULL}.\n")
    assert (await chain.provider(provider.address)).waiting_for_approval


@pytest.mark.long
async def test_a_deployment_goes_on_and_tells_its_steps(live: Live, dps: Dps) -> None:
    book = dps.home / "new.json"
    urls = (
        "--rpc-url",
        live.grid.anvil.url,
        "--definitions-url",
        "http://127.0.0.1:1",
        "--logs-url",
        "http://127.0.0.1:1",
    )
    key, operator = str(live.grid.operator_key), Wallet.load(live.grid.operator_key).address
    outcome = await run(
        dps, "operator", "deploy", "--book", str(book), "--key", key, *urls, "--operator", operator, out=FULL
    )
    check(outcome, FULL)
    assert f"  MetaScheduler deployed at {AddressBook.load(book).meta_scheduler}\n" in outcome.err
    assert "transactions were sent. The address book of chain" in outcome.err


def test_a_transaction_is_told_even_if_nothing_can_be_read_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChainError), with_transaction("0x12"):
        raise ChainError("The node does not answer.")
    assert capsys.readouterr().out == "transaction 0x12\n"


async def test_a_new_key_tells_its_address(dps: Dps) -> None:
    file = dps.home / "new.key"
    started_alone = replace(dps, forker=None)
    outcome = await run(started_alone, "key", "create", "--key", str(file), out=FULL)
    check(outcome, FULL)
    assert Wallet.load(file).address in outcome.err


async def test_what_only_reads_says_that_it_failed(dps: Dps) -> None:
    for words in (("credit", "get"), ("job", "list", "--json"), ("schema",)):
        outcome = await run(dps, *words, out=FULL)
        assert (outcome.status, outcome.err) == (1, f"dps: standard output cannot be written: {FULL}.\n"), words
    outcome = await run(dps, "schema", out=UNREAD)
    assert (outcome.status, outcome.err) == (1, ""), "a reader such as `head` has read enough"


def functions_with_deeds() -> Iterator[tuple[str, ast.AsyncFunctionDef | ast.FunctionDef]]:
    for file in [*REPOSITORY.glob("deepgrid/cli/**/*.py"), *REPOSITORY.glob("deployments/cli/*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and DEEDS & called(node):
                yield f"{file.relative_to(REPOSITORY)}: {node.name}", node


def called(node: ast.AST) -> set[str]:
    """Return the names of the functions and methods that are called in a piece of code."""
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    methods = {one.attr for one in calls if isinstance(one, ast.Attribute)}
    return methods | {one.id for one in calls if isinstance(one, ast.Name)}


def test_no_deed_is_told_by_print() -> None:
    found = dict(functions_with_deeds())
    assert len(found) > 15
    assert [name for name, node in found.items() if "print" in called(node)] == []
