"""A client that was written for the observed surface makes all its calls on a real chain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.client import Refused
from tests.contracts.scene import CREDIT, Scene
from tests.contracts.support import (
    ADMIN,
    CANCELLED,
    DEFINITION,
    FAILED,
    FINISHED,
    HARDWARE,
    LABELS,
    META_SCHEDULED,
    NAME,
    OUT_OF_CREDITS,
    PANICKED,
    PENDING,
    PRICES,
    RATE,
    RUNNING,
    UNCHANGED_S,
    join,
    request,
    running,
)


def _refused(scene: Scene, sender: str, call: Any) -> tuple[Any, ...]:
    with pytest.raises(Refused) as caught:
        scene.client.send(sender, call)
    return caught.value.error


def test_clients_find_every_part_from_the_metascheduler(scene: Scene) -> None:
    client = scene.client
    f = client.constants.functions
    assert [
        f.minimumAmount().call(), f.billDurationDeltaMinute().call(), f.cancellationFeeMinute().call(),
        f.claimJobTimeout().call(), f.deepsquareCut().call(), f.topUpSliceDurationMin().call(),
    ] == [100 * CREDIT, 15, 5, 10, 20, 30]  # fmt: skip
    assert f.owner().call() == scene.operator
    client.send(scene.operator, f.setClaimJobTimeout(11))
    assert f.claimJobTimeout().call() == 11
    role = client.scheduler.functions.METASCHEDULER_ROLE().call()
    assert role == client.w3.keccak(text="METASCHEDULER_ROLE") == client.jobs.functions.METASCHEDULER_ROLE().call()
    assert client.scheduler.functions.hasRole(ADMIN, scene.operator).call()
    assert client.scheduler.functions.enableRequestNewJob().call()
    assert client.credit.functions.decimals().call() == 18
    assert client.providers.functions.PROVIDER_REGISTRATION_TAX().call() == 0


def _request_by_permit(scene: Scene) -> bytes:
    """Request a job with credits that a signature allows, and check its fields."""
    client, customer = scene.client, scene.customer
    deadline = client.w3.eth.get_block("latest")["timestamp"] + 3600
    signature = client.permit(customer, 200 * CREDIT, deadline)
    client.send(  # any account may submit it
        scene.rival,
        client.credit.functions.permit(customer, client.meta_scheduler, 200 * CREDIT, deadline, *signature),
    )
    asked = client.send(customer, client.scheduler.functions.requestNewJob(DEFINITION, 200 * CREDIT, NAME, False))
    [created] = client.events_of(asked, client.jobs, "JobCreated")
    job_id = created["jobId"]
    assert client.events_of(asked, client.scheduler, "NewJobRequestEvent") == [{"jobId": job_id, "customer": customer}]
    job = client.jobs.functions.get(job_id).call()
    assert (job.jobId, job.status, job.customerAddr, int(job.providerAddr, 16)) == (job_id, PENDING, customer, 0)
    assert tuple(job.definition) == (1, 1000, 2, 3, "ab" * 23, 4, [("os", "linux")], [(("zone", "west"), b"==")])
    assert job.jobName == NAME
    assert tuple(job.cost) == (200 * CREDIT, 0, 0, False)
    assert client.jobs.functions.getByCustomer(customer).call() == [job_id]
    assert client.jobs.functions.jobIdCounter().call() == int.from_bytes(job_id, "big")
    return bytes(job_id)


def test_a_job_from_its_permit_to_its_settlement(scene: Scene) -> None:
    client, customer, provider = scene.client, scene.customer, scene.provider
    join(scene, provider)
    job_id = _request_by_permit(scene)
    assigned = client.send(scene.operator, client.scheduler.functions.metaSchedule(job_id, provider))
    step = {"jobId": job_id, "from": PENDING, "to": META_SCHEDULED}
    assert client.events_of(assigned, client.jobs, "JobTransitionEvent") == [step]
    assert client.queues.functions.hasNextClaimableJob(provider).call()
    assert client.queues.functions.getClaimableJobQueueSize(provider).call() == 1
    claimed = client.send(provider, client.scheduler.functions.claimNextJob())
    [event] = client.events_of(claimed, client.scheduler, "ClaimJobEvent")
    assert (event["jobId"], event["customer"], event["provider"]) == (job_id, customer, provider)
    assert event["maxDurationMinute"] == 13
    assert event["definition"]["batchLocationHash"] == "ab" * 23
    assert not client.queues.functions.hasNextClaimableJob(provider).call()

    client.send(provider, client.scheduler.functions.providerSetJobStatus(job_id, RUNNING, 0, "", 0))
    scene.anvil.pass_time(290)
    report = client.scheduler.functions.providerSetJobStatus(job_id, FAILED, 5, "exit 3", 768)
    ended = client.send(provider, report)
    step = {"jobId": job_id, "from": RUNNING, "to": FAILED}
    assert client.events_of(ended, client.jobs, "JobTransitionEvent") == [step]
    job = client.jobs.functions.get(job_id).call()
    assert (job.status, job.cost.finalCost, job.lastError, job.exitCode) == (FAILED, 5 * RATE, "exit 3", 768)
    assert job.time.end >= job.time.start + 290 > job.time.submit
    assert client.credit.functions.balanceOf(provider).call() == 5 * RATE * 80 // 100
    assert client.credit.functions.balanceOf(customer).call() == 10_000 * CREDIT - 5 * RATE
    assert client.providers.functions.getJobCount(provider).call() == 1
    client.send(scene.operator, client.scheduler.functions.withdrawAdmin(5 * RATE * 20 // 100))


def test_top_ups_by_hand_and_by_authority(scene: Scene) -> None:
    client, customer, provider, f = scene.client, scene.customer, scene.provider, scene.client.scheduler.functions
    join(scene, provider)
    job_id = running(scene, 40 * RATE)
    client.send(customer, client.credit.functions.approve(client.meta_scheduler, 1000 * RATE))
    client.send(customer, f.topUpJob(job_id, RATE))
    assert client.queues.functions.getTopUpJobQueueSize(provider).call() == 1
    assert client.queues.functions.hasTopUpJob(provider).call()
    hints = client.events_of(client.send(provider, f.claimNextTopUpJob()), client.scheduler, "ClaimNextTopUpJobEvent")
    assert hints == [{"jobId": job_id, "provider": provider, "maxDurationMinute": 1}]
    assert _refused(scene, provider, f.claimNextTopUpJob()) == ("NoJob",)

    assert _refused(scene, provider, f.topUpJobDelegate(job_id)) == ("NoSpendingAuthority",)
    assert _refused(scene, scene.rival, f.setDelegateSpendingAuthority(job_id, True)) == (
        "CustomerOnly", scene.rival, customer,
    )  # fmt: skip
    client.send(customer, f.setDelegateSpendingAuthority(job_id, True))
    assert _refused(scene, scene.rival, f.topUpJobDelegate(job_id)) == ("CustomerMetaSchedulerProviderOnly",)
    name, remaining, limit = _refused(scene, provider, f.topUpJobDelegate(job_id))
    assert (name, limit) == ("RemainingTimeAboveLimit", 10)
    assert 30 < remaining <= 41
    scene.anvil.pass_time(35 * 60)
    client.send(provider, f.topUpJobDelegate(job_id))
    assert client.jobs.functions.get(job_id).call().cost.maxCost == 71 * RATE
    client.send(provider, f.providerSetJobStatus(job_id, OUT_OF_CREDITS, 1, "", 0))
    assert _refused(scene, customer, f.topUpJob(job_id, 1)) == ("RunningScheduledStatusOnly", OUT_OF_CREDITS)


def test_cancelling_before_and_while_it_runs(scene: Scene) -> None:
    client, customer, provider, f = scene.client, scene.customer, scene.provider, scene.client.scheduler.functions
    join(scene, provider)
    pending = request(scene)
    assert client.jobs.functions.jobIdByCustomer(customer, 0).call() == pending
    assert _refused(scene, scene.rival, f.cancelJob(pending)) == ("CustomerOnly", scene.rival, customer)
    client.send(customer, f.cancelJob(pending))
    job = client.jobs.functions.get(pending).call()
    assert (job.status, job.hasCancelRequest) == (CANCELLED, True)
    assert job.time.start == job.time.end == job.time.cancelRequestTimestamp > 0
    assert client.credit.functions.balanceOf(customer).call() == 10_000 * CREDIT
    assert _refused(scene, customer, f.cancelJob(pending)) == ("JobHotStatusOnly", CANCELLED)

    job_id = running(scene, delegate=True)
    client.send(customer, f.cancelJob(job_id))
    job = client.jobs.functions.get(job_id).call()
    assert (job.status, job.hasCancelRequest) == (RUNNING, True)
    assert job.time.cancelRequestTimestamp > 0
    assert client.queues.functions.hasCancellingJob(provider).call()
    assert client.queues.functions.getCancellingJobQueueSize(provider).call() == 1
    assert tuple(client.queues.functions.providerCancellingJobsQueues(provider).call()) == (0, 1)
    heard = client.send(provider, f.claimNextCancellingJob())
    assert client.events_of(heard, client.scheduler, "ClaimNextCancellingJobEvent") == [
        {"jobId": job_id, "customer": customer, "provider": provider}
    ]
    client.send(provider, f.providerSetJobStatus(job_id, CANCELLED, 1, "", 0))
    assert client.jobs.functions.get(job_id).call().status == CANCELLED


def test_refused_timed_out_and_panicked_jobs(scene: Scene) -> None:
    client, provider, f = scene.client, scene.provider, scene.client.scheduler.functions
    join(scene, provider)
    job_id = request(scene)
    assert _refused(scene, scene.rival, f.metaSchedule(job_id, provider))[0] != "ProviderNotJoined"  # a role's error
    assert _refused(scene, scene.operator, f.metaSchedule(job_id, scene.rival)) == ("ProviderNotJoined",)
    client.send(scene.operator, f.metaSchedule(job_id, provider))
    assert _refused(scene, scene.operator, f.metaSchedule(job_id, provider)) == ("SameStatusError",)
    back = client.send(provider, f.refuseJob(job_id))
    refusal = [{"jobId": job_id, "provider": provider, "customer": scene.customer}]
    assert client.events_of(back, client.scheduler, "JobRefusedEvent") == refusal
    client.send(scene.operator, f.metaSchedule(job_id, provider))
    scene.anvil.pass_time(11 * 60)
    back = client.send(scene.operator, f.timeoutJob(job_id))
    assert client.events_of(back, client.scheduler, "JobRefusedEvent") == refusal
    client.send(scene.operator, f.panicJob(job_id, "the grid is closed"))
    job = client.jobs.functions.get(job_id).call()
    assert (job.status, job.lastError) == (PANICKED, "the grid is closed")
    assert job.time.panicTimestamp == job.time.end > 0

    late = running(scene)
    reported = client.send(provider, f.providerSetJobStatus(late, FINISHED, 100, "", 0))
    assert client.events_of(reported, client.scheduler, "BilledTooMuchEvent") == [
        {"jobId": late, "provider": provider, "billingAmount": 100}
    ]
    assert _refused(scene, provider, f.providerSetJobStatus(late, FAILED, 1, "", 0)) == (
        "JobHotStatusOnly", FINISHED,
    )  # fmt: skip


def test_requirements_of_a_request(scene: Scene) -> None:
    client, customer, f = scene.client, scene.customer, scene.client.scheduler.functions
    poor = f.requestNewJob(DEFINITION, 100 * CREDIT - 1, NAME, False)
    assert _refused(scene, customer, poor) == ("InsufficientFunds", 100 * CREDIT - 1, 100 * CREDIT)
    of_a_stranger = f.requestNewJob(DEFINITION, 100 * CREDIT, NAME, False)
    assert _refused(scene, scene.rival, of_a_stranger) == ("ERC20: insufficient allowance",)
    client.send(scene.rival, client.credit.functions.approve(client.meta_scheduler, 100 * CREDIT))
    assert _refused(scene, scene.rival, of_a_stranger) == ("ERC20: transfer amount exceeds balance",)
    without_tasks = (*DEFINITION[:3], 0, *DEFINITION[4:])
    invalid = f.requestNewJob(without_tasks, 100 * CREDIT, NAME, False)
    assert _refused(scene, customer, invalid) == ("InvalidJobDefinition",)
    client.send(scene.operator, f.setEnableRequestNewJob(False))
    closed = f.requestNewJob(DEFINITION, 100 * CREDIT, NAME, False)
    assert _refused(scene, customer, closed) == ("NewJobRequestDisabled",)
    client.send(scene.operator, f.setEnableRequestNewJob(True))
    client.send(customer, client.credit.functions.approve(client.meta_scheduler, 100 * CREDIT))
    of_no_kind = f.requestNewJob((*DEFINITION[:5], 5, *DEFINITION[6:]), 100 * CREDIT, NAME, False)
    assert _refused(scene, customer, of_no_kind) in [("0x",), ("None",)]  # reverts without data
    with pytest.raises(Refused) as caught:
        client.ask(client.jobs.functions.get((99).to_bytes(32, "big")))
    assert caught.value.error == ("InvalidJob",)


def test_a_provider_joins_changes_is_listed_and_leaves(scene: Scene) -> None:
    client, f = scene.client, scene.client.providers.functions
    proposed = client.send(scene.provider, f.register(HARDWARE, PRICES, LABELS))
    assert client.events_of(proposed, client.providers, "ProviderWaitingForApproval") == [{"addr": scene.provider}]
    assert f.isWaitingForApproval(scene.provider).call()
    waiting = f.getWaitingForApprovalProvider(scene.provider).call()
    assert tuple(waiting.providerHardware) == HARDWARE
    assert not f.isValidForScheduling(scene.provider).call()
    scene.anvil.pass_time(UNCHANGED_S)
    client.send(scene.operator, f.approve(scene.provider))
    assert tuple(f.getProvider(scene.provider).call().providerPrices) == PRICES
    assert [tuple(label) for label in f.getLabels(scene.provider).call()] == LABELS
    assert tuple(f.getProviderHardware(scene.provider).call()) == HARDWARE
    assert tuple(f.providers(scene.provider).call()) == (scene.provider, HARDWARE, PRICES, False)
    assert int(f.waitingApprovalProviders(scene.provider).call()[0], 16) == 0
    assert f.jobCountByProvider(scene.provider).call() == 0
    assert tuple(f.getProviderPrices(scene.provider).call()) == PRICES
    join(scene, scene.rival)

    listed, cursor = [], 0
    while True:  # page by page
        data, length, cursor = f.fetchPage(cursor, 1).call()
        assert length == len(data) == 1
        listed.append(client.w3.to_checksum_address(data[0][-20:]))
        if cursor == 0:
            break
    assert listed == [scene.provider, scene.rival]
    assert f.elementCount().call() == 2

    first, last = f.head().call(), f.tail().call()
    node = f.get(first).call()
    assert list(node)[:3] == [first, last, 0]
    assert client.w3.to_checksum_address(node[3][-20:]) == scene.provider
    assert list(f.objects(last).call())[:3] == [last, 0, first]


def test_a_provider_is_banned_and_removed(scene: Scene) -> None:
    client, f = scene.client, scene.client.providers.functions
    join(scene, scene.rival)
    client.send(scene.operator, f.ban(scene.rival))
    assert f.isBanned(scene.rival).call()
    assert _refused(scene, scene.operator, f.ban(scene.rival)) == ("AlreadyDone",)
    assert _refused(scene, scene.rival, f.register(HARDWARE, PRICES, LABELS)) == ("Banned",)
    client.send(scene.operator, f.unban(scene.rival))
    gone = client.send(scene.operator, f.remove(scene.rival))
    assert client.events_of(gone, client.providers, "ProviderRemoved") == [{"addr": scene.rival}]
    assert _refused(scene, scene.operator, f.remove(scene.rival)) == ("NoProvider",)
    assert _refused(scene, scene.operator, f.approve(scene.rival)) == ("WaitingApprovalOnly",)
