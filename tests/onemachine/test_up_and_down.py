"""`./run up` and `./run down` of the whole grid: they repair it after any process was killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deepgrid.chain.book import AddressBook
from deployments.onemachine.daemons.probes import answers, listens
from deployments.onemachine.daemons.processes import Daemon, ProcessTable
from deployments.onemachine.grid import LocalGrid
from tests.onemachine.support import REPOSITORY, run
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

WEB_ADDRESS = re.compile(r"(http://127\.[\d.]+:\d+)/#token=([\w-]+)")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    yield folder
    command(folder, "down")


def command(state: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run(*args, timeout_s=600, HOME=str(state.parent), DEEPGRID_STATE=str(state))


def processes_of(state: Path) -> list[str]:
    """Return processes that refer to `state` in their command line, environment or working folder."""
    return [str(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _concerns(entry, str(state))]


def _concerns(entry: Path, state: str) -> bool:
    try:
        told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        return state.encode() in told or os.readlink(entry / "cwd").startswith(state)
    except OSError:
        return False


@pytest.mark.deep
def test_up_and_down_put_right_whatever_was_killed(state: Path) -> None:
    _interrupt_an_up(state)
    done = command(state, "up", "--unmeasured")
    assert done.returncode == 0, done.stderr
    assert f"source {state}/customer.env" in done.stdout
    _open_web_app(done.stdout)
    status = command(state, "status")
    assert status.returncode == 0
    assert re.search(r"^web +\d+ +127\.0\.0\.1:\d+ ", status.stdout, re.M)
    _open_web_app(status.stdout)  # by the next token

    again = command(state, "up", "--unmeasured")
    assert again.returncode == 0
    assert again.stdout.startswith("The grid is up already.\n")

    address = AddressBook.load(state / "grid.json").definitions_url.removeprefix("http://")
    table = ProcessTable(state)
    victims = (
        "anvil", "postgres", "munged", "mariadbd", "alpha-slurmctld", "beta-n1", "proxy", "services",
        "supervisor-alpha",
    )  # fmt: skip
    for name in victims:
        table.stop(name, signal.SIGKILL)
    status = command(state, "status")
    assert status.returncode == 1
    assert status.stdout.count(" dead ") == len(victims)
    assert command(state, "up", "--unmeasured").returncode == 0
    status = command(state, "status")
    assert status.stdout.endswith("The grid is up.\n")
    services = re.search(r"^proxy +\d+ +(127\.0\.0\.1:\d+), gRPC", status.stdout, re.M)
    assert services is not None and services[1] == address, "its address book names the address of the services"

    _shows_a_job_to_its_bill(command(state, "demo", "--exit"))
    assert command(state, "status").returncode == 0, "the demo stops only a grid that it started"

    for name in ("prefect-server", "alpha-n1", "munged", "operator", "web"):
        table.stop(name, signal.SIGKILL)
    assert command(state, "down").returncode == 0
    wait_until(lambda: processes_of(state) == [], lambda: processes_of(state))
    assert command(state, "down").stdout == "Nothing runs.\n"


@pytest.mark.deep
def test_the_first_up_measures_both_clusters_and_the_second_none(state: Path) -> None:
    first, second = command(state, "up"), command(state, "up")
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    measured = re.findall(r"^  measured (\w+) \([\d.]+ s\): \d+ labels, compute.gflops ", first.stdout, re.M)
    assert measured == ["alpha", "beta"], first.stdout
    assert "  measured " not in second.stdout


def test_services_of_an_earlier_release_give_way_to_the_proxy(tmp_path: Path) -> None:
    """They listened at its port. Their address stays."""
    grid = LocalGrid(tmp_path / "state")
    port = grid.ports.port("services")
    earlier = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    grid.table.start(Daemon("services", earlier))
    wait_until(lambda: listens(port))
    proxy = grid.roles.proxy
    try:
        grid.end_leftovers()
        grid.table.start(proxy())
        grid.table.wait_ready(proxy())
        assert answers(port, "/v1/proxy") and grid.ports.port("services") == port
    finally:
        grid.down()


@pytest.mark.deep
def test_the_demo_shows_a_job_to_its_bill_and_leaves_nothing_running(state: Path) -> None:
    _shows_a_job_to_its_bill(command(state, "demo", "--exit"))
    wait_until(lambda: processes_of(state) == [], lambda: processes_of(state))


def _shows_a_job_to_its_bill(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    positions = [
        done.stdout.index(word) for word in ("PENDING", "META-SCHEDULED", "RUNNING", "FINISHED", "Bill", "refund")
    ]
    assert positions == sorted(positions)
    assert "Hello world" in done.stdout
    assert re.search(r"flow run with its tasks: http://127\.0\.0\.1:\d+/runs", done.stdout)
    assert WEB_ADDRESS.search(done.stdout)


def _open_web_app(printed: str) -> None:
    """Open the web app by the printed address: the page may use the customer's account."""
    found = WEB_ADDRESS.search(printed)
    assert found is not None, printed
    with httpx.Client(base_url=found[1], headers={"Origin": found[1]}, trust_env=False) as page:
        page.headers["X-Grid-Signer"] = page.post("/signer/session", json={"token": found[2]}).json()["session"]
        accounts = page.post("/signer", json={"method": "eth_accounts", "params": []}).json()["result"]
        assert len(accounts) == 1
        assert page.get("/v1/health").json()["status"] == "ok"


def _interrupt_an_up(state: Path) -> None:
    """Kill an `up` half-way, once the first daemons are on record."""
    env = {"PATH": os.environ["PATH"], "HOME": str(state.parent), "DEEPGRID_STATE": str(state)}
    first = subprocess.Popen([str(REPOSITORY / "run"), "up"], env=env, stdout=subprocess.DEVNULL)
    wait_until((state / "run" / "mariadbd.json").exists)
    first.kill()
    first.wait()
    assert command(state, "status").stdout.endswith("The grid is not complete.\n")
