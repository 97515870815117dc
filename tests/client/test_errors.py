"""S7 of the interfaces: each end of a job, and each refusal of contracts and services, raises its own error."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import CONTRACTS, interface
from deepgrid.chain.transactions.error_sentences import SENTENCES
from deepgrid.client import (
    AccessDenied,
    AsyncGrid,
    AsyncJob,
    ChainError,
    ContractError,
    GridError,
    InputError,
    JobCancelled,
    JobError,
    JobFailed,
    JobPanicked,
    JobStatus,
    NotFound,
    OutOfCredits,
    ServiceError,
)
from deepgrid.client.session import CustomerSession
from deepgrid.services.client.answers import Answer, error_of
from tests.appending import push_log
from tests.cli.live import EXAMPLE, Live, Wire
from tests.client.stage import Customer, Stage
from tests.waiting import until

ENDS: dict[JobStatus, type[JobError] | None] = {
    JobStatus.FINISHED: None,
    JobStatus.FAILED: JobFailed,
    JobStatus.CANCELLED: JobCancelled,
    JobStatus.OUT_OF_CREDITS: OutOfCredits,
    JobStatus.PANICKED: JobPanicked,
}

# Errors of the contracts that a customer's calls can meet. Each names what to do next.
MET_BY_CUSTOMERS = {
    "SameStatusError", "InvalidTransition", "RunningScheduledStatusOnly", "TimeoutTooEarly", "CustomerOnly",
    "NotGivenUp", "CancelRequested", "GiveUpTooSoon", "NoEarlierJob",
    "CustomerMetaSchedulerProviderOnly", "NewJobRequestDisabled", "InsufficientFunds", "InvalidJobDefinition",
    "TooMuchLocked", "BlobTooLong", "TooManyLabels", "LabelTooLong", "InvalidJob", "ERC20InsufficientBalance",
    "ERC20InsufficientAllowance", "ERC20InvalidReceiver", "SafeERC20FailedOperation", "FailedCall",
    "AddressEmptyCode", "ERC2612ExpiredSignature", "ERC2612InvalidSigner", "InvalidAccountNonce",
    "ECDSAInvalidSignature", "ECDSAInvalidSignatureLength", "ECDSAInvalidSignatureS",
}  # fmt: skip
NOTHING_TO_DO = {"JobHotStatusOnly"}  # the job is over, as its customer wanted
MET_BY_OTHERS = {
    "RateAboveCeiling", "JobGivenUp", "PendingStatusOnly", "JobWaits", "SpendingLimitReached", "LocationTooLong",
    "MetaScheduledScheduledStatusOnly", "RunningColdStatusOnly", "JobProviderOnly", "ProviderNotJoined",
    "InsufficientHardware", "NoSpendingAuthority", "RemainingTimeAboveLimit", "NoJob", "OutOfBounds",
    "TooManyNodes", "ProposalChanged", "ProposalTooRecent", "InvalidNodesCount", "ArrayLengthMismatch",
    "InvalidTotalCpus", "InvalidTotalMem", "NoProvider", "WaitingApprovalOnly", "Banned", "AlreadyDone",
    "InvalidConstant", "CutNotDue", "ERC20InvalidSpender", "ERC20InvalidSender", "ERC20InvalidApprover",
    "InvalidShortString", "StringTooLong", "AccessControlUnauthorizedAccount", "AccessControlBadConfirmation",
    "OwnableInvalidOwner", "OwnableUnauthorizedAccount",
}  # fmt: skip


async def ended(grid: AsyncGrid, stage: Stage, status: JobStatus, wait_status: int = 0) -> AsyncJob:
    """Return a job that ended in this state, with output if it ran."""
    job = await grid.submit(EXAMPLE, credits=100)
    writer = stage.provider.writer
    match status:
        case JobStatus.CANCELLED:
            await job.cancel()
        case JobStatus.PANICKED:
            await stage.operator.writer.panic_job(job.id, "the node burns")
        case _:
            await stage.run(job)
            output = b"".join(b"line %d\n" % number for number in range(30)) + b"\x1b[2J\x1b[31mred\x1b[0m\rlast"
            await push_log(stage.provider.services, job.id, 0, output, final=True)
            await writer.settle(job.id, status, 1, "the reason", wait_status)
    return await job.wait(timeout="60s")


@pytest.mark.parametrize("status", [status for status in JobStatus if status.cold])
async def test_each_end_of_a_job_raises_its_error(grid: AsyncGrid, stage: Stage, status: JobStatus) -> None:
    job = await ended(grid, stage, status)
    kind = ENDS[status]
    if kind is None:
        assert await job.check() is job
        return
    with pytest.raises(JobError) as caught:
        await job.check()
    assert type(caught.value) is kind
    assert caught.value.job is job
    assert not caught.value.transient
    assert str(caught.value).startswith(f"Job {job.id} is {status.words}")


@pytest.mark.parametrize(("wait_status", "exit_code", "signal"), [(768, 3, None), (9, 137, 9), (0, None, None)])
async def test_a_failed_job_says_how_it_ended_and_shows_its_last_lines(
    grid: AsyncGrid, stage: Stage, wait_status: int, exit_code: int | None, signal: int | None
) -> None:
    job = await ended(grid, stage, JobStatus.FAILED, wait_status)
    with pytest.raises(JobFailed) as caught:
        await job.check()
    assert (caught.value.exit_code, caught.value.signal) == (exit_code, signal)
    assert caught.value.next_step == f"Read its output: `dps job logs {job.id}`."
    last = [*(f"line {number}" for number in range(12, 30)), "\x1b[31mred\x1b[0m", "last"]
    assert list(caught.value.last_lines) == last


async def test_last_lines_are_left_out_if_the_services_do_not_answer(
    live: Live, customer: Customer, stage: Stage, tmp_path: Path
) -> None:
    async with Wire(live.address_book().definitions_url) as wire:
        book = live.address_book().model_copy(update={"definitions_url": wire.url})
        async with AsyncGrid(customer.key, book.save(tmp_path / "wired.json")) as grid:
            job = await ended(grid, stage, JobStatus.FAILED, 768)
            await wire.cut()
            with pytest.raises(JobFailed) as caught:
                await job.check()
    assert (caught.value.exit_code, caught.value.last_lines) == (3, ())


def test_each_error_of_the_contracts_is_sorted_and_says_what_to_do() -> None:
    """A new error of a contract fails here until it has a sentence, a next step and a place."""
    known = {item["name"] for name in CONTRACTS for item in interface(name).errors.values()}
    assert known == MET_BY_CUSTOMERS | NOTHING_TO_DO | MET_BY_OTHERS
    assert known == set(SENTENCES)
    assert [name for name in sorted(MET_BY_CUSTOMERS) if not SENTENCES[name][1]] == []


async def test_refusals_of_the_contract_keep_name_and_arguments(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    with pytest.raises(ContractError) as refused:
        await job.top_up(10)
    assert (refused.value.name, bool(refused.value.next_step)) == ("RunningScheduledStatusOnly", True)
    with pytest.raises(ContractError) as refused:
        await grid.wallet.transfer(stage.provider.address, 901)
    assert refused.value.name == "ERC20InsufficientBalance"
    assert refused.value.args_by_name == {"message": "ERC20: transfer amount exceeds balance"}
    assert refused.value.next_step
    await job.cancel()
    with pytest.raises(ContractError) as refused:
        await job.cancel()
    assert (refused.value.name, refused.value.transient) == ("JobHotStatusOnly", False)


async def test_a_stranger_may_neither_cancel_nor_read(
    grid: AsyncGrid, stage: Stage, live: Live, customer: Customer
) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    live.grid.new_key(f"stranger-{job.id}")
    async with AsyncGrid(live.grid.keys / f"stranger-{job.id}", customer.book) as other:
        foreign = await other.job(job.id)
        with pytest.raises(ContractError) as refused:
            await foreign.cancel()
        assert refused.value.name in MET_BY_CUSTOMERS
        assert refused.value.next_step
        with pytest.raises(AccessDenied, match="only its customer reads") as denied:
            await anext(foreign.logs())
        assert (denied.value.transient, bool(denied.value.next_step)) == (False, True)
        with pytest.raises(InputError, match="cannot be locked") as poor:
            await other.submit(EXAMPLE, credits=100)
        assert poor.value.next_step
        with pytest.raises(NotFound, match="Job 999999 does not exist"):
            await other.job(999999)


@pytest.mark.parametrize(
    ("status", "kind", "transient"),
    [
        (400, ServiceError, False), (401, AccessDenied, False), (403, AccessDenied, False), (404, NotFound, False),
        (408, ServiceError, True), (409, InputError, False), (413, InputError, False), (418, ServiceError, False),
        (422, InputError, False), (425, ServiceError, True), (429, ServiceError, True), (500, ServiceError, True),
        (502, ServiceError, True), (503, ServiceError, True),
    ],
)  # fmt: skip
def test_each_refusal_of_the_services_has_its_type(status: int, kind: type[GridError], transient: bool) -> None:
    error = error_of(Answer(status, httpx.Headers(), b'{"error": "the reason"}'))
    assert type(error) is kind
    assert error.transient is transient
    assert "the reason" in error.message
    assert error.next_step


async def test_a_node_that_is_cut_before_the_request_leaves_nothing_and_says_so(
    live: Live, customer: Customer, chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client does not repeat the submission. Its caller may, because nothing was sent."""
    store = CustomerSession.store
    async with Wire(live.address_book().rpc_url) as wire:
        book = live.address_book().model_copy(update={"rpc_url": wire.url, "ws_url": None})

        async def store_and_cut(session: CustomerSession, *args: object) -> str:
            stored = await store(session, *args)  # type: ignore[arg-type]
            await wire.cut()
            return stored

        monkeypatch.setattr(CustomerSession, "store", store_and_cut)
        async with AsyncGrid(customer.key, book.save(tmp_path / "wired.json")) as grid:
            with pytest.raises(ChainError) as caught:
                await grid.submit(EXAMPLE, credits=100)
            assert caught.value.transient
            assert await chain.jobs_by_customer(grid.address) == []
            assert await chain.allowance(grid.address) == 0
            monkeypatch.setattr(CustomerSession, "store", store)
            await wire.mend()
            job = await grid.submit(EXAMPLE, credits=100)
        assert await chain.jobs_by_customer(job.customer) == [job.id]


async def test_a_node_that_is_cut_after_the_request_was_sent_gets_it_once(
    live: Live, customer: Customer, chain: Chain, tmp_path: Path
) -> None:
    """The answer to the transaction is lost. The sender follows it; the client sends no second one."""
    async with Wire(live.address_book().rpc_url) as wire:
        book = live.address_book().model_copy(update={"rpc_url": wire.url, "ws_url": None})
        async with AsyncGrid(customer.key, book.save(tmp_path / "wired.json")) as grid:
            await grid.wallet.set_allowance(500)
            wire.cut_after = b"eth_sendRawTransaction"
            submission = asyncio.create_task(grid.submit(EXAMPLE, credits=100))
            await until(lambda: wire.cut_after is None)
            await wire.mend()
            async with asyncio.timeout(60):
                job = await submission
            assert await chain.jobs_by_customer(grid.address) == [job.id]
            assert await chain.balance(grid.address) == 900 * 10**18
