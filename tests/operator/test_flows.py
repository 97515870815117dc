"""The operator's flows on a real Prefect server: their final states report what they did."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from prefect.artifacts import Artifact
from prefect.client.schemas.objects import State

from deepgrid.lifecycle.job import Label
from flows.approve_labels import approve_labels
from flows.auto_top_up import auto_top_up
from flows.expire_claims import expire_claims
from orchestration.sessions import serving_operator
from tests.chain.grid import CREDIT, HARDWARE, LABELS, PRICES, RATE
from tests.operator.office import MINUTE_S, Office
from tests.temporary_prefect import temporary_prefect

pytestmark = pytest.mark.long

NAME = "tested"
MEASURED = (*LABELS, Label("compute.gflops", "1.00"))


@pytest.fixture(scope="module", autouse=True)
def _prefect() -> Iterator[None]:
    with temporary_prefect():
        yield


@pytest.fixture(autouse=True)
async def _served(office: Office) -> AsyncIterator[None]:
    async with serving_operator(NAME, office.session):
        yield


async def published(key: str) -> list[dict[str, object]]:
    """Return the rows of the newest table artifact with this key."""
    found = await Artifact.aget(key)
    assert found is not None
    return list(json.loads(str(found.data)))


def said(state: State[Any]) -> str:
    assert state.is_completed(), state
    return state.message or ""


async def test_expire_claims_says_what_it_took_back(office: Office) -> None:
    await office.catch_up()
    assert said(await expire_claims(NAME, return_state=True)) == "No claim is overdue."
    jobs = [await office.people.assigned() for _ in range(2)]
    office.pass_time(10 * MINUTE_S)
    await office.catch_up()
    name = office.people.provider.address
    taken = said(await expire_claims(NAME, return_state=True))
    assert taken == f"Took back 2 jobs ({jobs[0]}, {jobs[1]})."
    table = await published(f"expire-claims-{NAME}")
    assert [(row["job"], row["cluster"], row["customer"]) for row in table] == [
        (job_id, name, office.people.customer.address) for job_id in jobs
    ]
    assert "did not claim it within" in str(table[0]["reason"])


async def test_expire_claims_passes_its_parameters_on(office: Office) -> None:
    job_id = await office.people.running()
    await office.people.operator.ban_provider(office.people.provider.address)
    await office.catch_up()
    assert said(await expire_claims(NAME, return_state=True)) == "No claim is overdue."
    taken = said(await expire_claims(NAME, end_running_of_banned=True, return_state=True))
    assert taken == f"Ended 1 job ({job_id})."


async def test_auto_top_up_says_who_got_time_and_who_cannot_pay(office: Office) -> None:
    await office.catch_up()
    assert said(await auto_top_up(NAME, return_state=True)) == "No job needs more time."
    first, second = [await office.people.running() for _ in range(2)]
    for job_id in (first, second):
        await office.people.customer.set_delegate_spending(job_id, True)
    await office.people.customer.approve(250 * CREDIT)
    office.pass_time((200 * CREDIT // RATE - 9) * MINUTE_S)
    await office.catch_up()
    assert said(await auto_top_up(NAME, ahead_minutes=8, return_state=True)) == "No job needs more time."
    message = said(await auto_top_up(NAME, return_state=True))
    assert message == f"Bought time for 1 job ({first}) and bought no time for 1 job ({second})."
    bought, unpaid = await published(f"auto-top-up-{NAME}")  # at most what the job locked
    assert (bought["credits"], bought["reason"]) == ("200", f"{200 * CREDIT // RATE} more minutes")
    assert (unpaid["credits"], unpaid["job"]) == ("", second)


async def test_approve_labels_says_what_waits_for_a_person(office: Office) -> None:
    provider = office.people.provider
    assert said(await approve_labels(NAME, return_state=True)) == "No proposal waits."
    await provider.register(HARDWARE, replace(PRICES, gpu_wei_per_minute=0), MEASURED)
    waits = said(await approve_labels(NAME, return_state=True))
    assert waits == f"{provider.address} waits for the operator: its prices would change."
    await provider.register(HARDWARE, PRICES, MEASURED)
    assert said(await approve_labels(NAME, return_state=True)) == "Approved measurements of 1 provider."
    (row,) = await published(f"approve-labels-{NAME}")
    assert row["cluster"] == provider.address


async def test_approve_labels_does_nothing_unless_switched_on(office: Office) -> None:
    provider = office.people.provider
    await provider.register(HARDWARE, PRICES, MEASURED)
    office.session.settings = replace(office.session.settings, approve_label_changes=False)
    waits = said(await approve_labels(NAME, return_state=True))
    assert waits == f"{provider.address} waits for the operator: approving by itself is off."
    assert (await office.people.chain.provider(provider.address)).labels == LABELS
