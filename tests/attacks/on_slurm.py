"""A guarded cluster with two customers, each with an account and claims. Attackers act as these accounts."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from pwd import getpwnam

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import CustomerAccounts, LoginSettings
from deepgrid.slurm.submit.protocol import SubmitRequest
from deployments.onemachine.slurm import ClusterSpec
from tests.slurm.ordinary import hook_for
from tests.slurm.people import account, wallet_account
from tests.slurm.support import SMALL, WAIT_S, Box, bash, new_key, running_box

ALICE, BOB = ("0x" + digit * 40 for digit in "ab")
ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT")
COMMAND_WITHIN_S = 60.0
RUNNING = "until [ -e leave ]; do sleep 0.2; done"
# Fields that change by themselves.
VOLATILE = r" ?\b({})=\S*".format(
    "RunTime|LastSchedEval|EligibleTime|AccrueTime|EndTime|StartTime|Reason|Scheduler|SuspendTime|SchedNodeList"
)


@dataclass(frozen=True)
class Said:
    """The result of an attacker's command."""

    status: int
    text: str


@dataclass(frozen=True)
class Person:
    """An account that runs any command on the login node."""

    box: Box
    name: str

    @property
    def uid(self) -> int:
        return getpwnam(self.name).pw_uid

    def run(self, *argv: str, stdin: str = "", **variables: str) -> Said:
        """Run a command with only the account's own rights."""
        person = getpwnam(self.name)
        become = ["setpriv", f"--reuid={person.pw_uid}", f"--regid={person.pw_gid}", "--clear-groups"]
        env = {"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": "/", "USER": self.name, **variables}
        env |= self.box.site.environment(self.box.name)
        done = subprocess.run(
            [*become, *argv], env=env, input=stdin, capture_output=True, text=True, cwd="/", check=False,
            errors="replace", timeout=COMMAND_WITHIN_S,
        )  # fmt: skip
        return Said(done.returncode, done.stdout + done.stderr)

    def jobs(self) -> list[int]:
        """Return the ids of all jobs of this account that the controller knows."""
        listed = self.box.slurm("squeue", "-h", "-a", "-t", "all", "-u", self.name, "-o", "%A")
        return sorted({int(word) for word in listed.split()})


@dataclass(frozen=True)
class Site:
    """The cluster, the supervisor's settings there, and the customers by wallet address."""

    box: Box
    settings: LoginSettings
    alice: Person
    bob: Person

    def submit(self, key: JobKey, script: str, customer: str, request: SubmitRequest = SMALL) -> int:
        """Submit a claim as the supervisor does. Returns the Slurm id."""

        async def submitted() -> int:
            login = Login(self.settings)
            try:
                return (await Cluster(login, self.settings).submit(key, script, _of(request, customer))).slurm_id
            finally:
                await login.close()

        return asyncio.run(submitted())

    def record(self, slurm_id: int) -> str:
        """Return the controller's record of a job without the fields that change by themselves."""
        return re.sub(VOLATILE, "", self.box.slurm("scontrol", "show", "job", str(slurm_id)))

    def state(self, slurm_id: int) -> str:
        return self.box.slurm("squeue", "-h", "-a", "-t", "all", "-j", str(slurm_id), "-o", "%T").strip()

    def until(self, slurm_id: int, *states: str) -> None:
        """Wait until a job is in one of these states."""
        deadline = time.monotonic() + WAIT_S
        while (state := self.state(slurm_id)) not in states:
            assert time.monotonic() < deadline, state
            time.sleep(0.1)


def _of(request: SubmitRequest, customer: str) -> SubmitRequest:
    return replace(request, customer=customer)


@dataclass(frozen=True)
class Claim:
    """A claim that runs or waits until the end of its test."""

    key: JobKey
    slurm_id: int


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The cluster. Alice's account is in the table; Bob's matches the pattern, which contains his wallet."""
    if os.getuid() != 0:
        pytest.skip("accounts are made by root")
    with ExitStack() as stack:
        box = stack.enter_context(running_box(ClusterSpec("attack", nodes=2, cpus_per_node=8)))
        alice, bob = stack.enter_context(account()), stack.enter_context(wallet_account())
        accounts = CustomerAccounts({ALICE: alice}, "{address}")
        settings = replace(box.settings, job_account=None, accounts=accounts)
        stack.enter_context(hook_for(box, settings))
        yield Site(box, settings, Person(box, alice), Person(box, bob))


def _claim(site: Site, customer: str, request: SubmitRequest, state: str) -> Claim:
    key = new_key()
    claim = Claim(key, site.submit(key, bash(f"echo secret-of-{customer}; {RUNNING}"), customer, request))
    site.until(claim.slurm_id, state)
    return claim


@pytest.fixture(scope="session")
def running(site: Site) -> Claim:
    """A claim of Alice on both nodes, which leaves room for other jobs."""
    return _claim(site, ALICE, replace(SMALL, ntasks=10, time_limit_minutes=600), "RUNNING")


@pytest.fixture(scope="session")
def waiting(site: Site, running: Claim, bobs: Claim) -> Claim:
    """A claim of Alice that waits because the other claims leave no room for it. Smaller jobs start before it."""
    assert running and bobs
    return _claim(site, ALICE, replace(SMALL, ntasks=16, time_limit_minutes=600), "PENDING")


@pytest.fixture(scope="session")
def bobs(site: Site) -> Claim:
    """A claim of Bob."""
    return _claim(site, site.bob.name, replace(SMALL, time_limit_minutes=600), "RUNNING")


def conf_folder(site: Site) -> Path:
    return Path(site.box.site.environment(site.box.name)["SLURM_CONF"]).parent
