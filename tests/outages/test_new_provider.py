"""The commands of docs/how-to/provider.md lead from a Slurm cluster and an SSH key to the first paid job."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.dialogue import BEFORE_THE_FINGERPRINT, FINGERPRINT, OF_THE_CLUSTER, ONE_ACCOUNT, REST
from tests.grid.runs import api, run_now, unscheduled
from tests.tui.terminal import Terminal

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).parents[2]
CLUSTER = "gamma"
SERVE, INIT = "dps provider serve", "dps provider init"
KEYS = {"# with the operator's key": "operator", "# with a customer's key": "customer"}


@dataclass
class Newcomer:
    """A new provider who runs the commands of the page in one shell, which keeps its variables."""

    customer: Customer
    home: Path
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)
    supervisor: subprocess.Popen[bytes] | None = None

    def run(self, commands: str) -> str:
        """Run commands exactly as on the page. The next ones see the variables that these export."""
        kept = self.home / "environment"
        environment = dict(self.environment)
        for words, name in KEYS.items():
            if commands.startswith(words):
                environment["DPS_KEY_FILE"] = str(self.customer.grid.keys.file(name))
        script = f"set -eu\n{commands}\nenv -0 > {kept}\n"
        done = subprocess.run(
            ["bash", "-c", script], env=environment, cwd=REPOSITORY, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        exported = dict(one.split("=", 1) for one in kept.read_text().split("\0") if one)
        self.environment |= exported | {"DPS_KEY_FILE": self.environment["DPS_KEY_FILE"]}
        self.said.append(done.stdout)
        return done.stdout

    def serve(self, commands: str) -> None:
        """Run the supervisor, as in a second terminal."""
        with (self.home / "supervisor.log").open("wb") as log:
            self.supervisor = subprocess.Popen(
                ["bash", "-c", f"exec {commands}"], env=self.environment, cwd=REPOSITORY,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def answer(self, commands: str) -> None:
        """Run the dialogue of `dps provider init` on a terminal. The first answer for the partition is wrong."""
        answers = [CLUSTER, "", str(self.home / "login"), "", "", *self._variables("HOST", "PORT", "USER")]
        answers += ["", *self._variables("KEY", "KNOWN_HOSTS"), "y", "no-such-partition", ""]
        answers += [self.environment["GRID_ROOT"]]
        answers += [self.environment["STORAGE_ROOT"], "", self.environment["JOB_ACCOUNT"] or "-", "", "", ""]
        answers += ["region=ch", self.environment["STATE"], self.environment["METRICS_PORT"], "yes", "y"]
        (self.home / "login").touch(mode=0o600)
        (self.home / "login").write_text(self.environment["PREFECT_API_AUTH_STRING"])
        asked = (*BEFORE_THE_FINGERPRINT, FINGERPRINT, OF_THE_CLUSTER[0], *OF_THE_CLUSTER, *ONE_ACCOUNT, *REST)
        with Terminal(["bash", "-c", f"exec {commands}"], self.environment, cwd=str(self.home)) as terminal:
            for question, text in zip(asked, answers, strict=True):
                terminal.shows(question)
                terminal.type(f"{text}\n")
            assert terminal.ended() == 0, terminal.text
        assert "Slurm refused: Partition no-such-partition not found." in terminal.text
        assert f"The provider block alpha sells the partition {self.environment['PARTITION']} of" in terminal.text
        assert "warning The provider alpha offers exactly the same hardware on chain." in terminal.text
        self.said.append(terminal.text)

    def _variables(self, *names: str) -> list[str]:
        return [self.environment[f"LOGIN_{name}"] for name in names]

    def stop(self) -> None:
        """Terminate the supervisor, and kill it if it does not end."""
        if self.supervisor is None:
            return
        self.supervisor.terminate()
        try:
            self.supervisor.wait(PATIENCE_S)
        finally:
            self.supervisor.kill()


@pytest.fixture
async def newcomer(customer: Customer, tmp_path: Path) -> AsyncIterator[Newcomer]:
    """A provider with a folder on alpha's login node. It is removed from the grid after the test."""
    grid = customer.grid
    login, shared = grid.slurm.login("alpha"), Path(grid.slurm.login("alpha").grid_root)
    mine = {
        "CLUSTER": CLUSTER, "DEEPGRID_BOOK": str(grid.book), "DPS_KEY_FILE": str(tmp_path / "key"),
        "STATE": str(tmp_path / "supervisor"), "LOGIN_HOST": login.host, "LOGIN_PORT": str(login.port),
        "LOGIN_USER": login.user, "LOGIN_KEY": str(login.key_file), "LOGIN_KNOWN_HOSTS": str(tmp_path / "known_hosts"),
        "GRID_ROOT": str(shared.with_name("grid-of-gamma")), "STORAGE_ROOT": str(grid.state / "storage" / CLUSTER),
        "PARTITION": login.partition, "JOB_ACCOUNT": login.own_account or login.job_account or "",
        "METRICS_PORT": str(grid.ports.port(CLUSTER)), "TRUST_CUSTOMERS": "yes",
    }  # fmt: skip
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    someone = Newcomer(customer, tmp_path, {**os.environ, "PATH": path, **grid.prefect.environment(), **mine})
    try:
        yield someone
    finally:
        await asyncio.to_thread(someone.stop)
        if "PROVIDER" in someone.environment:
            operator = str(grid.keys.file("operator"))
            customer.dps("provider", "remove", someone.environment["PROVIDER"], "--key", operator)
        await forget(customer)


