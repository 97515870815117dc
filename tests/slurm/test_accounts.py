"""Customers with their own Unix accounts on a real cluster: the account of a job, and the files that it can access."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pwd import getpwnam

import pytest

from deepgrid.billing.entries import Span
from deepgrid.errors import ConfigurationError, SlurmError
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import CustomerAccounts, LoginSettings
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.accounting import read_runs
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.people import account, wallet_account
from tests.slurm.support import (
    SMALL,
    WAIT_FOR_LEAVE,
    Box,
    bash,
    by_accounting,
    ended,
    ends,
    leave,
    new_key,
    printed,
    until,
)

ALICE, BOB, CAROL = ("0x" + digit * 40 for digit in "abc")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")

Opener = Callable[[LoginSettings], Cluster]


def of(customer: str) -> SubmitRequest:
    return replace(SMALL, customer=customer)


@pytest.fixture(scope="module")
def people() -> Iterator[dict[str, str]]:
    """Two customers with accounts on this machine."""
    with ExitStack() as stack:
        yield {customer: stack.enter_context(account()) for customer in (ALICE, BOB)}


@pytest.fixture
def settings(box: Box, people: dict[str, str]) -> LoginSettings:
    """Settings for root, which submits for the accounts of a table. A customer outside the table is refused."""
    return replace(box.settings, job_account=None, accounts=CustomerAccounts(people))


@pytest.fixture
async def at() -> AsyncIterator[Opener]:
    """Open the cluster with other settings."""
    logins: list[Login] = []

    def opened(settings: LoginSettings) -> Cluster:
        logins.append(Login(settings))
        return Cluster(logins[-1], settings)

    yield opened
    for login in logins:
        await login.close()


@pytest.fixture
def cluster(settings: LoginSettings, at: Opener) -> Cluster:
    return at(settings)


async def output(cluster: Cluster, key: JobKey) -> list[str]:
    return (await cluster.read_output({key: 0}))[key].decode().splitlines()


@needs_root
async def test_each_customer_of_the_table_gets_its_own_account(
    cluster: Cluster, monitor: SlurmMonitor, people: dict[str, str]
) -> None:
    keys = {customer: new_key() for customer in people}
    for customer, key in keys.items():
        await cluster.submit(key, bash("id -un; touch file && stat -c %U file"), of(customer.upper().replace("X", "x")))
    for customer, key in keys.items():
        assert (await ended(monitor, key)).state == "COMPLETED"
        assert await output(cluster, key) == [people[customer]] * 2
        await cluster.acknowledge(key)
        assert (await ends(cluster, key))[key].state == "COMPLETED"


@needs_root
async def test_a_customer_outside_the_table_is_refused_or_gets_the_shared_account(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, settings: LoginSettings, key: JobKey, at: Opener
) -> None:
    with pytest.raises(SlurmError, match=f"no Unix account for the customer {CAROL}") as refusal:
        await cluster.submit(key, bash("true"), of(CAROL))
    assert not refusal.value.transient
    assert not box.folder(key).exists()
    others = Cluster(cluster._login, replace(settings, job_account=box.settings.job_account))
    await others.submit(key, bash("id -un"), of(CAROL))
    await ended(monitor, key)
    assert await output(cluster, key) == [box.settings.job_account]


@needs_root
async def test_accounts_named_by_the_wallet_run_are_limited_and_cancelled(
    box: Box, settings: LoginSettings, monitor: SlurmMonitor, key: JobKey, at: Opener
) -> None:
    with wallet_account() as customer:
        cluster = at(replace(settings, accounts=CustomerAccounts(pattern="{address}")))
        await cluster.submit(key, bash(f"id -un; {WAIT_FOR_LEAVE}"), of(customer))
        monitor.watch(key)
        await until(monitor, key, Phase.RUNNING)
        await printed(cluster, key)
        assert await cluster.set_time_limit(key, 17)
        assert (await cluster.queue(key)).claims[key].limit_minutes == 17
        await cluster.cancel(key)
        assert (await ended(monitor, key)).state == "CANCELLED"
        assert (await output(cluster, key))[0] == customer
        assert box.folder(key).joinpath("run").owner() == customer


@needs_root
async def test_an_account_that_the_login_node_lacks_is_a_refusal_with_its_reason(
    box: Box, settings: LoginSettings, monitor: SlurmMonitor, key: JobKey, at: Opener
) -> None:
    cluster = at(replace(settings, accounts=CustomerAccounts(pattern="ds-{digits:24}")))
    for _ in range(2):
        with pytest.raises(SlurmError, match=f"no account ds-{'c' * 24} on the login node") as refusal:
            await cluster.submit(key, bash("true"), of(CAROL))
        assert not refusal.value.transient
    await cluster.cancel(key)
    assert not await cluster.set_time_limit(key, 20)
    assert box.ids(key) == []
    monitor.watch(key)
    await until(monitor, key, Phase.ABSENT)


@needs_root
async def test_a_second_name_of_root_is_refused(settings: LoginSettings, key: JobKey, at: Opener) -> None:
    with wallet_account(0) as customer:
        cluster = at(replace(settings, accounts=CustomerAccounts(pattern="{address}")))
        with pytest.raises(SlurmError, match="is root's"):
            await cluster.submit(key, bash("true"), of(customer))


@needs_root
async def test_customers_cannot_reach_each_others_files_and_jobs(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    victim = new_key()
    await cluster.submit(victim, bash(f"echo secret | tee file; {WAIT_FOR_LEAVE}"), of(ALICE))
    monitor.watch(victim)
    job = await until(monitor, victim, Phase.RUNNING)
    await printed(cluster, victim)
    folder = box.folder(victim)
    tricks = [
        f"cat {folder}/output.log", f"cat {folder}/run/file", f"ls {folder}", f"ls {folder}/run",
        f"cat {folder}/account", f"echo forged >> {folder}/output.log", f"touch {folder}/run/leave",
        f"scancel {job.slurm_id}", f"scontrol update JobId={job.slurm_id} Comment=mine",
    ]  # fmt: skip
    body = "\n".join(f"( {trick} ) > /dev/null 2>&1 && echo 'worked: {trick}'" for trick in tricks)
    await cluster.submit(key, bash(f"{body}\necho done"), of(BOB))
    await ended(monitor, key)
    assert await output(cluster, key) == ["done"]
    leave(box, victim)
    assert (await ended(monitor, victim)).state == "COMPLETED"
    assert await output(cluster, victim) == ["secret"]


@needs_root
async def test_a_job_of_another_account_with_a_claims_name_is_ignored(
    box: Box, cluster: Cluster, login: Login, monitor: SlurmMonitor, people: dict[str, str], key: JobKey
) -> None:
    """This holds for queue, records, accounting, books, cancellation and time limit, with and without an id."""
    identity = f"--job-name={key.name}", f"--comment={key.comment}"
    forged = "sbatch", "--parsable", *identity, f"--uid={people[BOB]}", "--chdir=/", "--output=/dev/null"
    box.slurm(*forged, "--wrap=exit 3")
    running = int(box.slurm(*forged, "--wrap=sleep 600"))
    monitor.watch(key)
    await until(monitor, key, Phase.ABSENT)
    own = await cluster.submit(key, bash(WAIT_FOR_LEAVE), of(ALICE))
    assert await until(monitor, key, Phase.RUNNING) == replace(monitor.observe(key), slurm_id=own.slurm_id)
    (box.folder(key) / "id").unlink()
    assert (await cluster.submit(key, bash("true"), of(ALICE))).slurm_id == own.slurm_id, "the other job is not adopted"
    assert await cluster.set_time_limit(key, 30)
    assert box.slurm("squeue", "-h", "-j", str(running), "-o", "%l").strip() != "30:00"
    await cluster.cancel(key)
    end = await ended(monitor, key)
    assert (end.slurm_id, end.state) == (own.slurm_id, "CANCELLED")
    assert box.slurm("squeue", "-h", "-j", str(running), "-o", "%T").strip() == "RUNNING"
    await cluster.acknowledge(key)
    assert [end.slurm_id for end in (await ends(cluster, key)).values()] == [own.slurm_id]
    (box.folder(key) / "record").unlink()
    for _ in range(2):  # end both watches
        monitor.unwatch(key)
    assert (await ended(monitor, key)).slurm_id == own.slurm_id, "the controller knows both"
    assert (await by_accounting(cluster, key)).slurm_id == own.slurm_id, "accounting too"
    span = Span(int(time.time()) - 3600, int(time.time()) + 60)
    runs = await read_runs(cluster, span, key, [key])
    assert {run.slurm_id for run in runs.runs if run.job_id == key.job_id} == {own.slurm_id}
    box.slurm("scancel", str(running))


@needs_root
async def test_a_claim_keeps_its_account_whatever_the_settings_say_later(
    box: Box,
    cluster: Cluster,
    settings: LoginSettings,
    monitor: SlurmMonitor,
    people: dict[str, str],
    key: JobKey,
    at: Opener,
) -> None:
    await cluster.submit(key, bash(f"echo here; {WAIT_FOR_LEAVE}"), of(ALICE))
    number = getpwnam(people[ALICE]).pw_uid
    assert (box.folder(key) / "account").read_text() == f"{people[ALICE]} {number}\n"
    changed = at(replace(settings, accounts=CustomerAccounts({ALICE: people[BOB]})))
    assert (await changed.submit(key, bash("true"), of(ALICE))).adopted
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    assert (await changed.snapshot([key])).queued(key) is not None
    await printed(cluster, key)
    await changed.cancel(key)
    assert (await ended(monitor, key)).state == "CANCELLED"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{address}", "0x" + "ab" * 20),
        ("ds-{digits}", "ds-" + "ab" * 20),
        ("{digits:20}-ds", "ab" * 10 + "-ds"),
    ],
)
def test_a_pattern_names_each_customer_in_lower_case(pattern: str, expected: str) -> None:
    assert CustomerAccounts(pattern=pattern).of("0x" + "aB" * 20) == expected
    assert CustomerAccounts(pattern=pattern).of("not an address; rm -rf /") is None


def test_the_table_counts_before_the_pattern() -> None:
    accounts = CustomerAccounts({ALICE.upper().replace("X", "x"): "alice"}, "ds-{digits}")
    assert (accounts.of(ALICE), accounts.of(BOB)) == ("alice", "ds-" + "b" * 40)


@pytest.mark.parametrize(
    ("table", "pattern"),
    [
        ({}, "everybody"), ({}, "{digits:15}"), ({}, "{digits:41}"), ({}, "{address:20}"), ({}, "{digits}{digits}"),
        ({}, "-{digits}"), ({}, "ds {digits}"), ({}, "../{digits}"), ({}, "x" * 30 + "{address}"),
        ({"0x12": "a"}, ""), ({ALICE: "root"}, ""), ({ALICE: "0"}, ""), ({ALICE: "-u"}, ""), ({ALICE: "a:b"}, ""),
        ({ALICE: ""}, ""), ({ALICE: "a", "0x" + "A" * 40: "b"}, ""),
    ],
)  # fmt: skip
def test_invalid_tables_and_patterns_are_refused(table: dict[str, str], pattern: str) -> None:
    with pytest.raises(ConfigurationError):
        CustomerAccounts(table, pattern)
