"""Code that starts, adopts and deletes the run of a claim finds it by the same key and parameters."""

from __future__ import annotations

import inspect
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from deepgrid.chain.book import AddressBook
from deepgrid.lifecycle.job import JobKey
from flows.run_job import run_job
from tasks.job_runs import carries_claim, claim_of, is_key_of, run_key, run_parameters
from tasks.old_runs import UNKNOWN, job_of

BOOK = AddressBook(
    chain_id=31337, rpc_url="http://127.0.0.1:1", meta_scheduler="0x" + "11" * 20, credit="0x" + "22" * 20,
    provider_manager="0x" + "33" * 20, definitions_url="http://127.0.0.1:1", logs_url="http://127.0.0.1:1",
)  # fmt: skip
CLAIM = JobKey(BOOK.chain_id, BOOK.meta_scheduler, job_id=7, claimed_at=1_700_000_000)
PROVIDER = "0x" + "4" * 40


def run_of(key: str | None, parameters: dict[str, Any]) -> FlowRun:
    return FlowRun(flow_id=uuid4(), idempotency_key=key, parameters=parameters)


def test_the_run_of_a_claim_leads_back_to_it() -> None:
    run = run_of(run_key(CLAIM, PROVIDER), run_parameters("alpha", CLAIM))
    assert claim_of(run, BOOK) == CLAIM
    assert is_key_of(run_key(CLAIM, PROVIDER), CLAIM)
    assert job_of(run, BOOK) == CLAIM.job_id


def test_the_parameters_are_those_of_the_flow() -> None:
    assert run_parameters("alpha", CLAIM).keys() == inspect.signature(run_job.fn).parameters.keys()


def test_the_key_of_a_run_does_not_change() -> None:
    """A release with another format would start a second run of each open claim."""
    assert run_key(CLAIM, PROVIDER) == f"deepgrid:31337:11111111:7:1700000000:{PROVIDER}"


@pytest.mark.parametrize(
    "claim",
    [
        JobKey(1, BOOK.meta_scheduler, CLAIM.job_id, CLAIM.claimed_at),
        JobKey(BOOK.chain_id, "0x" + "5" * 40, CLAIM.job_id, CLAIM.claimed_at),
        JobKey(BOOK.chain_id, BOOK.meta_scheduler, CLAIM.job_id, CLAIM.claimed_at * 10),
        JobKey(BOOK.chain_id, BOOK.meta_scheduler, CLAIM.job_id * 10, CLAIM.claimed_at),
    ],
)
def test_the_key_of_another_claim_is_not_taken_for_it(claim: JobKey) -> None:
    run = run_of(run_key(claim, PROVIDER), run_parameters("alpha", CLAIM))
    assert not is_key_of(run_key(claim, PROVIDER), CLAIM)
    assert job_of(run, BOOK) == UNKNOWN


@pytest.mark.parametrize("job_id", ["seven", None, [7]])
def test_what_a_person_entered_names_no_claim(job_id: object) -> None:
    run = run_of(None, {"cluster": "alpha", "job_id": job_id, "claimed_at": 1})
    assert carries_claim(run)
    assert claim_of(run, BOOK) is None
    assert job_of(run, BOOK) == UNKNOWN


def test_a_run_that_a_person_started_for_a_claim_is_of_its_job() -> None:
    assert job_of(run_of(None, run_parameters("alpha", CLAIM)), BOOK) == CLAIM.job_id


def test_a_run_of_another_flow_carries_no_claim() -> None:
    run = run_of(None, {"cluster": "alpha"})
    assert not carries_claim(run)
    assert claim_of(run, BOOK) is None
    assert job_of(run, BOOK) is None