async def forget(customer: Customer) -> None:
    """Delete the newcomer's deployments and work pool."""
    async with api(customer.grid) as client:
        mine = {"deployments": {"name": {"any_": [CLUSTER]}}}
        for one in (await client.post("deployments/filter", json=mine)).raise_for_status().json():
            (await client.delete(f"deployments/{one['id']}")).raise_for_status()
        await client.delete(f"work_pools/provider-{CLUSTER}")


def commands_of_the_page() -> list[str]:
    """Return the blocks of shell commands on the page, in order."""
    page = (REPOSITORY / "docs" / "how-to" / "provider.md").read_text()
    return [block.strip() for block in re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]


async def test_the_page_leads_to_the_first_paid_job(customer: Customer, newcomer: Newcomer) -> None:
    settings, *steps = commands_of_the_page()
    named = set(re.findall(r"(\w+)=", re.sub(r"#.*", "", settings)))
    assert (
        named - {"PREFECT_API_URL"} <= newcomer.environment.keys()
    )  # the values that the page asks the reader to fill in
    paid = ""
    for commands in steps:
        if commands.startswith(SERVE):
            newcomer.serve(commands)
            continue
        if "dps provider approve" in commands:
            claim = await run_now(customer.grid, f"claim_jobs/{CLUSTER}")
            assert claim["state"]["message"] == "Nothing to claim: the provider waits for approval."
        if "collect_zombies/" in commands:
            async with unscheduled(customer.grid, f"collect_zombies/{CLUSTER}"):
                await asyncio.to_thread(newcomer.run, commands)
            continue
        if commands.startswith(INIT):
            await asyncio.to_thread(newcomer.answer, commands)
            await asyncio.to_thread(change_one_price, newcomer)
            continue
        said = await asyncio.to_thread(newcomer.run, commands)
        if "dps key create" in commands:
            await asyncio.to_thread(give_gas, customer, newcomer.environment["PROVIDER"])
        if "dps submit" in commands:
            paid = said
    found = re.search(r"job (\d+) submitted", paid)
    assert found, paid
    assert "Hello world" in paid and "to provider (80 %)" in paid
    job = await customer.job(int(found[1]))
    assert (job.status, job.provider) == (JobStatus.FINISHED, newcomer.environment["PROVIDER"])
    settled = await customer.settlement(job.id)
    async with await Chain.connect(AddressBook.load(customer.grid.book)) as chain:
        assert await chain.balance(newcomer.environment["PROVIDER"]) == settled.paid_wei > 0


def change_one_price(newcomer: Newcomer) -> None:
    """Check that `dps provider init` updates one changed price, keeps comments, and leaves the rest alone."""
    file = newcomer.home / f"provider-{CLUSTER}.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text(f"# agreed in March\n{file.read_text()}")
    changed = newcomer.run(f"dps provider init {file} --set prices.cpu=0.5 --yes")
    assert f"file {file}: changed" in changed
    assert "cpu_wei_per_minute '950000000000000000' -> '500000000000000000'" in changed
    assert "deployment" not in changed and "slurm-login" not in changed
    assert file.read_text().startswith("# agreed in March\n")


def give_gas(customer: Customer, provider: str) -> None:
    """Run the operator's commands for a new provider."""
    operator = str(customer.grid.keys.file("operator"))
    customer.dps("gas", "transfer", provider, "10", "--key", operator, check=0)
